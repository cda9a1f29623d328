"""The watch over the kubeconfig Secrets of workload clusters, on the lab's stand-in for Cluster API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Delivery, Verdict
from kubevnfm_events import Envelope
from kubevnfm_events.capi import ExpectedKubeconfig, KubeconfigFinding, KubeconfigsChanged, WatchKubeconfigs
from kubevnfm_infra_k8s.handlers.watches import WatchHandler
from kubevnfm_lab.faults import CallLedger, FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_secrets import KeyRing
from patience import until_true
from worlds.capi_management import Management, managed

SECRET = Key("default", "workload-kubeconfig")


class Watched:
    """A management cluster, and the handler with what it publishes."""

    def __init__(self, management: Management, bus: InProcessBus) -> None:
        site = management.site
        self.management, self.bus = management, bus
        self.found: list[KubeconfigFinding] = []
        self.handler = WatchHandler(
            clusters=site.clusters, vims=site.handlers.vims, watches=management.handlers.watches, bus=bus,
            clock=site.handlers.clock,
        )  # fmt: skip

    async def keep(self, delivery: Delivery) -> Verdict:
        assert isinstance(delivery.envelope.data, KubeconfigsChanged)
        self.found += delivery.envelope.data.findings
        return Ack()

    async def has_found(self) -> bool:
        return bool(self.found)

    def version(self) -> str:
        """Return the present version of the Secret."""
        secret = self.management.lab.store.get("secrets", SECRET)
        return str(secret["metadata"]["resourceVersion"]) if secret is not None else ""

    async def ask(self, *versions: str, in_s: float = 60.0) -> None:
        """Deliver the command once, which is taken at once; ``versions``: those that the instances know."""
        expected = tuple(
            ExpectedKubeconfig(
                vnf_instance_id=f"i{number}", revision=7, cluster=self.management.cluster_of(), resource_version=version
            )
            for number, version in enumerate(versions)
        )
        deadline = self.management.handlers.clock.now() + timedelta(seconds=in_s)
        command = WatchKubeconfigs(vim=self.management.site.vim, expected=expected)
        envelope = Envelope(data=command, source="/kubevnfm/lcm-api", deadline=deadline)
        assert await self.handler.watch_kubeconfigs(Delivery(envelope, 1)) == Ack()

    async def ended(self) -> list[KubeconfigFinding]:
        """Return what was found once no question is open."""

        async def has_ended() -> bool:
            return not self.handler.is_watching

        await until_true(has_ended, timeout_s=60)
        await self.bus.quiet()
        found, self.found = self.found, []
        return found


@pytest.fixture
async def watched(site: Any, lab: LabCluster) -> AsyncIterator[Watched]:
    async with managed(site, lab) as management, InProcessBus(KeyRing.from_text(KeyRing.new_key())) as bus:
        watched = Watched(management, bus)
        await bus.consume_events("found", ["infra.kubeconfigs.changed"], watched.keep)
        await management.apply()
        await management.wait("initialized")
        async with watched.handler.watching():
            yield watched


def requests(ledger: CallLedger) -> dict[str, int]:
    return {each["verb"]: each["count"] for each in ledger.calls() if each["verb"].endswith("secrets")}


async def test_a_secret_that_was_written_is_found_by_a_watch_that_all_questions_share(
    watched: Watched, ledger: CallLedger
) -> None:
    """CR-062: until then the watch costs no request; the Secret itself is not read."""
    known = watched.version()
    before = requests(ledger)
    for _ in range(3):
        await watched.ask(known, known)
    await watched.ask("1")
    await until_true(watched.has_found, timeout_s=60)
    assert [each.resource_version for each in watched.found] == [known]
    watched.found.clear()
    after = requests(ledger)
    assert after["list secrets"] == before.get("list secrets", 0) + 1
    assert after.get("get secrets") == before.get("get secrets")
    # As a controller does when it renews the certificate, or writes a label.
    registry = watched.management.lab.registry
    registry.change("secrets", SECRET, lambda secret: secret["data"].update(value="bmV3"))
    new = watched.version()
    found = await watched.ended()
    assert KubeconfigFinding(vnf_instance_id="i0", revision=7, resource_version=new) in found
    assert [each.vnf_instance_id for each in found] == ["i0", "i1"] * 3
    await watched.ask(new, known)
    assert [each.vnf_instance_id for each in await watched.ended()] == ["i1"]
    last = requests(ledger)
    assert (last["list secrets"], last.get("get secrets")) == (after["list secrets"], after.get("get secrets"))


async def test_a_secret_that_is_gone_is_no_news_until_it_is_made_again(watched: Watched) -> None:
    """CR-062: an instance that does not know the version of an earlier one gets any."""
    known = watched.version()
    await watched.ask(known)
    lab = watched.management.lab
    secret = lab.store.get("secrets", SECRET)
    assert secret is not None
    lab.plane.delete("secrets", secret)
    (finding,) = await watched.ended()
    assert finding.resource_version == watched.version() != known
    await watched.ask("")
    assert [one.resource_version for one in await watched.ended()] == [watched.version()]


async def test_a_token_that_may_not_list_secrets_reads_the_metadata_of_each_once_a_round(
    watched: Watched, ledger: CallLedger, faults: FaultBook
) -> None:
    """CR-062."""
    faults.add(part="kubernetes", verb="list secrets", status=403, message="forbidden")
    before = requests(ledger).get("get secrets", 0)
    await watched.ask(watched.version())
    assert await watched.ended() == []
    await watched.ask("1")
    assert [one.resource_version for one in await watched.ended()] == [watched.version()]
    assert requests(ledger)["get secrets"] == before + 2


@pytest.mark.slow
async def test_a_question_ends_with_its_deadline_and_with_a_cluster_that_does_not_answer(
    watched: Watched, faults: FaultBook
) -> None:
    """CR-062: the next round asks again."""
    faults.add(part="kubernetes", verb="list secrets", status=500)
    await watched.ask("1")
    assert await watched.ended() == []
    faults.clear()
    await watched.ask("1", in_s=0.0)
    await watched.ask(watched.version(), in_s=0.05)
    assert await watched.ended() == []
