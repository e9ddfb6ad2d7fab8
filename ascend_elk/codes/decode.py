"""What the digits of a structured code say, whether the catalogue lists it or not.

Bit layouts: HCCL errNo (module 8, submodule 8, result 16), runtime retCode (module 0x07, submodule 8,
index 16), GE status (runtime 2, type 2, level 3, system 8, module 5, value 12), DMS event (side 2, zero 2,
node 11, sensor 8, state 9), black-box exception (side 2, assertion 2, level 3, core 8, number 17).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ascend_elk.codes.models import Phrase


@dataclass(frozen=True)
class Fact:
    """One thing that a code's digits say."""

    label: str
    label_zh: str
    value: str
    value_zh: str


@dataclass(frozen=True)
class Decoding:
    """A code read by its shape."""

    family: str
    code: str
    title: str
    title_zh: str
    known: bool
    facts: tuple[Fact, ...]

    @property
    def key(self) -> str:
        """``family:code``."""
        return f"{self.family}:{self.code}"

    def sentence(self, language: str = "en") -> str:
        """What the shape says, for people."""
        if language == "zh":
            facts = "，".join(f"{fact.label_zh} {fact.value_zh}" for fact in self.facts)
            return f"{self.title_zh}：{facts}" if facts else self.title_zh
        facts = ", ".join(f"{fact.label} {fact.value}" for fact in self.facts)
        return f"{self.title}: {facts}" if facts else self.title


def parts_of(family: str, code: str) -> dict[str, str]:
    """The named parts of a normalised code, for example ``{"node": "0x83", "fault": "0xc3.0x3"}``.

    The names are those of the ``parts`` tables in the family's file; empty where a code has no structure.
    """
    decoder = _DECODERS.get(family)
    return decoder(code) if decoder is not None else {}


def facts_of(family: str, code: str, phrases: Mapping[str, Mapping[str, Phrase]]) -> tuple[Fact, ...]:
    """The parts of a code in words, as far as the family's file has them."""
    facts = []
    for part, name in parts_of(family, code).items():
        phrase = phrases.get(part, {}).get(name)
        label, label_zh = _LABELS[part]
        unknown = phrase is None and part in phrases
        value = f"{name} (not known)" if unknown else name
        value_zh = f"{name}（未知）" if unknown else name
        if phrase is not None:
            value = phrase.en if phrase.en == name else f"{phrase.en} ({name})"
            value_zh = phrase.zh if phrase.en == name else f"{phrase.zh}（{name}）"
        facts.append(Fact(label, label_zh, value, value_zh))
    return tuple(facts)


def aicore_bits(code: str) -> list[str]:
    """The bits set in ``(w0,w1,w2)``, as the AI Core family names them: ``word0.bit23``.

    All words zero means that no unit reported an error: a time-out or a trap.
    """
    bits = []
    for index, word in enumerate(code.strip("()").split(",")):
        number = int(word, 16)
        bits += [f"word{index}.bit{bit}" for bit in range(number.bit_length()) if number >> bit & 1]
    return bits


def _cann(code: str) -> dict[str, str]:
    kind = "inner" if code[2:] in ("9999", "8888") else "report"
    return {"class": code[0], "segment": code[1], "kind": kind}


def _acl(code: str) -> dict[str, str]:
    return {"class": code[0], "module": code[1:3]}


def _rt(code: str) -> dict[str, str]:
    number = int(code, 16)
    return {"submodule": f"0x{number >> 16 & 0xFF:02x}", "index": f"0x{number & 0xFFFF:x}"}


def _hccl(code: str) -> dict[str, str]:
    number = int(code, 16)
    return {"submodule": str(number >> 16 & 0xFF), "result": str(number & 0xFFFF)}


def _ge(code: str) -> dict[str, str]:
    number = int(code)
    return {"module": str(number >> 12 & 0x1F), "value": str(number & 0xFFF)}


def _dms(code: str) -> dict[str, str]:
    number = int(code, 16)
    return {
        "side": "host" if number >> 30 == 1 else "device",
        "node": f"0x{number >> 17 & 0x7FF:x}",
        "sensor": f"0x{number >> 9 & 0xFF:x}",
        "fault": f"0x{number >> 9 & 0xFF:x}.0x{number & 0x1FF:x}",
    }


def _bbox(code: str) -> dict[str, str]:
    number = int(code, 16)
    return {
        "side": "host" if number >> 30 == 1 else "device",
        "assertion": {1: "recovered", 2: "raised", 3: "occurred"}.get(number >> 28 & 3, "?"),
        "level": str(number >> 25 & 7),
        "core": f"0x{number >> 17 & 0xFF:x}",
        "exception": f"0x{number & 0x1FFFF:x}",
    }


def _torch(code: str) -> dict[str, str]:
    return {"submodule": code[3:5], "type": code[5:]}


def _mindie(code: str) -> dict[str, str]:
    return {"component": code[3:5], "number": code[6:]}


def _aicore(code: str) -> dict[str, str]:
    return {"bits": " ".join(aicore_bits(code)) or "none"} if code.startswith("(") else {}


def _bmc(code: str) -> dict[str, str]:
    return {"unit": code[2:4], "event": code[4:]}


_DECODERS: dict[str, Callable[[str], dict[str, str]]] = {
    "cann": _cann,
    "acl": _acl,
    "aclnn": _acl,
    "hccp": _acl,
    "rt": _rt,
    "hccl": _hccl,
    "ge": _ge,
    "dms": _dms,
    "bbox": _bbox,
    "torch": _torch,
    "mindie": _mindie,
    "aicore": _aicore,
    "bmc": _bmc,
}

_LABELS = {
    "class": ("class", "类别"),
    "segment": ("reported by", "上报模块"),
    "kind": ("kind", "类型"),
    "module": ("module", "模块"),
    "submodule": ("submodule", "子模块"),
    "index": ("index", "序号"),
    "result": ("result", "结果码"),
    "value": ("value", "值"),
    "side": ("side", "侧别"),
    "node": ("node", "节点"),
    "sensor": ("sensor", "传感器"),
    "fault": ("state", "状态"),
    "assertion": ("assertion", "断言"),
    "level": ("level", "级别"),
    "core": ("core", "核"),
    "exception": ("exception number", "异常号"),
    "type": ("type", "错误类型"),
    "component": ("component", "组件"),
    "number": ("number", "编号"),
    "bits": ("bits", "置位"),
    "unit": ("unit", "部件"),
    "event": ("event", "事件"),
}
