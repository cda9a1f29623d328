"""The service on a bus: commands in, events out, each once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import CommandFailed, Envelope, Event
from kubevnfm_events.objects import ApplyObjects, DeleteObjects, ObjectsApplied, ObjectsDeleted
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_infra_k8s.wiring import infra_k8s
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_secrets import KeyRing
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.backends import Backends
from pydantic import SecretStr
from vnf_networks import networks

Make = Callable[..., dict[str, Any]]


async def test_a_cnf_is_applied_and_deleted_by_commands(
    site: Any, store: SqliteStore, lab: LabCluster, workload: Make, tmp_path: Path
) -> None:
    answers: asyncio.Queue[Event] = asyncio.Queue()

    async def answered(delivery: Delivery) -> Verdict:
        event = delivery.envelope.data
        assert isinstance(event, Event)
        answers.put_nowait(event)
        return Ack()

    ring = KeyRing.from_text(KeyRing.new_key())
    package = site.packages.add({"f.yaml": workload(name="web")})
    async with InProcessBus(ring) as bus:
        await bus.consume_events("test", ["infra.#", "service.#"], answered)
        async with infra_k8s(
            Settings(settle_s=0.1, internal_token=SecretStr("unused"), keys=SecretStr("unused")),
            Backends(bus, store, ring),
            packages=site.packages,
            vims=site.handlers.vims,
            identities=site.identities,
            networks=networks(),
        ):
            apply = ApplyObjects(vnf_instance_id="i1", package=package, vim=site.vim, def_files=("f.yaml",))
            command = Envelope(apply, source="/t", subject="i1", operationid="op1", stepid="apply", attempt=1)
            async with asyncio.timeout(300):
                await bus.publish(command)
                await bus.publish(command)
                applied = await answers.get()
                assert isinstance(applied, ObjectsApplied)
                assert len(lab.inventory()["objects"]) == 1
                bad = ApplyObjects(vnf_instance_id="i2", package=package, vim=site.vim, def_files=("none.yaml",))
                await bus.publish(Envelope(bad, source="/t", operationid="op2", stepid="apply", attempt=1))
                failed = await answers.get()
                while isinstance(failed, ObjectsApplied):  # the repeated answer of the doubled command
                    assert failed == applied
                    failed = await answers.get()
                assert isinstance(failed, CommandFailed)
                assert (failed.code, failed.status) == ("invalid-input", 400)
                assert "none.yaml" in failed.detail
                delete = DeleteObjects(vnf_instance_id="i1", vim=site.vim)
                await bus.publish(Envelope(delete, source="/t", operationid="op3", stepid="delete", attempt=1))
                assert await answers.get() == ObjectsDeleted(count=1)
    assert lab.inventory()["objects"] == {}
