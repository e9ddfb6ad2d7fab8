"""What the set-up job does in a new Elasticsearch: the user of Kibana, content, keys."""

from __future__ import annotations

from pathlib import Path

from ascend_elk.stack import access
from ascend_elk.stack.elasticsearch import Elasticsearch
from ascend_elk.stack.http import ApiError

# What a person may add to the templates, see docs/deploy.md
_CUSTOM = "ascend-elk@custom"
_BOTH_MISSING = 404


def set_kibana_password(elasticsearch: Elasticsearch, password: str) -> None:
    """Set the password of the user as which Kibana logs in."""
    elasticsearch.server.request(
        "POST", "/_security/user/kibana_system/_password", json={"password": password}
    )


def keep_no_copies(elasticsearch: Elasticsearch) -> bool:
    """Say that one node keeps no second copy of a shard, unless somebody has already said something else.

    Returns:
        Whether it was said now.
    """
    if elasticsearch.read("component-template", _CUSTOM) is not None:
        return False
    body = {"template": {"settings": {"number_of_replicas": 0}}, "_meta": {"managed_by": "ascend-elk"}}
    elasticsearch.write("component-template", _CUSTOM, body)
    return True


def end_lost_keys(elasticsearch: Elasticsearch, keys_file: Path) -> list[str]:
    """End the keys whose secrets nobody has any more, so that install makes new ones.

    Returns:
        Their names.
    """
    if keys_file.exists():
        return []
    ended = []
    for name in access.API_KEYS:
        try:
            living = elasticsearch.live_api_keys(name)
        except ApiError as error:
            if error.status == _BOTH_MISSING:
                continue
            raise
        if living:
            elasticsearch.invalidate_api_keys(living)
            ended.append(name)
    return ended
