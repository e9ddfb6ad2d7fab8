from ascend_elk.service.health import Health


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_readiness_has_a_reason_until_everything_is_there():
    health = Health()
    assert not health.ready
    assert health.reason == "starting"
    health.become_ready()
    assert health.ready
    assert health.reason is None
    health.not_ready("Elasticsearch does not answer")
    assert not health.ready
    assert health.reason == "Elasticsearch does not answer"


def test_a_worker_that_stops_beating_is_not_alive():
    clock = Clock()
    health = Health(clock=clock)
    clock.now += 59.9
    assert health.alive
    clock.now += 0.2
    assert not health.alive
    health.beat()
    assert health.alive


def test_readiness_says_nothing_of_life():
    health = Health()
    health.not_ready("no")
    assert health.alive


def test_without_a_worker_an_answer_is_life():
    clock = Clock()
    health = Health(silence=None, clock=clock)
    clock.now += 1e6
    assert health.alive
