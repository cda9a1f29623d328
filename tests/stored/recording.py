"""Records what lcm-api stores, moment by moment, with ids, times and seals that are the same in every run."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from unittest import mock
from uuid import UUID

from kubevnfm_kit.clock import rfc3339
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing
from kubevnfm_store.port import Outgoing
from worlds.lcm_world import FragileStore
from worlds.stored_operations import INSTANCES, OPERATIONS, SNAPSHOTS, Json
from worlds.watched_store import WatchedStore

START: Final = datetime(2026, 1, 1, tzinfo=UTC)


class StoryClock:
    """Stands still until the story goes on."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float = 1.0) -> None:
        self._now += timedelta(seconds=seconds)


class StoryRing(KeyRing):
    """Seals a text always in the same way: what it seals protects nothing."""

    def seal(self, plain: str, *, bound_to: str = "") -> str:
        digest = hashlib.sha256(plain.encode()).digest()
        with mock.patch("kubevnfm_secrets.keyring.os.urandom", lambda count: digest[:count]):
            return super().seal(plain, bound_to=bound_to)


@contextmanager
def counted_ids() -> Iterator[None]:
    """Within the block, random ids are counted ones, by the module that asks: how often others ask changes nothing."""
    counts: Counter[str] = Counter()

    def new_id() -> UUID:
        module = str(sys._getframe(2).f_globals["__name__"])
        counts[module] += 1
        return UUID(bytes=hashlib.sha256(f"{module} {counts[module]}".encode()).digest()[:16], version=4)

    with mock.patch("kubevnfm_kit.ids.uuid4", new_id):
        yield


@dataclass(frozen=True)
class Moment:
    """One write, and all documents after it."""

    now: str
    documents: Mapping[tuple[str, str], Json]
    written: tuple[str, str]
    messages: Sequence[Json]
    """The messages that the write put into the document's outbox."""
    is_deletion: bool = False


@dataclass
class Record:
    """The moments of a story."""

    clock: StoryClock
    names: Mapping[str, str] = field(default_factory=dict)
    """Texts that differ from run to run, and what is written in their place."""
    moments: list[Moment] = field(default_factory=list)
    _documents: dict[tuple[str, str], Json] = field(default_factory=dict)
    _events: int = 0

    def begin(self, documents: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        """Begin with what is there."""
        self._documents = {place: json.loads(json.dumps(body)) for place, body in documents.items()}

    def add(self, collection: str, id: str, body: Mapping[str, Any] | None, outbox: Sequence[Outgoing]) -> None:
        """Add a write that was done; ``body``: None after a deletion."""
        if collection not in {OPERATIONS, INSTANCES, SNAPSHOTS}:
            return
        if body is None:
            self._documents.pop((collection, id), None)
        else:
            self._documents[collection, id] = self._renamed(body)
        # A part of the next moment: by itself it moves no operation.
        if collection == SNAPSHOTS:
            return
        messages = [self._as_in_every_run(self._renamed(message.document)) for message in outbox]
        self.moments.append(
            Moment(rfc3339(self.clock.now()), dict(self._documents), (collection, id), messages, body is None)
        )

    def _renamed(self, tree: Mapping[str, Any]) -> Json:
        text = json.dumps(tree)
        for old, new in self.names.items():
            text = text.replace(old, new)
        renamed: Json = json.loads(text)
        return renamed

    def _as_in_every_run(self, message: Json) -> Json:
        """Return the message with the story's time and, of news with a random id, another id."""
        self._events += 1
        if UUID(message["id"]).version == 4:  # nothing refers to it
            message["id"] = derived_id("stored-operations", str(self._events))
        return {**message, "time": self.clock.now().isoformat()}


class RecordingStore(WatchedStore, FragileStore):
    """A store whose writes are recorded once there is a record."""

    record: Record | None = None

    def after_write(self, collection: str, id: str, body: Mapping[str, Any] | None, outbox: Sequence[Outgoing]) -> None:
        if self.record is not None:
            self.record.add(collection, id, body, outbox)
