"""CNFs whose pods Kubernetes replaces between operations: what is asked, shown and published (capi.md CR-120a)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope, Event
from kubevnfm_events.inventory import NetworkAddresses, Placement, PlacementChanged
from kubevnfm_events.objects import ObjectsApplied, ObjectsScaled, PodFacts
from kubevnfm_events.vnfcs import ReadVnfcs, VnfcsChanged, VnfcsRead
from kubevnfm_lcm_api.lifecycle.core.instance import COLLECTION, Release
from patience import until, until_true
from worlds.cnf_world import deployed, of_pods
from worlds.lcm_world import World, lcm_world
from worlds.workload_world import sent

OUT = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
FIRST = of_pods(ObjectsApplied, 2).pods


def a_pod(number: int, uid: str = "", node: str = "n2") -> PodFacts:
    """Return a pod that Kubernetes has made in the place of one of the first two."""
    return PodFacts(
        vdu_id="VDU1", name=f"web-{number}", namespace="default", uid=uid or f"u{number}", owner_kind="Deployment",
        node=node, addresses=(f"10.0.0.{number}",),
    )  # fmt: skip


class Followed:
    """A CNF of two pods, and the events about its VNFCs."""

    def __init__(self, world: World, instance_id: str) -> None:
        self.world, self.id = world, instance_id
        self.events: list[VnfcsChanged] = []

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, VnfcsChanged)
        self.events.append(delivery.envelope.data)
        return Ack()

    async def publish(self, *events: Event) -> None:
        """Publish events of infra-k8s, as in a burst; return once they are handled."""
        sends = (self.world.bus.publish(Envelope(each, source="/kubevnfm/infra-k8s")) for each in events)
        await asyncio.gather(*sends)
        await self.world.bus.quiet()

    def seen(self, pod: PodFacts, *, phase: str = "Running", is_gone: bool = False, **about: Any) -> PlacementChanged:
        """Return the event about a pod that is there, or has gone."""
        networks = (NetworkAddresses(addresses=pod.addresses),) if pod.addresses else ()
        place = Placement(uid=pod.uid, node=pod.node or "", phase=phase, networks=networks)
        change = PlacementChanged(
            change="vanished" if is_gone else "changed", vnf_instance_id=self.id, vim_id="k8s", vdu_id=pod.vdu_id,
            api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name,
            old=place if is_gone else None, new=None if is_gone else place,
        )  # fmt: skip
        return change.model_copy(update=about)

    def questions(self) -> list[ReadVnfcs]:
        """Return the questions since the last call."""
        found = sent(self.world, ReadVnfcs)
        self.world.twins.commands.clear()
        return found

    async def answer(self, question: ReadVnfcs, pods: Sequence[PodFacts], *lost: str) -> None:
        await self.publish(
            VnfcsRead(vnf_instance_id=self.id, revision=question.revision, pods=tuple(pods), lost_vdus=lost)
        )

    async def shown(self) -> dict[str, str | None]:
        """Return the node of each VNFC, after checking that both lists name the same."""
        info = (await self.world.lcm("GET", f"/vnf_instances/{self.id}")).must(200).json["instantiatedVnfInfo"]
        vnfcs = info.get("vnfcResourceInfo", ())
        assert {one["vnfcResourceInfoId"] for one in info.get("vnfcInfo", ())} == {one["id"] for one in vnfcs}
        return {one["id"]: one["metadata"].get("node") for one in vnfcs}

    async def published(self, number: int) -> None:
        """Return once so many events about its VNFCs have come."""

        async def have_come() -> bool:
            return len(self.events) >= number

        await until_true(have_come)
        assert len(self.events) == number

    async def revision(self) -> int:
        stored = await self.world.store.get(COLLECTION, self.id)
        assert stored is not None
        return stored.revision


@pytest.fixture
async def cnf(tmp_path: Path) -> AsyncIterator[Followed]:
    async with lcm_world(tmp_path) as world:
        followed = Followed(world, await deployed(world))
        await world.bus.consume_events("tests.vnfcs", ["lcm.vnfcs.changed"], followed.keep)
        followed.questions()
        yield followed


async def test_a_burst_is_one_question_and_one_write_and_doubles_do_no_harm(cnf: Followed) -> None:
    """CR-120a: the pods of a drained node, in any order; what stays keeps its id, and no operation is made."""
    occurrences = (await cnf.world.lcm("GET", "/vnf_lcm_op_occs")).json
    before = await cnf.revision()
    gone, new = cnf.seen(FIRST[0], is_gone=True), [cnf.seen(a_pod(number)) for number in range(5, 45)]
    await cnf.publish(*new, gone, *new)
    (question,) = cnf.questions()
    assert (question.vnf_instance_id, question.vim.vim_id, question.revision) == (cnf.id, "k8s", before)
    present = [FIRST[1], *(a_pod(number) for number in range(5, 45))]
    await cnf.answer(question, present)
    assert await cnf.shown() == {"web-1": None, **{f"web-{number}": "n2" for number in range(5, 45)}}
    after = await cnf.revision()
    assert after == before + 1
    # Doubles of both, the event of a pod that is gone already, and an answer that is older.
    await cnf.publish(gone, *new)
    await cnf.answer(question, present)
    assert cnf.questions() == []
    await cnf.answer(question, FIRST)
    (again,) = cnf.questions()
    assert again.revision == after == await cnf.revision()
    await cnf.answer(again, present)
    await cnf.published(1)
    assert (set(cnf.events[0].removed), len(cnf.events[0].added), cnf.events[0].vim_ids) == ({"web-0"}, 40, ("k8s",))
    assert (await cnf.world.lcm("GET", "/vnf_lcm_op_occs")).json == occurrences
    refused = await cnf.world.lcm("POST", f"/vnf_instances/{cnf.id}/heal", {"vnfcInstanceId": ["web-0"]})
    assert "has no VNFC web-0" in refused.must(400).json["detail"]


async def test_what_the_instance_shows_or_is_no_vnfc_asks_nothing(cnf: Followed) -> None:
    """CR-120a: the events of a bring-up arrive after its end; jobs and launchers of machines are no VNFCs."""
    before = await cnf.revision()
    await cnf.publish(
        *(cnf.seen(each) for each in FIRST),
        cnf.seen(a_pod(9), vdu_id=None),
        cnf.seen(a_pod(9), phase="Succeeded"),
        cnf.seen(a_pod(1, uid="earlier"), is_gone=True),
        cnf.seen(a_pod(9), vnf_instance_id="00000000-0000-4000-8000-000000000000"),
    )
    assert (cnf.questions(), await cnf.revision()) == ([], before)


async def test_a_pod_of_the_same_name_loses_the_node_of_the_old_one(cnf: Followed) -> None:
    """CR-120a: a pod of a StatefulSet, which is another VNFC with the same id; first without a node."""
    for pod in (a_pod(0, "new", node=""), a_pod(0, "new")):
        await cnf.publish(cnf.seen(pod))
        (question,) = cnf.questions()
        await cnf.answer(question, [pod, FIRST[1]])
        assert await cnf.shown() == {"web-0": pod.node or None, "web-1": None}
    await cnf.publish(cnf.seen(a_pod(0, "newer", node="")))
    (question,) = cnf.questions()
    await cnf.answer(question, [a_pod(0, "newer", node=""), FIRST[1]])
    assert await cnf.shown() == {"web-0": None, "web-1": None}
    await cnf.published(3)
    assert [(each.added, each.removed) for each in cnf.events] == [
        (("web-0",), ("web-0",)),
        ((), ()),
        (("web-0",), ("web-0",)),
    ]


async def test_pods_of_a_workload_that_is_gone_are_shown_until_a_repair(cnf: Followed) -> None:
    """CR-121, CR-120a: nothing replaces them, so they are what drift names."""
    before = await cnf.revision()
    await cnf.publish(*(cnf.seen(each, is_gone=True) for each in FIRST))
    (question,) = cnf.questions()
    await cnf.answer(question, [], "VDU1")
    assert (await cnf.shown(), await cnf.revision()) == ({"web-0": None, "web-1": None}, before)


async def test_nothing_is_asked_while_an_operation_runs_and_what_its_end_does_not_show_is_asked_then(
    cnf: Followed,
) -> None:
    """CR-120a: also an answer that arrives meanwhile changes nothing."""
    await cnf.publish(cnf.seen(FIRST[0], is_gone=True))
    (question,) = cnf.questions()
    cnf.world.twins.failing = {"infra.k8s.scale_objects"}
    operation = await cnf.world.ask(cnf.id, "scale", OUT)
    await cnf.world.reached(operation, "FAILED_TEMP")
    cnf.questions()
    await cnf.answer(question, [FIRST[1], a_pod(7)])
    await cnf.publish(cnf.seen(a_pod(7)))
    assert cnf.questions() == []
    assert set(await cnf.shown()) == {"web-0", "web-1"}
    cnf.world.twins.failing = set()
    cnf.world.twins.answers["infra.k8s.scale_objects"] = of_pods(ObjectsScaled, 3)
    (await cnf.world.lcm("POST", f"/vnf_lcm_op_occs/{operation}/retry")).must(202)
    await cnf.world.reached(operation, "COMPLETED")
    assert set(await cnf.shown()) == {"web-0", "web-1", "web-2"}

    async def asked() -> ReadVnfcs | None:
        found = cnf.questions()
        return found[0] if found else None

    await cnf.answer(await until(asked), [FIRST[1], a_pod(7), a_pod(8)])
    assert set(await cnf.shown()) == {"web-1", "web-7", "web-8"}


def test_a_number_of_pods_that_others_have_set_is_not_that_of_the_last_operation() -> None:
    """CR-120a, CR-121: a repair and a scaling of a VDU whose number its manifest has start from what the operation left."""
    left = Release(namespace="default", pods=FIRST)
    now = left.with_pods((*FIRST, a_pod(7))).with_pods(tuple(a_pod(number) for number in range(5)))
    assert (len(now.pods), now.counts, left.counts) == (5, {"VDU1": 2}, {"VDU1": 2})
    assert Release.from_applied(of_pods(ObjectsApplied, 3)).counts == {"VDU1": 3}
