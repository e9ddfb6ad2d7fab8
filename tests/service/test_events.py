"""Events in a request body: shapes, mistakes, sizes."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ascend_elk.codes import Catalogue
from ascend_elk.enrich import READ_FIELDS, enrich
from ascend_elk.errors import UserError
from ascend_elk.parse.event import nested
from ascend_elk.service.events import Batch, EventError, get, put

CATALOGUE = Catalogue.load()
FLAT = {"message": "x", "event.severity": 3, "ascend.error.codes": ["cann:EI0013"], "host.name": "h1"}


def enriched(body: bytes, lines: bool = False) -> list[dict]:
    batch = Batch(body, lines)
    return [json.loads(line) for line in b"".join(batch.enriched(CATALOGUE)).splitlines()]


def test_a_flat_event_stays_flat():
    (event,) = enriched(json.dumps(FLAT).encode())
    assert event == {**FLAT, **enrich(FLAT, CATALOGUE)}


def test_a_nested_event_stays_nested():
    (event,) = enriched(json.dumps(nested(FLAT)).encode())
    assert event == nested({**FLAT, **enrich(FLAT, CATALOGUE)})


def test_flat_and_nested_give_the_same():
    (flat,) = enriched(json.dumps(FLAT).encode())
    (deep,) = enriched(json.dumps(nested(FLAT)).encode())
    assert nested(flat) == deep


def test_a_mixed_event_gets_each_value_where_its_object_is():
    event = {"ascend": {"error.codes": ["cann:EI0013"]}, "error": {"message": "m"}}
    (found,) = enriched(json.dumps(event).encode())
    assert found["error"] == {"message": "m", "code": "EI0013"}
    assert found["ascend"]["error.category"] == "network"


def test_what_is_no_object_is_not_overwritten():
    (event,) = enriched(json.dumps({**nested(FLAT), "error": "boom"}).encode())
    assert event["error"] == "boom"
    assert event["error.code"] == "EI0013"


def test_an_event_of_which_nothing_is_known_comes_back_as_it_came():
    event = {"message": "all is well", "a": {"b": [1, {"c": None}]}, "ümlaut": "汉字 \u2028"}
    assert enriched(json.dumps(event).encode()) == [event]


def test_a_single_code_and_a_single_signal_may_stand_without_a_list():
    event = {"ascend.error.codes": "cann:EI0002", "ascend.signal": "hang"}
    (found,) = enriched(json.dumps(event).encode())
    assert found["error.code"] == "EI0002"
    assert found["ascend.signal"] == ["hang", "timeout"]


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
def test_lines_keep_their_order(lines, end):
    texts = [json.dumps({"n": number, "ascend.error.codes": ["acl:507018"]}) for number in range(3)]
    found = enriched(end.join(texts).encode(), lines)
    assert [event["n"] for event in found] == [0, 1, 2]
    assert all(event["error.code"] == "507018" for event in found)


def test_one_document_over_several_lines_is_one_event():
    batch = Batch(json.dumps(FLAT, indent=2).encode())
    assert not batch.lines


def test_one_line_said_to_be_lines_is_answered_as_lines():
    batch = Batch(json.dumps(FLAT).encode(), lines=True)
    assert b"".join(batch.enriched(CATALOGUE)).endswith(b"\n")


def test_a_byte_order_mark_is_no_mistake():
    assert enriched(b"\xef\xbb\xbf" + json.dumps(FLAT).encode())[0]["error.code"] == "EI0013"


GOOD = b'{"message": "a"}\n'
MISTAKES = {
    "empty": (b"", 1, "the body is empty"),
    "blank": (b" \n\n ", 1, "the body is empty"),
    "no JSON": (b"hello", 1, "not valid JSON"),
    "cut": (b'{"message": "a', 1, "not valid JSON"),
    "third line": (GOOD + GOOD + b'{"message": }\n', 3, "not valid JSON"),
    "after a blank line": (GOOD + b"\n" + b"nonsense\n", 3, "not valid JSON"),
    "within one document": (b'{\n  "message": "a",\n  "b":: 1\n}', 3, "not valid JSON"),
    "array": (b"[]", 1, "an event is a JSON object, not an array; send several as NDJSON"),
    "text": (GOOD + b'"x"', 2, "an event is a JSON object, not a text"),
    "null": (b"null", 1, "an event is a JSON object, not null"),
    "not UTF-8": (b'{"message": "\xff"}', 1, "not valid JSON: str is not valid UTF-8"),
    "half a character": (b'{"message": "\\ud800"}', 1, "not valid JSON"),
    "not a number": (b'{"message": NaN}', 1, "not valid JSON"),
    "message": (GOOD + b'{"message": 5}', 2, "message must be a text"),
    "severity": (b'{"event": {"severity": "high"}}', 1, "event.severity must be a number"),
    "truth is no number": (b'{"event.severity": true}', 1, "event.severity must be a number"),
    "codes": (b'{"ascend.error.codes": [1]}', 1, "ascend.error.codes must be a list of texts"),
    "signal": (b'{"ascend": {"signal": {}}}', 1, "ascend.signal must be a list of texts"),
    "version": (b'{"ascend.cann.version": 8.0}', 1, "ascend.cann.version must be a text"),
    "deep": (b'{"a":' * 400 + b"1" + b"}" * 400, 1, "nested deeper than 250 levels"),
    "far too deep": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 1, "not valid JSON"),
}


@pytest.mark.parametrize(("body", "line", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_with_its_line(body, line, reason):
    with pytest.raises(EventError) as caught:
        Batch(body)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: {reason}")
    assert "\n" not in str(caught.value)


def test_null_is_as_good_as_absent():
    event = dict.fromkeys(READ_FIELDS)
    assert enriched(json.dumps(event).encode()) == [event]


def test_a_code_of_ten_thousand_characters_is_answered():
    code = "cann:" + "E" * 10_000
    (event,) = enriched(json.dumps({"ascend.error.codes": [code]}).encode())
    assert "not in the catalogue" in event["ascend.error.meaning"]
    assert len(event["ascend.error.meaning"]) < 300


def test_an_answer_much_longer_than_its_body_comes_in_pieces():
    body = b'{"ascend.error.codes":["cann:EI0006"]}\n' * 2_000
    sizes = [len(piece) for piece in Batch(body).enriched(CATALOGUE)]
    assert sum(sizes) > 20 * len(body)
    assert max(sizes) < 300_000


# The first look-up reads the catalogue: no deadline.
@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_body_is_a_crash(body):
    try:
        batch = Batch(body)
    except UserError:
        return
    for piece in b"".join(batch.enriched(CATALOGUE)).splitlines():
        json.loads(piece)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    ["ascend", "error", "codes", "ascend.error", "ascend.error.codes", "message", "event", "a"]
)


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON | st.dictionaries(NAMES, JSON, max_size=3), max_size=4))
def test_nothing_else_of_an_event_changes(event):
    body = json.dumps(event).encode()
    try:
        (found,) = enriched(body)
    except EventError:
        return

    def kept(before, after, place=""):
        for name, value in before.items():
            if isinstance(value, dict) and isinstance(after[name], dict):
                kept(value, after[name], f"{place}{name}.")
            elif not f"{place}{name}".startswith(("error.code", "ascend.error.", "ascend.signal")):
                assert after[name] == value

    kept(event, found)


@settings(deadline=None)
@given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(), max_size=2) | st.integers(), max_size=3))
def test_what_is_put_is_got(document):
    put(document, "ascend.error.meaning", "m")
    assert get(document, "ascend.error.meaning") == "m"


class Recording(Mapping):
    """A mapping that remembers what it was asked for."""

    def __init__(self, fields: dict) -> None:
        self.fields, self.asked = fields, set()

    def __getitem__(self, name):
        self.asked.add(name)
        return self.fields[name]

    def __iter__(self):
        return iter(self.fields)

    def __len__(self):
        return len(self.fields)


def test_the_fields_that_are_read_are_listed():
    asked = set()
    for fields in (FLAT, {**FLAT, "ascend.cann.version": "8.0"}, {"message": "No space left on device"}):
        recording = Recording(fields)
        enrich(recording, CATALOGUE)
        asked |= recording.asked
    assert asked == set(READ_FIELDS)
