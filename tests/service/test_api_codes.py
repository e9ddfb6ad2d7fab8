"""``GET /v1/codes/{code}``, ``GET /v1/codes`` and the start page: JSON and pages."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest

from ascend_elk.codes.models import JSON_KEYS
from ascend_elk.stack.objects import build_objects
from ascend_elk.stack.source import load_source
from ascend_elk.stack.targets import TARGETS

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


class Page(HTMLParser):
    """The text, the links and the attributes of a page."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == [], "elements that are not closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(client, path, **options) -> Page:
    answer = client.get(path, headers={**BROWSER, "accept-language": "en"}, **options)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


# JSON


def test_a_code_is_explained_as_the_command_line_does(client, holder):
    found = client.get("/v1/codes/ei0006?cann=8.0").json()
    (entry,) = holder.current.lookup("EI0006", family="cann")[:1]
    assert found["code"] == "ei0006"
    assert found["known"] is True
    (meaning,) = found["meanings"]
    assert {name: meaning[name] for name in JSON_KEYS} == entry.as_json()
    assert meaning["reference"] == "/v1/codes/cann:EI0006"
    assert "dms:0x81078603" in meaning["causes"]


def test_a_number_used_again_has_all_its_meanings_without_a_version(client):
    meanings = client.get("/v1/codes/EI0006").json()["meanings"]
    assert len(meanings) == 2
    assert meanings[1]["until"] == "5.1.RC1"


def test_cause_and_effect_lead_both_ways(client):
    cause = client.get("/v1/codes/dms:0x81078603").json()["meanings"][0]
    effect = client.get("/v1/codes/cann:EI0006?cann=8.0").json()["meanings"][0]
    assert "cann:EI0006" in cause["effects"]
    assert "dms:0x81078603" in effect["causes"]


def test_an_unknown_code_is_decoded_and_near_ones_are_named(client):
    answer = client.get("/v1/codes/0x80e01802")
    assert answer.status_code == 404
    found = answer.json()
    assert found["known"] is False
    assert found["meanings"] == []
    (decoding,) = found["decodings"]
    assert decoding["family"] == "dms"
    facts = {fact["label"]: fact["value"] for fact in decoding["facts"]}
    assert facts["side"] == "device"
    assert facts["node"] == "HBM (on-package memory) (0x70)"
    assert found["suggestions"][0]["code"] == "dms:0x80e01801"


@pytest.mark.parametrize(
    ("asked", "near"),
    [
        ("EIO006", "cann:EI0006"),
        ("EI006", "cann:EI0006"),
        ("507019999", None),
        ("disk-ful", "disk-full"),
        ("ACL_ERROR_RT_SOCKET_CLOSE", "acl:507901"),
        ("socket timeout", "cann:EI0006"),
        ("cann:EI0O06", "cann:EI0006"),
    ],
)
def test_what_is_written_wrong_is_found(client, asked, near):
    answer = client.get(f"/v1/codes/{asked}")
    assert answer.status_code == 404
    codes = [link["code"] for link in answer.json()["suggestions"]]
    assert near is None or near in codes


def test_a_message_without_a_code_has_its_answer(client):
    found = client.get("/v1/codes/disk-full").json()
    assert found["known"] is True
    assert ["No space left on device"] in found["message"]["texts"]


@pytest.mark.parametrize(
    "code",
    [
        "errNo[0x0000000005000009]",
        "(0x0,0x1000000,0x0)",
        "(0, 0x01000000, 0)",
        "cann%3AEI0006",
        "error%20code%20is%20507018",
    ],
)
def test_a_code_is_found_as_the_log_writes_it(client, code):
    assert client.get(f"/v1/codes/{code}").json()["known"] is True


@pytest.mark.parametrize(
    "code", ["E" * 10_000, "汉" * 7_000, "%00", "a/b/c", "%2F..%2F..", "..%2f", "%ff", "(" * 5_000]
)
@pytest.mark.parametrize("kind", ["json", "html"])
def test_no_text_breaks_the_answer(client, code, kind):
    answer = client.get(f"/v1/codes/{code}?format={kind}")
    assert answer.status_code == 404
    # Links of the page hold its path.
    assert len(answer.content) < 30_000 + 4 * len(answer.request.url.raw_path)


def test_search_finds_by_words_of_both_languages(client):
    found = client.get("/v1/codes", params={"q": "socket time"}).json()
    assert found["results"][0]["code"] == "EI0006"
    assert any(
        one["code"] == "EI0006" for one in client.get("/v1/codes", params={"q": "建链超时"}).json()["results"]
    )
    assert any(
        one["name"] == "disk-full"
        for one in client.get("/v1/codes", params={"q": "disk full"}).json()["messages"]
    )


def test_search_by_symbol_and_by_code(client):
    by_symbol = client.get("/v1/codes", params={"q": "ACL_ERROR_RT_SOCKET_CLOSE"}).json()
    by_code = client.get("/v1/codes", params={"q": "errNo[0x0000000005000009]"}).json()
    assert by_symbol["results"][0]["code"] == "507901"
    assert by_code["results"][0]["code"] == "0x0000000005000009"


def test_search_says_when_there_is_more(client):
    found = client.get("/v1/codes", params={"q": "e"}).json()
    assert len(found["results"]) == 50
    assert found["more"] is True


def test_a_family_is_listed_whole(client, holder):
    found = client.get("/v1/codes?family=hccl").json()
    assert len(found["results"]) == len(list(holder.current.entries("hccl")))
    assert found["messages"] == []
    messages = client.get("/v1/codes?family=messages").json()
    assert len(messages["messages"]) == len(holder.current.signatures)
    assert messages["results"] == []


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/v1/codes", "give words after ?q="),
        ("/v1/codes?family=hcll", "there is no code family 'hcll'"),
        (f"/v1/codes?q={'x' * 201}", "longer than 200 characters"),
        ("/v1/codes/EI0006?cann=x", "'x' is not a CANN version"),
        ("/v1/codes/EI0006?format=xml", "format 'xml' is not known"),
    ],
)
def test_a_wrong_question_is_answered_with_one_sentence(client, path, says):
    answer = client.get(path)
    assert answer.status_code == 400
    assert says in answer.json()["error"]


@pytest.mark.parametrize("text", ["all", "auto", ""])
def test_no_version_decides_nothing(client, text):
    assert len(client.get(f"/v1/codes/EI0006?cann={text}").json()["meanings"]) == 2


# Pages


@pytest.mark.parametrize(
    ("accept", "query", "kind"),
    [
        (BROWSER["accept"], "", "text/html"),
        ("*/*", "", "application/json"),
        ("", "", "application/json"),
        ("application/json, text/html;q=0.9", "", "application/json"),
        ("text/html;q=0, */*", "", "application/json"),
        ("text/*", "", "text/html"),
        ("text/html;q=nonsense, application/json", "", "application/json"),
        ("*/*", "?format=html", "text/html"),
        (BROWSER["accept"], "?format=json", "application/json"),
    ],
)
def test_browsers_get_pages_and_programs_json(client, accept, query, kind):
    for code in ("EI0006", "EI0099"):
        answer = client.get(f"/v1/codes/{code}{query}", headers={"accept": accept})
        assert answer.headers["content-type"].partition(";")[0] == kind
        assert "Accept" in answer.headers["vary"]


@pytest.mark.parametrize(
    ("header", "query", "language"),
    [
        ("", "", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "", "zh-Hans"),
        ("en-US,zh;q=0.9", "", "en"),
        ("de, zh;q=0.5, en;q=0.4", "", "zh-Hans"),
        ("zh-CN", "lang=en", "en"),
        ("en", "lang=zh", "zh-Hans"),
        ("en", "lang=fr", "en"),
    ],
)
def test_the_language_is_the_readers(client, header, query, language):
    answer = client.get(f"/v1/codes/EI0006?format=html&{query}", headers={"accept-language": header})
    assert Page(answer.text).all("html") == [{"lang": language}]


def test_the_page_says_what_there_is_to_know(client, holder):
    entry = holder.current.lookup("dms:0x80e01801")[0]
    page = page_of(client, "/v1/codes/0x80e01801")
    for text in (
        entry.meaning,
        "npu-smi info -t ecc -i N",
        "the device number",
        "critical",
        entry.source,
        "RestartBusiness",
    ):
        assert text in page.text
    assert any(unquote(link).split("?")[0].endswith("/v1/codes/acl:507054") for link in page.links)


def test_the_page_in_chinese_has_the_chinese_texts(client, holder):
    entry = holder.current.lookup("dms:0x80e01801")[0]
    page = page_of(client, "/v1/codes/0x80e01801?lang=zh")
    assert entry.meaning_zh in page.text
    assert "处理建议" in page.text
    assert entry.meaning not in page.text


def test_the_switch_keeps_code_and_version(client):
    page = page_of(client, "/v1/codes/EI0006?cann=5.0.4")
    (switch,) = [tag for tag in page.all("a") if tag.get("hreflang") == "zh"]
    target = urljoin("http://testserver/v1/codes/EI0006", switch["href"])
    assert urlsplit(target).path == "/v1/codes/EI0006"
    other = Page(client.get(target, headers=BROWSER).text)
    assert other.all("html") == [{"lang": "zh-Hans"}]
    assert "5.0.4" in other.text


def test_a_reused_number_shows_both_meanings_and_asks_for_the_version(client, holder):
    page = page_of(client, "/v1/codes/EI0006")
    for entry in holder.current.lookup("EI0006"):
        assert entry.meaning in page.text
        assert entry.versions() in page.text
    assert "This number was used again" in page.text
    assert any(field.get("name") == "cann" for field in page.all("input"))
    decided = page_of(client, "/v1/codes/EI0006?cann=8.0")
    assert "This number was used again" not in decided.text
    assert "A resource that was passed in is wrong." not in decided.text
    assert "For CANN 8.0" in decided.text


def test_a_number_of_several_families_says_so(client):
    page = page_of(client, "/v1/codes/6")
    assert "This number exists in several families" in page.text
    assert "DRV_ERROR_OUT_OF_MEMORY" in page.text
    assert "HCCL_E_NOT_FOUND" in page.text


def test_several_bits_are_no_several_families(client):
    page = page_of(client, "/v1/codes/(0x2,0x1000000,0x0)")
    assert "word0.bit1" in page.text
    assert "word1.bit24" in page.text
    assert "several families" not in page.text


def test_the_page_of_an_unknown_code_helps_on(client):
    page = page_of(client, "/v1/codes/EI0099")
    assert "Not in the catalogue" in page.text
    assert "HCCL (I)" in page.text
    assert "Did you mean" in page.text
    assert "cann:EI0009" in page.text


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "javascript:alert(1)"]
)
@pytest.mark.parametrize(
    "path", ["/v1/codes/{}", "/v1/codes?q={}", "/v1/codes?family={}", "/v1/codes/EI0006?cann={}", "/{}"]
)
def test_what_is_asked_is_shown_as_text(client, path, text):
    quoted = re.sub(r"[^\w]", lambda match: f"%{ord(match.group()):02X}", text)
    answer = client.get(path.format(quoted), headers=BROWSER, follow_redirects=True)
    page = Page(answer.text)
    assert page.all("script") == []
    assert page.all("img") == []
    assert not any(link.startswith("javascript") for link in page.links)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/codes/EI0006",
        "/v1/codes/EI0099",
        "/v1/codes?q=socket",
        "/v1/codes?family=cann",
        "/docs",
        "/nothing",
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_pages_need_nothing_from_elsewhere(client, path, language):
    answer = (
        client.get(path, params={"lang": language}, headers=BROWSER)
        if "?" not in path
        else client.get(f"{path}&lang={language}", headers=BROWSER)
    )
    page = Page(answer.text)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any("style" in attributes for _, attributes in page.tags)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "http" not in " ".join(link for link in page.links)
    assert "sha256-" in answer.headers["content-security-policy"]
    assert [tag["content"] for tag in page.all("meta") if tag.get("name") == "viewport"] == [
        "width=device-width, initial-scale=1"
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/codes/",
        "/v1/codes/EI0006",
        "/v1/codes/a%2Fb",
        "/v1/codes/a/b",
        "/v1/codes?q=socket",
        "/v1/codes/6",
        "/docs",
        "/no/where",
    ],
)
@pytest.mark.parametrize("prefix", ["", "/ascend"])
def test_links_hold_behind_a_proxy_with_a_prefix(client, prefix, path):
    # The proxy takes the prefix away; the browser resolves links against what it asked for.
    text = client.get(path, headers=BROWSER).text
    for link in Page(text).links:
        if link.startswith("#"):
            continue
        target = urlsplit(urljoin(f"http://proxy{prefix}{path}", link))
        assert target.path.startswith(f"{prefix}/")
        inner = target.path.removeprefix(prefix)
        assert inner in ("/", "/docs", "/openapi.json", urlsplit(path).path) or inner.startswith("/v1/codes")


def test_every_link_of_a_code_page_leads_somewhere(client):
    for path in (
        "/",
        "/v1/codes/EI0006",
        "/v1/codes/507899",
        "/v1/codes/EI0099",
        "/v1/codes?q=socket",
        "/docs",
    ):
        for link in Page(client.get(path, headers=BROWSER).text).links:
            target = urljoin(f"http://testserver{path}", link)
            expected = 404 if "EI0099" in target else 200
            assert client.get(target).status_code == expected, target


def test_a_search_for_a_code_opens_its_page(client):
    answer = client.get("/v1/codes", params={"q": "errNo[0x0000000005000009]"}, headers=BROWSER)
    assert answer.status_code == 303
    page = page_of(client, urljoin("http://testserver/v1/codes", answer.headers["location"]))
    assert "0x0000000005000009" in page.text


def test_a_search_for_a_code_that_is_not_known_opens_its_page(client):
    answer = client.get("/v1/codes", params={"q": "EI0099"}, headers=BROWSER)
    assert answer.status_code == 303


def test_a_search_for_words_lists_what_has_them(client):
    page = page_of(client, "/v1/codes?q=socket")
    assert "cann:EI0006" in page.text
    assert "no code has these words" in page_of(client, "/v1/codes?q=qqqqq+wwwww").text.lower()


def test_every_code_has_a_page_in_both_languages(client, holder):
    # One of each family, and every code that was used again: what the templates must cope with.
    seen, keys = set(), []
    for entry in holder.current.entries():
        if (
            entry.family not in seen
            or entry.emitter
            or entry.hardware
            or entry.wraps
            or entry.effects
            or entry.note
        ):
            seen.add(entry.family)
            keys.append(entry.key)
    keys = list(dict.fromkeys(keys))[::7] + [next(iter(holder.current.entries(name))).key for name in seen]
    for key in keys:
        for language in ("en", "zh"):
            answer = client.get(f"/v1/codes/{key}", params={"lang": language, "format": "html"})
            assert answer.status_code == 200, key
            Page(answer.text)


def test_kibanas_links_open_the_page_of_every_familys_codes(client, holder):
    objects = build_objects(load_source(), TARGETS["8.x"], code_page="http://testserver")
    formats = json.loads(
        next(one for one in objects if one["type"] == "index-pattern")["attributes"]["fieldFormatMap"]
    )
    for name in holder.current.families:
        entry = next(iter(holder.current.entries(name)))
        for field, value in (
            ("error.code", entry.code),
            ("ascend.error.codes", entry.key),
            ("ascend.error.reference", entry.reference),
        ):
            # Kibana fills in the value percent-encoded.
            target = formats[field]["params"]["urlTemplate"].replace("{{value}}", quote(value, safe="!'()*~"))
            page = page_of(client, target)
            assert entry.code in page.text, target
    # A fault without a code has only its reference.
    reference = quote(holder.current.signatures.get("disk-full").reference, safe="")
    assert "disk-full" in page_of(client, f"/v1/codes/{reference}").text


def test_the_texts_of_the_pages_exist_in_both_languages():
    from ascend_elk.codes.models import SEVERITIES, Category, Layer
    from ascend_elk.service.pages import _words

    words = _words()
    assert all(len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in words.values())
    for name in SEVERITIES:
        assert f"severity_{name}" in words
    for kind, values in (("layer", Layer), ("category", Category)):
        for name in values.__args__:
            assert f"{kind}_{name}" in words
