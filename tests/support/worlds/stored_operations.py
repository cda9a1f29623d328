"""Operations as a released version has stored them: how the fixtures are written and read.

A fixture file holds one story: an operation from its request to its end. Each case of it is a moment between two writes:
the documents as they were in the store, the messages that still were in their outboxes, and the commands that were sent
and not answered. A part that a file would hold several times is written once, under ``parts``.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from kubevnfm_secrets import KeyRing

Json = dict[str, Any]

FIXTURES: Final = Path(__file__).parents[2] / "fixtures/stored"
NEXT: Final = "next"
"""The folder for stories that came after the newest release."""
KEY_FILE: Final = "key.txt"
OPERATIONS: Final = "vnf_lcm_op_occs"
INSTANCES: Final = "vnf_instances"
SNAPSHOTS: Final = "vnf_snapshots"
_REFERENCE: Final = "$part"
_WORTH_A_PART: Final = 200
"""Characters of JSON below which a repetition is written out."""


@dataclass(frozen=True)
class StoredDocument:
    """A document of the store."""

    collection: str
    id: str
    body: Json
    outbox: list[Json] = field(default_factory=list)
    """Its messages that were not sent yet, oldest first, as CloudEvents objects."""


@dataclass(frozen=True)
class End:
    """The end of a case."""

    state: str
    """The operation's."""
    operation: Json
    """The occurrence as GET shows it, less what differs from run to run."""
    instance: Json | None
    """The instance as GET shows it; None: it is deleted."""
    asked: list[list[Any]]
    """Operation, step, attempt and type of each command, sorted."""


@dataclass(frozen=True)
class Case:
    """A moment of a story."""

    name: str
    now: str
    """The time of that moment (RFC 3339)."""
    documents: list[StoredDocument]
    sent: list[Json]
    """Commands that were sent and not answered, as CloudEvents objects."""
    ends: dict[str, End] = field(default_factory=dict)
    """Its ends in the version that stored it, by the way it was led to its end (`stored_replay.WAYS`)."""


@dataclass(frozen=True)
class StoryFile:
    """A story with its cases."""

    name: str
    operation_id: str
    """The operation that the story is about."""
    instance_id: str
    plans: list[str]
    """The plans that occur in its cases."""
    steps: list[str]
    """The kinds of steps that were asked or done in its cases."""
    answers: Json
    """The answers of services (``type`` and ``data`` of an event), as `lcm_world.ServiceTwins.answers` has them."""
    remains: Json | None
    """The resources that a failure reports as left."""
    grant_request: Json | None
    """The request that the NFVO got; None: the operation is granted without one."""
    cases: list[Case]


def versions() -> list[str]:
    """Return the folders, the oldest release first, `NEXT` last."""
    names = [folder.name for folder in FIXTURES.iterdir() if folder.is_dir()]
    return sorted(names, key=lambda name: (name == NEXT, [int(part) for part in name.split(".") if part.isdigit()]))


def story_paths() -> list[Path]:
    """Return the fixture files of every version."""
    return [path for version in versions() for path in sorted((FIXTURES / version).glob("*.json"))]


def key_ring(folder: Path) -> KeyRing:
    """Return the key ring that opens the fixtures of the folder."""
    lines = (folder / KEY_FILE).read_text(encoding="utf-8").splitlines()
    return KeyRing.from_text(next(line for line in lines if line and not line.startswith("#")))


def write_story(path: Path, story: StoryFile) -> None:
    """Write the file: one line a case and a part, keys sorted; the same story gives the same bytes."""
    tree = asdict(story)
    counts = Counter(_text(node) for node in _nodes(tree))
    parts: dict[str, str] = {}
    packed = _packed(tree, counts, parts)
    cases = ",\n".join(_text(case) for case in packed.pop("cases"))
    head = _text(packed)
    shared = ",\n".join(f"{_text(name)}:{parts[name]}" for name in sorted(parts))
    path.write_text(f'{{"story":{head},\n"cases":[\n{cases}\n],\n"parts":{{\n{shared}\n}}}}\n', encoding="utf-8")


def read_story(path: Path) -> StoryFile:
    """Read what `write_story` wrote."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    tree = _unpacked({**whole["story"], "cases": whole["cases"]}, whole["parts"], {})
    cases = [
        Case(
            **{
                **case,
                "documents": [StoredDocument(**document) for document in case["documents"]],
                "ends": {way: End(**end) for way, end in case["ends"].items()},
            }
        )
        for case in tree["cases"]
    ]
    return StoryFile(**{**tree, "cases": cases})


def _text(tree: object) -> str:
    return json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _nodes(tree: object) -> Iterator[object]:
    """Yield every object and array that is large enough to be shared."""
    if isinstance(tree, dict | list) and len(_text(tree)) >= _WORTH_A_PART:
        yield tree
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(child)


def _packed(tree: Any, counts: Mapping[str, int], parts: dict[str, str], *, is_part: bool = False) -> Any:
    """Return the tree with references in place of what occurs more than once; that is put into ``parts``."""
    if not isinstance(tree, dict | list):
        return tree
    text = _text(tree)
    if not is_part and counts.get(text, 0) > 1:
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        if name not in parts:
            parts[name] = _text(_packed(tree, counts, parts, is_part=True))
        return {_REFERENCE: name}
    if isinstance(tree, dict):
        return {name: _packed(child, counts, parts) for name, child in tree.items()}
    return [_packed(child, counts, parts) for child in tree]


def _unpacked(tree: Any, parts: Mapping[str, Any], done: dict[str, Any]) -> Any:
    """Return the tree with the parts in place of references; ``done``: the unpacked parts, which all references share."""
    if isinstance(tree, dict):
        if set(tree) == {_REFERENCE}:
            name = tree[_REFERENCE]
            if name not in done:
                done[name] = _unpacked(parts[name], parts, done)
            return done[name]
        return {name: _unpacked(child, parts, done) for name, child in tree.items()}
    return [_unpacked(child, parts, done) for child in tree] if isinstance(tree, list) else tree
