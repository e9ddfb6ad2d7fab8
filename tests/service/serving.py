"""A service in a process of its own, for tests of what only a real server shows: ``python -m tests.service.serving``.

A certificate and its key may be given.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ascend_elk.service import logs
from ascend_elk.service.api import create_app
from ascend_elk.service.catalogue import CatalogueHolder
from ascend_elk.service.health import Health
from ascend_elk.service.metrics import Metrics
from ascend_elk.service.server import listen, make_server


def main() -> None:
    """Print the port, then serve."""
    logs.configure(json=True)
    health = Health(silence=None)
    health.become_ready()
    app = create_app(CatalogueHolder(), Metrics(), health)
    with listen("127.0.0.1", 0) as listening:
        print(listening.getsockname()[1], flush=True)
        certificate, key = (*map(Path, sys.argv[1:3]), None, None)[:2]
        make_server(app, certificate=certificate, key=key).run(sockets=[listening])


if __name__ == "__main__":
    main()
