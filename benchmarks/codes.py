"""Speed of the error-code catalogue on one core: ``python -m benchmarks.codes [--seconds 2]``.

Messages are those of the signatures' samples, of the extractors' samples and of ordinary WARNING and ERROR
lines, each made different by a counter, so that nothing is remembered from one line to the next.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from ascend_elk.cann import Version
from ascend_elk.codes import Catalogue
from ascend_elk.codes.loader import read
from ascend_elk.codes.models import SignaturesFile
from ascend_elk.content import content_dir
from ascend_elk.enrich import enrich
from ascend_elk.formats import compile_program, load_definitions
from ascend_elk.parse.extraction import Extraction

ORDINARY = [
    "[Init][Group]group[hccl_world_group] has been initialised by another thread, wait for it to end",
    "ProcLogicCqReport:ignore logic cq report, device_id=0, stream_id=5, sq_id=3, sq_head=17",
    "GetStreamLatestMaxTaskId:stream_id=12, task id turns over, last=65535, flip=3",
    "LoadOpsProto:so libcust_opsproto_rt2.0.so is loaded from the vendors directory, build type 1",
    "open file /home/user/kernel_meta/te_add_5f1c.json returned with errno 2, the next path is tried",
]
CODES = ["cann:EI0006", "acl:507018", "rt:0x0715002a", "ts:0x2a", "hccl:0x0000000005000009", "dms:0x81078603"]
WRITTEN = ["EI0006", "507018", "0x715002a", "errNo[0x0000000005000009]", "0x81078603", "ERR00100"]


def rate(step: Callable[[], int], seconds: float) -> float:
    """Things done per second of CPU; the median of five rounds."""
    rates = []
    for _ in range(5):
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds / 5:
            done += step()
        rates.append(done / spent)
    return statistics.median(rates)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="CPU seconds for each figure")
    seconds = parser.parse_args().seconds

    start = time.perf_counter()
    catalogue = Catalogue.load()
    loaded = time.perf_counter() - start
    sum(1 for _ in catalogue.entries())
    everything = time.perf_counter() - start

    version = Version.parse("8.0.RC3")
    definitions = load_definitions()
    program = compile_program(definitions)
    extraction = Extraction(program.extractors, program.definitions.headline, program.definitions.grok)
    samples = [sample.message for item in program.extractors for sample in item.samples if sample.message]
    signatures = read(content_dir("codes") / "signatures.yml", SignaturesFile).signatures
    samples += [text for one in signatures for text in one.samples]
    # As in real logs, most lines carry no fault that is known.
    texts = [*samples, *ORDINARY * (len(samples) // 2)]
    messages = [f"{text} #{number}" for number, text in enumerate(texts)]

    def look_up() -> int:
        for _ in range(1_000):
            for code in CODES:
                catalogue.lookup(code, version)
            for code in WRITTEN:
                catalogue.lookup(code)
        return 1_000 * (len(CODES) + len(WRITTEN))

    def match() -> int:
        for message in messages:
            catalogue.signatures.match(message)
        return len(messages)

    def whole() -> int:
        for message in messages:
            fields: dict[str, Any] = {"message": message, "event.severity": 3, "ascend.module": "HCCL"}
            extraction.apply(message, fields)
            enrich(fields, catalogue, version)
        return len(messages)

    table = Table(box=None, pad_edge=False)
    table.add_column("what")
    table.add_column("measured", justify="right")
    table.add_column("wanted", justify="right")
    table.add_row("load, ready for look-ups", f"{loaded:.3f} s", "0.3 s")
    table.add_row("load, all families read", f"{everything:.3f} s", "")
    table.add_row("look-ups", f"{rate(look_up, seconds):,.0f} /s", "500,000 /s")
    table.add_row("messages against all signatures", f"{rate(match, seconds):,.0f} /s", "100,000 /s")
    table.add_row(
        "messages: codes of all families, signatures, texts", f"{rate(whole, seconds):,.0f} /s", "100,000 /s"
    )
    Console().print(table)


if __name__ == "__main__":
    main()
