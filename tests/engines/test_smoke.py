"""The real servers start, take data and survive what the delivery tests do to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from elasticsearch import AuthenticationException, AuthorizationException, helpers

from .filebeat import elasticsearch_output, file_output, logstash_output

GROK_PIPELINE = {
    "processors": [
        {
            "grok": {
                "field": "message",
                "patterns": [r"\A\[%{LOGLEVEL:log.level}\] %{WORD:ascend.module}\(%{INT:process.pid:long}"],
            }
        }
    ]
}


def filestream(*paths: Path, **more: object) -> dict:
    return {
        "filebeat.inputs": [
            {"type": "filestream", "id": "smoke", "paths": [str(path) for path in paths], **more}
        ]
    }


def two_lines(directory: Path) -> Path:
    file = directory / "plog-1_20240101000000000.log"
    file.write_text("[ERROR] HCCL(57,python):first\n[INFO] RUNTIME(57,python):second\n")
    return file


def test_elasticsearch_stores_through_an_index_template(elasticsearch, namespace):
    client, index = elasticsearch.client, f"smoke-{namespace}"
    client.indices.put_index_template(
        name=index,
        index_patterns=[index],
        priority=500,
        template={"mappings": {"dynamic": "strict", "properties": {"code": {"type": "keyword"}}}},
    )
    stored, errors = helpers.bulk(
        client,
        [
            {"_index": index, "_id": str(number % 5), "_op_type": "create", "code": "EI0006"}
            for number in range(10)
        ],
        refresh=True,
        raise_on_error=False,
    )
    assert stored == 5
    assert [error["create"]["status"] for error in errors] == [409] * 5
    buckets = client.search(index=index, size=0, aggs={"codes": {"terms": {"field": "code"}}})[
        "aggregations"
    ]["codes"]["buckets"]
    assert buckets == [{"key": "EI0006", "doc_count": 5}]
    _, errors = helpers.bulk(client, [{"_index": index, "unknown": 1}], raise_on_error=False)
    assert errors[0]["index"]["error"]["type"] == "strict_dynamic_mapping_exception"


def test_elasticsearch_simulates_grok(elasticsearch):
    answer = elasticsearch.client.ingest.simulate(
        pipeline=GROK_PIPELINE, docs=[{"_source": {"message": "[ERROR] HCCL(57,python):x"}}]
    )
    assert answer["docs"][0]["doc"]["_source"] == {
        "message": "[ERROR] HCCL(57,python):x",
        "log": {"level": "ERROR"},
        "ascend": {"module": "HCCL"},
        "process": {"pid": 57},
    }


def test_elasticsearch_keeps_what_it_acknowledged_over_a_kill(elasticsearch, namespace):
    elasticsearch.client.index(index=f"smoke-{namespace}", id="1", document={"a": 1})
    elasticsearch.kill()
    assert not elasticsearch.running
    elasticsearch.start()
    assert elasticsearch.client.get(index=f"smoke-{namespace}", id="1")["_source"] == {"a": 1}


def test_elasticsearch_with_security_knows_users_and_rights(secure_elasticsearch, namespace):
    client, index = secure_elasticsearch.client, f"smoke-{namespace}"
    with pytest.raises(AuthenticationException):
        secure_elasticsearch.connect().info()
    client.security.put_role(
        name=namespace, indices=[{"names": [index], "privileges": ["create_doc", "auto_configure"]}]
    )
    client.security.put_user(username=namespace, password="at-least-six", roles=[namespace])
    writer = secure_elasticsearch.connect(basic_auth=(namespace, "at-least-six"))
    writer.index(index=index, id="1", op_type="create", document={"a": 1})
    with pytest.raises(AuthorizationException):
        writer.search(index=index)
    key = client.security.create_api_key(name=namespace)["encoded"]
    assert secure_elasticsearch.connect(api_key=key).exists(index=index, id="1")


def test_filebeat_writes_to_files_and_goes_on_after_a_kill(filebeat, tmp_path):
    file = two_lines(tmp_path)
    beat = filebeat(filestream(file))
    assert [event["message"] for event in beat.read([file])] == [
        "[ERROR] HCCL(57,python):first",
        "[INFO] RUNTIME(57,python):second",
    ]
    with file.open("a") as appended:
        appended.write("third\nwithout its end")
    beat.start()
    beat.wait_until_read([file])
    beat.kill()
    assert not beat.running
    assert [(event["message"], event["log"]["offset"]) for event in beat.events()][2:] == [("third", 63)]


def test_filebeat_writes_to_elasticsearch(filebeat, elasticsearch, tmp_path, namespace):
    file, index = two_lines(tmp_path), f"smoke-{namespace}"
    elasticsearch.client.ingest.put_pipeline(id=index, **GROK_PIPELINE)
    beat = filebeat(
        filestream(file), settings=elasticsearch_output(elasticsearch, index=index, pipeline=index)
    )
    beat.start()
    beat.wait_until_read([file])
    elasticsearch.client.indices.refresh(index=index)
    hits = elasticsearch.client.search(index=index, sort="log.offset")["hits"]["hits"]
    assert [(hit["_source"]["ascend"]["module"], hit["_source"]["process"]["pid"]) for hit in hits] == [
        ("HCCL", 57),
        ("RUNTIME", 57),
    ]


def test_filebeat_writes_to_elasticsearch_with_tls(filebeat, secure_elasticsearch, tmp_path, namespace):
    file, index = two_lines(tmp_path), f"smoke-{namespace}"
    beat = filebeat(filestream(file), settings=elasticsearch_output(secure_elasticsearch, index=index))
    beat.start()
    beat.wait_until_read([file])
    secure_elasticsearch.client.indices.refresh(index=index)
    assert secure_elasticsearch.client.count(index=index)["count"] == 2


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_filebeat_writes_to_the_receiver(filebeat, lumberjack, tmp_path, tls):
    file, receiver = two_lines(tmp_path), lumberjack(tls=tls)
    receiver.start()
    beat = filebeat(filestream(file), settings=logstash_output(receiver))
    beat.start()
    beat.wait_until_read([file])
    assert [(event["message"], event["log"]["offset"]) for event in receiver.events()] == [
        ("[ERROR] HCCL(57,python):first", 0),
        ("[INFO] RUNTIME(57,python):second", 30),
    ]


def test_a_batch_that_was_not_acknowledged_comes_again(filebeat, lumberjack, tmp_path):
    file, receiver = two_lines(tmp_path), lumberjack()
    receiver.start(die_before_ack=1)
    beat = filebeat(filestream(file), settings=logstash_output(receiver))
    beat.start()
    assert receiver.wait_until_dead() == 9
    assert all((state.get("cursor") or {}).get("offset") is None for state in beat.registry().values())
    receiver.kill()
    receiver.start()
    beat.wait_until_read([file])
    assert [event["log"]["offset"] for event in receiver.events()] == [0, 30, 0, 30]


def test_filebeat_config_test_finds_an_unknown_processor(filebeat, tmp_path):
    good = filestream(tmp_path / "*.log")
    assert filebeat(good, name="good").test_config().ok
    bad = filebeat({**good, "processors": [{"no_such_processor": {}}]}, name="bad").test_config()
    assert not bad.ok
    assert "no_such_processor" in bad.output


def test_settings_override_a_rendered_file(filebeat, tmp_path):
    """As the conformance tests do it: inputs in a folder beside the file, another output switched off."""
    rendered, file = tmp_path / "rendered", two_lines(tmp_path)
    (rendered / "inputs.d").mkdir(parents=True)
    (rendered / "filebeat.yml").write_text(
        "filebeat.config.inputs: {enabled: true, path: '${path.config}/inputs.d/*.yml'}\n"
        "output.logstash: {enabled: true, hosts: ['127.0.0.1:1']}\n"
    )
    (rendered / "inputs.d" / "a.yml").write_text(
        f"- {{type: filestream, id: a, paths: ['{file}'], fields: {{cluster: '${{CLUSTER}}'}}}}\n"
    )
    for path in (rendered / "filebeat.yml", rendered / "inputs.d" / "a.yml"):
        path.chmod(0o600)
    output = tmp_path / "filebeat" / "output"
    beat = filebeat(
        rendered / "filebeat.yml",
        settings={"output.logstash.enabled": False, **file_output(output)},
        env={"CLUSTER": "east"},
    )
    assert [event["fields"]["cluster"] for event in beat.read([file])] == ["east", "east"]


def test_the_registry_is_understood_over_a_checkpoint(filebeat, tmp_path):
    """A log that a crash cut off makes Filebeat write a checkpoint with its next update."""
    files = [tmp_path / f"{number}.log" for number in range(20)]
    for file in files:
        file.write_text("line\n")
    beat = filebeat(filestream(tmp_path / "*.log"))
    beat.read(files)
    folder = beat.directory / "data" / "registry" / "filebeat"
    with (folder / "log.json").open("a") as log:
        log.write('{"op":"set","id":')
    with files[3].open("a") as appended:
        appended.write("more\n")
    assert len(beat.read(files)) == 21
    assert (folder / "active.dat").exists()
    offsets = {Path(state["meta"]["source"]): state["cursor"]["offset"] for state in beat.registry().values()}
    assert offsets == {file: 10 if file is files[3] else 5 for file in files}
