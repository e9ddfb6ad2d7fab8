"""Roles and API keys with the least that each part needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ascend_elk.errors import UserError

Document = dict[str, Any]

STREAMS = "logs-ascend.*-*"
INCIDENTS = "ascend-incidents*"
SERVICE = "ascend-enrich*"

# Name → role. The shippers only add documents; the service reads all, updates and writes verdicts.
ROLES: Mapping[str, Document] = {
    "ascend_elk_shipper": {
        "cluster": ["monitor"],
        "indices": [
            {"names": [STREAMS], "privileges": ["create_doc", "auto_configure", "view_index_metadata"]}
        ],
    },
    "ascend_elk_enricher": {
        "cluster": ["monitor"],
        "indices": [
            {"names": [STREAMS], "privileges": ["read", "index", "view_index_metadata", "maintenance"]},
            {
                "names": [INCIDENTS, SERVICE],
                "privileges": ["read", "write", "create_index", "view_index_metadata", "maintenance"],
            },
        ],
    },
}

# Name of the key → role whose rights it has.
API_KEYS: Mapping[str, str] = {
    "ascend-elk-shipper": "ascend_elk_shipper",
    "ascend-elk-enricher": "ascend_elk_enricher",
}

READER = "ascend_elk_reader"


def reader_role(space: str) -> Document:
    """The role of people who look: Discover and dashboards of one space, and the data below."""
    return {
        "elasticsearch": {
            "cluster": [],
            "indices": [{"names": [STREAMS, INCIDENTS], "privileges": ["read", "view_index_metadata"]}],
            "run_as": [],
        },
        "kibana": [{"base": [], "spaces": [space], "feature": {"discover": ["read"], "dashboard": ["read"]}}],
    }


def create_secret_file(path: Path) -> int:
    """Create a file that only its owner can read, and open it for writing.

    Raises:
        UserError: it exists, or cannot be made.
    """
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise UserError(f"{path} exists already; name a new file with --keys-file") from None
    except OSError as error:
        raise UserError(f"{path} cannot be created: {error.strerror}") from None


def keys_text(keys: Mapping[str, str]) -> str:
    """Keys as lines of an environment file: ``ASCEND_ELK_SHIPPER_API_KEY=id:key``."""
    return "".join(f"{variable(name)}={secret}\n" for name, secret in keys.items())


def variable(name: str) -> str:
    """Name of the environment variable of a key."""
    return f"{name.replace('-', '_').upper()}_API_KEY"
