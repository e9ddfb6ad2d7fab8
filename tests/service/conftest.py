from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from ascend_elk.service.api import create_app
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics


@dataclass
class Service:
    client: TestClient
    metrics: Metrics
    health: Health
    holder: CatalogueHolder

    def metric(self, name: str, **labels: str) -> float:
        value = self.metrics.registry.get_sample_value(name, labels)
        return 0.0 if value is None else value


@pytest.fixture(scope="session")
def holder():
    return CatalogueHolder()


@pytest.fixture
def serve(holder):
    """Start a service with its own metrics and health: ``serve(token=…, max_body=…)``."""

    def start(**options) -> Service:
        metrics, health = Metrics(CollectorRegistry()), Health()
        app = create_app(holder, metrics, health, **options)
        # What the application does not catch is an error of the test, not a 500.
        return Service(TestClient(app, follow_redirects=False), metrics, health, holder)

    return start


@pytest.fixture
def service(serve):
    return serve()


@pytest.fixture
def client(service):
    return service.client
