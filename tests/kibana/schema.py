"""The frozen JSON Schemas of what each generation of Kibana takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators
from referencing import Registry, Resource

_DIRECTORY = Path(__file__).with_name("schemas")


def _content(validator: Any, schema: Any, instance: Any, _parent: Any) -> Iterator[ValidationError]:
    """Objects hold JSON as strings; the schema says of what."""
    if not isinstance(instance, str):
        return
    try:
        value = json.loads(instance)
    except ValueError as error:
        yield ValidationError(f"not JSON: {error}")
        return
    yield from validator.descend(value, schema)


_Validator = validators.extend(Draft202012Validator, {"contentSchema": _content})


@cache
def validator(target: str) -> Any:
    """The validator of one target's saved objects."""
    documents = {path.name: yaml.safe_load(path.read_text()) for path in _DIRECTORY.glob("*.schema.yml")}
    registry = Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in documents.values()
    )
    return _Validator(documents[f"{target}.schema.yml"], registry=registry)


def problems(target: str, saved_object: dict[str, Any]) -> list[str]:
    """What is wrong with an object, deepest causes first; empty when it is valid."""
    found = []
    for error in validator(target).iter_errors(saved_object):
        # Which alternative was meant shows in the error that went deepest.
        while error.context:
            error = max(error.context, key=lambda one: (len(one.absolute_path), -len(one.context or ())))
        where = "/".join(map(str, error.absolute_path))
        found.append(f"{saved_object.get('type')} {saved_object.get('id')}: {where}: {error.message[:300]}")
    return found
