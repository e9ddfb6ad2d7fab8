from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ascend_elk.cann import Version
from ascend_elk.errors import UserError
from ascend_elk.formats import load_definitions
from ascend_elk.render import RenderOptions, render, write

lscl_lang = pytest.importorskip(
    "lscl.lang", reason="the grammar of Logstash's configuration needs Python 3.11"
)
parse_lscl = pytest.importorskip("lscl.parser").parse_lscl
DEFINITIONS = load_definitions()
EVERYTHING = render(RenderOptions())
CONF = {name: text for name, text in EVERYTHING.items() if name.endswith(".conf")}

# Documented options of the plugins that the configuration uses, common ones included.
PLUGIN_OPTIONS = {
    "beats": {
        "id",
        "host",
        "port",
        "ssl",
        "ssl_enabled",
        "ssl_certificate",
        "ssl_key",
        "ssl_certificate_authorities",
        "ssl_client_authentication",
        "ssl_verify_mode",
    },
    "grok": {
        "id",
        "patterns_dir",
        "match",
        "overwrite",
        "add_field",
        "tag_on_failure",
        "timeout_millis",
    },
    "mutate": {"id", "copy", "replace", "convert", "gsub", "rename", "remove_field", "add_field", "add_tag"},
    "date": {"id", "match", "timezone", "tag_on_failure"},
    "translate": {"id", "source", "target", "override", "dictionary"},
    "ruby": {"id", "path", "script_params"},
    "fingerprint": {"id", "source", "concatenate_sources", "method", "target"},
    "elasticsearch": {
        "id",
        "hosts",
        "user",
        "password",
        "cacert",
        "ssl_certificate_authorities",
        "data_stream",
        "data_stream_auto_routing",
        "document_id",
        "action",
    },
}


def plugins(content: Any) -> list[Any]:
    """All plugin blocks below a section, in whatever branch."""
    found: list[Any] = []
    for item in content:
        if isinstance(item, lscl_lang.LsclBlock):
            found.append(item)
        elif isinstance(item, lscl_lang.LsclConditions):
            for _, branch in item.conditions:
                found += plugins(branch)
            found += plugins(item.default or [])
    return found


def all_plugins() -> list[Any]:
    return [
        plugin
        for text in CONF.values()
        for section in parse_lscl(text)
        for plugin in plugins(section.content)
    ]


def test_two_processes_render_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        command = [sys.executable, "-c", "from ascend_elk.cli import main; main()"]
        command += ["render", "--cann", "8.0", "--out", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
    files = sorted(
        path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()
    )
    assert len(files) > 30
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes()


@pytest.mark.parametrize("name", sorted(CONF))
def test_logstash_configuration_parses(name: str) -> None:
    assert {section.name for section in parse_lscl(CONF[name])} <= {"input", "filter", "output"}


def test_logstash_uses_documented_options_only_and_ids_are_unique() -> None:
    found = all_plugins()
    assert len(found) > 300
    for plugin in found:
        names = {attribute.name for attribute in plugin.content}
        assert names <= PLUGIN_OPTIONS[plugin.name], plugin
    ids = [attribute.content for plugin in found for attribute in plugin.content if attribute.name == "id"]
    assert len(ids) == len(found)
    assert len(set(ids)) == len(ids)


def test_logstash_patterns_are_the_definitions_own() -> None:
    """Undo the field syntax of Logstash: what is left is the text of grok/."""
    import re

    def undone(text: str) -> str:
        text = re.sub(r"%\{(\w+):((?:\[[^\]]+\])+)(?::(?:int|float))?\}", r"%{\1}", text)
        return re.sub(r"%\{(\w+)(?::[\w.]+)?(?::\w+)?\}", r"%{\1}", text)

    matches = [
        text
        for plugin in all_plugins()
        if plugin.name == "grok"
        for attribute in plugin.content
        if attribute.name == "match"
        for text in attribute.content.values()
    ]
    known = {undone(item.pattern) for item in DEFINITIONS.formats.values()}
    known |= {undone(style.pattern) for styles in DEFINITIONS.bodies.values() for style in styles}
    known |= {undone(item.pattern) for item in DEFINITIONS.extractors if item.pattern}
    unknown = {undone(text) for text in matches} - {text.replace('"', r"\x22") for text in known} - known
    assert not unknown
    assert len(matches) > 200


def test_filebeat_configuration_is_yaml_with_unique_ids() -> None:
    ids: list[str] = []
    for name, text in EVERYTHING.items():
        if name.startswith("filebeat/inputs.d/"):
            for entry in yaml.safe_load(text):
                assert entry["type"] == "filestream"
                assert entry["paths"]
                ids.append(entry["id"])
    assert len(ids) == len(set(ids)) > 15
    assert (
        yaml.safe_load(EVERYTHING["filebeat/filebeat.yml"])["output.logstash"]["ssl.verification_mode"]
        == "full"
    )


def test_a_version_renders_only_what_it_writes() -> None:
    new = render(RenderOptions(cann=Version.parse("8.0")))
    old = render(RenderOptions(cann=Version.parse("20.2")))
    assert "/var/dlog" not in "".join(new.values())
    assert "hccl-process-thread" not in new["logstash/conf.d/30-plog.conf"]
    assert "hccl-process-thread" in old["logstash/conf.d/30-plog.conf"]
    assert "tdt-trailing-location" in old["logstash/conf.d/30-plog.conf"]


def test_no_secret_is_rendered() -> None:
    text = "".join(EVERYTHING.values())
    assert 'password => "${ASCEND_ES_PASSWORD}"' in text
    assert "changeme" not in text


@pytest.mark.parametrize("stack", ["7.17", "8", "9"])
def test_every_stack_renders_configuration_that_parses(stack: str) -> None:
    for name, text in render(RenderOptions(stack=stack)).items():
        if name.endswith(".conf"):
            parse_lscl(text)
        elif name.endswith(".yml"):
            yaml.safe_load(text)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stack": "6"}, "7.17"),
        ({"elasticsearch": ("es.example:9200",)}, "https://"),
        ({"elasticsearch": ("https://me:secret@es.example",)}, "keystore"),
        ({"elasticsearch": ("http://es.example:9200",)}, "not encrypted"),
        ({"logstash": ("logstash.example",)}, "host:port"),
        ({"namespace": "Team-A"}, "namespace"),
        ({"roots": ("logs",)}, "absolute"),
    ],
)
def test_choices_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        RenderOptions(**options)


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(UserError, match="something else"):
        write(EVERYTHING, tmp_path, force=False)
    write(EVERYTHING, tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "keep me"
    (tmp_path / "logstash" / "conf.d" / "old.conf").write_text("stale")
    write(EVERYTHING, tmp_path, force=False)
    assert not (tmp_path / "logstash" / "conf.d" / "old.conf").exists()
