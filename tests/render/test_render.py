from __future__ import annotations

import re
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

# Documented options of the plugins that the configuration uses, those of the 7.17 names included.
COMMON = {"id"}
PLUGIN_OPTIONS = {
    "beats": {
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
    "kafka": {
        "bootstrap_servers",
        "topics",
        "group_id",
        "client_id",
        "auto_offset_reset",
        "codec",
        "security_protocol",
        "ssl_truststore_type",
        "ssl_truststore_location",
        "ssl_truststore_password",
        "ssl_keystore_type",
        "ssl_keystore_location",
        "ssl_keystore_password",
    },
    "dead_letter_queue": {"path", "pipeline_id", "commit_offsets", "clean_consumed"},
    "grok": {"patterns_dir", "match", "overwrite", "add_field", "tag_on_failure", "timeout_millis"},
    "mutate": {"copy", "add_field"},
    "date": {"match", "timezone", "target", "tag_on_failure"},
    "ruby": {"path", "script_params"},
    "elasticsearch": {
        "hosts",
        "api_key",
        "user",
        "password",
        "ssl",
        "cacert",
        "ssl_enabled",
        "ssl_certificate_authorities",
        "ssl_verification_mode",
        "data_stream",
        "index",
        "document_id",
        "action",
        "manage_template",
        "ilm_enabled",
        "silence_errors_in_log",
        "failure_type_logging_whitelist",
    },
}
# Settings of pipelines.yml, those that only later versions know apart
PIPELINE_SETTINGS = {
    "pipeline.id",
    "path.config",
    "pipeline.ecs_compatibility",
    "pipeline.ordered",
    "pipeline.workers",
    "queue.type",
    "queue.max_bytes",
    "queue.checkpoint.writes",
    "dead_letter_queue.enable",
    "dead_letter_queue.max_bytes",
}
LATER_PIPELINE_SETTINGS = {"dead_letter_queue.storage_policy"}
# What one line of the stack knows and the other does not.
ONLY_7 = {"ssl", "ssl_verify_mode", "cacert", "failure_type_logging_whitelist"}
ONLY_LATER = {
    "ssl_enabled",
    "ssl_client_authentication",
    "ssl_verification_mode",
    "silence_errors_in_log",
    "clean_consumed",
}
VARIANTS = {
    "plain": {},
    "kafka": {"kafka": ("kafka.example:9093",)},
    "basic": {"authentication": "basic"},
    "no-tls": {"tls": False, "elasticsearch": ("http://localhost:9200",)},
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


def all_plugins(files: dict[str, str]) -> list[Any]:
    return [
        plugin
        for name, text in files.items()
        if name.endswith(".conf")
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


@pytest.mark.parametrize("stack", ["7.17", "8", "9"])
@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_logstash_uses_documented_options_only_and_ids_are_unique(stack: str, variant: str) -> None:
    found = all_plugins(render(RenderOptions(stack=stack, **VARIANTS[variant])))
    assert len(found) > 200
    for plugin in found:
        names = {attribute.name for attribute in plugin.content}
        assert names <= PLUGIN_OPTIONS[plugin.name] | COMMON, plugin
        assert not names & (ONLY_LATER if stack == "7.17" else ONLY_7), plugin
    ids = [attribute.content for plugin in found for attribute in plugin.content if attribute.name == "id"]
    assert len(ids) == len(found)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("stack", ["7.17", "8", "9"])
def test_logstash_pipelines_use_documented_settings_only(stack: str) -> None:
    known = PIPELINE_SETTINGS | (LATER_PIPELINE_SETTINGS if stack != "7.17" else set())
    pipelines = yaml.safe_load(render(RenderOptions(stack=stack))["logstash/pipelines.yml"])
    assert len(pipelines) == 2
    for pipeline in pipelines:
        assert set(pipeline) <= known


def test_logstash_patterns_are_the_definitions_own() -> None:
    """Undo the field syntax of Logstash: what is left is the text of grok/."""

    def undone(text: str) -> str:
        text = re.sub(r"%\{(\w+):((?:\[[^\]]+\])+)(?::(?:int|float))?\}", r"%{\1}", text)
        return re.sub(r"%\{(\w+)(?::[\w.]+)?(?::\w+)?\}", r"%{\1}", text)

    matches = [
        text
        for plugin in all_plugins(EVERYTHING)
        if plugin.name == "grok"
        for attribute in plugin.content
        if attribute.name == "match"
        for text in attribute.content.values()
    ]
    known = {undone(item.pattern) for item in DEFINITIONS.formats.values()}
    known |= {undone(style.pattern) for styles in DEFINITIONS.bodies.values() for style in styles}
    known |= {undone(item.pattern) for item in DEFINITIONS.extractors if item.pattern}
    known |= {undone(item.pattern) + "%{REST}" for item in DEFINITIONS.prefixes}
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
    new = render(RenderOptions(cann=(Version.parse("8.0"),)))
    old = render(RenderOptions(cann=(Version.parse("20.2"),)))
    assert "/var/dlog" not in "".join(new.values())
    assert "hccl-process-thread" not in new["logstash/conf.d/35-bodies-plog.conf"]
    assert "hccl-process-thread" in old["logstash/conf.d/35-bodies-plog.conf"]
    assert "tdt-trailing-location" in old["logstash/conf.d/35-bodies-plog.conf"]


@pytest.mark.parametrize("parser", ["logstash", "ingest"])
@pytest.mark.parametrize("auth", ["api-key", "basic"])
def test_credentials_are_names_only(parser: str, auth: str) -> None:
    text = "".join(render(RenderOptions(parser=parser, authentication=auth)).values())
    values = re.findall(r"^\s*(?:api_key|user|\w*_?password|username)(?::| =>) (.*)$", text, re.MULTILINE)
    assert values
    for value in values:
        assert re.fullmatch(r"""["']\$\{ASCEND_[A-Z_]+\}["']""", value)
    assert not re.search(r"verification(?:_mode)?.{0,6}none", text)


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
        ({"parser": "grok"}, "logstash, ingest"),
        ({"elasticsearch": ("es.example:9200",)}, "https://"),
        ({"elasticsearch": ("https://es.example:99999",)}, "no URL"),
        ({"elasticsearch": ("https://me:secret@es.example",)}, "keystore"),
        ({"elasticsearch": ("http://es.example:9200",)}, "not encrypted"),
        ({"elasticsearch": ("https://a.example", "http://localhost:9200")}, "all with http"),
        ({"logstash": ("logstash.example",)}, "host:port"),
        ({"logstash": ("logstash.example:70000",)}, "host:port"),
        ({"logstash": ("a.example:5044", "b.example:5045")}, "same port"),
        ({"logstash": ("a.example:5044",), "parser": "ingest"}, "contradicts"),
        ({"kafka": ("a.example:9092",), "parser": "ingest"}, "Logstash"),
        ({"kafka": ("a.example:9092",), "logstash": ("a.example:5044",)}, "contradicts"),
        ({"authentication": "api-key", "elasticsearch": ("http://localhost:9200",)}, "encrypted"),
        ({"authentication": "token"}, "api-key, basic, none"),
        ({"namespace": "Team-A"}, "namespace"),
        ({"retention": "a month"}, "retention"),
        ({"retention": "0d"}, "retention"),
        ({"roots": ("logs",)}, "absolute"),
        ({"roots": ("/data/a[bc",)}, "nothing closes"),
        ({"roots": ("/a'b",)}, "quotes"),
        ({"cluster": "${SECRET}"}, "configuration files"),
        ({"job": "a\nb"}, "control characters"),
        ({"labels": (("Team", "x"),)}, "label"),
        ({"level": "LOUD"}, "DEBUG"),
        ({"muted": ("A B",)}, "module"),
        ({"identity": "path"}, "fingerprint"),
        ({"timezone": "local"}, "--timezone"),
    ],
)
def test_choices_that_make_no_sense_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        RenderOptions(**options)


def test_a_module_to_mute_is_known_by_its_name() -> None:
    with pytest.raises(UserError, match="write HCCL"):
        render(RenderOptions(muted=("hccl",)))
    assert "A_MODULE_OF_TOMORROW" in "".join(render(RenderOptions(muted=("A_MODULE_OF_TOMORROW",))).values())


def test_places_with_blanks_globs_and_chinese_are_read_once_each() -> None:
    options = RenderOptions(roots=("/data/my logs/[ab]*", "/数据/日志"), homes=("/home/*", "/home/*/"))
    (entry,) = [
        entry
        for entry in yaml.safe_load(render(options)["filebeat/inputs.d/plog.yml"])
        if entry["id"] == "ascend-plog-process-log"
    ]
    assert "/data/my logs/[ab]*/*/plog/plog-*.log*" in entry["paths"]
    assert "/数据/日志/*/plog/plog-*.log*" in entry["paths"]
    assert len(set(entry["paths"])) == len(entry["paths"]) == 4


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(UserError, match="something else"):
        write(EVERYTHING, tmp_path, force=False)
    write(EVERYTHING, tmp_path, force=True)
    assert (tmp_path / "mine.txt").read_text() == "keep me"
    (tmp_path / "logstash" / "conf.d" / "old.conf").write_text("stale")
    write(EVERYTHING, tmp_path, force=False)
    assert not (tmp_path / "logstash" / "conf.d" / "old.conf").exists()
