"""The golden examples: every message that was ever sent must stay readable, and is written again without loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_events import InvalidMessage, decode
from kubevnfm_events.schema import ROOT
from kubevnfm_secrets import KeyRing

RING = KeyRing.from_text(KeyRing.new_key())
EXAMPLES = sorted((ROOT / "examples").glob("*.json"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_read_and_written_again_without_loss(path: Path) -> None:
    """It ignores what a later version adds."""
    example = json.loads(path.read_text(encoding="utf-8"))

    read = decode(path.read_bytes())
    written = json.loads(read.encode(RING))

    assert read.type == path.stem
    assert lost(example, written) == []
    assert decode(read.encode(RING)) == read

    example["laterattribute"] = "x"
    example["data"]["added_by_a_later_version"] = {"a": 1}

    assert decode(json.dumps(example)) == read


def test_no_secret_is_in_clear() -> None:
    secret = {"password", "bearer_token", "certificate_key", "registry_password", "credential_secret"}
    found = [
        (path.name, name, value)
        for path in EXAMPLES
        for name, value in leaves(json.loads(path.read_text(encoding="utf-8")))
        if name in secret
    ]
    assert {name for _, name, _ in found} == secret
    assert [(path, name) for path, name, value in found if set(value) != {"$sealed"}] == []


@pytest.mark.parametrize("attribute", ["specversion", "id", "source", "type"])
def test_an_envelope_without_a_required_attribute_is_refused_by_name(attribute: str) -> None:
    example = json.loads(EXAMPLES[0].read_text(encoding="utf-8"))
    del example[attribute]
    with pytest.raises(InvalidMessage, match=attribute):
        decode(json.dumps(example))


def test_an_envelope_of_another_version_of_cloudevents_is_refused() -> None:
    example = json.loads(EXAMPLES[0].read_text(encoding="utf-8")) | {"specversion": "2.0"}
    with pytest.raises(InvalidMessage, match=r"specversion: expected 1\.0, got 2\.0"):
        decode(json.dumps(example))


def lost(before: Any, after: Any, path: str = "") -> list[str]:
    """Return the paths at which ``after`` lacks or changes something of ``before``; a later version may add more."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            place
            for name, value in before.items()
            for place in (lost(value, after[name], f"{path}/{name}") if name in after else [f"{path}/{name}"])
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [
            place
            for number, (one, other) in enumerate(zip(before, after, strict=True))
            for place in lost(one, other, f"{path}/{number}")
        ]
    return [] if before == after else [path]


def leaves(node: Any, name: str = "") -> list[tuple[str, Any]]:
    if isinstance(node, dict) and "$sealed" not in node:
        return [leaf for key, value in node.items() for leaf in leaves(value, key)]
    if isinstance(node, list):
        return [leaf for value in node for leaf in leaves(value, name)]
    return [(name, node)]
