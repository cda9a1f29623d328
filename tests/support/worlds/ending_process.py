"""A real process with a worker, one of whose commands ends it. Started as ``python ending_process.py <folder> <life>``.

``<folder>/cases.json`` has for each command its document, the document of its answer, and whether handling it ends the process.
``<folder>/key`` has the key of secrets. Each life gets all commands that have no outcome, as a broker delivers them again, and ends with
status 0 once all have one; ``<folder>/seen.json`` then has the outcomes by command and what ``/health/ready`` shows.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope, Event, Message, from_document
from kubevnfm_events.stacks import CreateResources
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from kubevnfm_worker.outcome import Done, Outcome, StepContext

SERVICE = "infra-openstack"
LIVES_TOGETHER = 2
"""In these lives all commands are handled at once when the process ends."""


@dataclass
class Process:
    """The handler of all commands, and the outcomes."""

    cases: dict[str, dict[str, Any]]
    life: int
    begun: set[str] = field(default_factory=set)
    all_have_begun: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: dict[str, Envelope[Message]] = field(default_factory=dict)
    all_have_ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, _: CreateResources, context: StepContext) -> Outcome:
        case = self.cases[context.message_id]
        self.begun.add(context.message_id)
        if len(self.begun) == len(self.cases):
            self.all_have_begun.set()
        is_together = self.life <= LIVES_TOGETHER and any(one["ends"] for one in self.cases.values())
        if is_together:
            await self.all_have_begun.wait()
        if case["ends"]:
            os._exit(9)
        if is_together:
            await asyncio.Event().wait()
        answer = from_document(case["answer"]).data
        assert isinstance(answer, Event)
        return Done(answer)

    async def hear(self, delivery: Delivery) -> Verdict:
        if delivery.envelope.causationid in self.cases:
            self.outcomes[delivery.envelope.causationid] = delivery.envelope
        if len(self.outcomes) == len(self.cases):
            self.all_have_ended.set()
        return Ack()


async def main(folder: Path, life: int) -> None:
    """Live once."""
    ring = KeyRing([(folder / "key").read_bytes()])
    cases = json.loads((folder / "cases.json").read_text())
    process = Process({case["command"]["id"]: case for case in cases}, life)
    async with InProcessBus(ring, drain_s=0.5) as bus, SqliteStore.open(folder / "store.db") as store:
        backends = Backends(bus, store, ring)
        async with backends.worker(SERVICE, lease_s=1.0) as worker, asyncio.TaskGroup() as publishing:
            worker.handle(CreateResources, process.handle)
            await bus.consume_events("ears", ["#"], process.hear)
            await worker.start()
            for case in cases:
                publishing.create_task(bus.publish(from_document(case["command"])))
            await process.all_have_ended.wait()
        outcomes = {cause: outcome.document(ring) for cause, outcome in process.outcomes.items()}
        (folder / "seen.json").write_text(json.dumps({"outcomes": outcomes, "states": backends.states}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
