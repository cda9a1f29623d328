"""The export: what is marked is read and brought to A&AI, as long as this process leads (multicloud.md MC-110).

The marks are in the stored records, so nothing is lost by a kill or while A&AI is away, and nothing is kept in memory. A record is
read when it is exported: of several changes the last one is, and the order in which they were marked does not matter.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.outages import Outage, unless_said
from kubevnfm_store.port import RevisionConflict

from kubevnfm_infra_k8s.domain.exporting import nodes
from kubevnfm_infra_k8s.domain.exporting.nodes import Node, RegionKey
from kubevnfm_infra_k8s.domain.exporting.ports import (
    AaiAway,
    AaiForbidden,
    AaiRefused,
    DueObject,
    DueSubject,
    ExportRecords,
    Graph,
    Operation,
    RegionsOfVims,
)
from kubevnfm_infra_k8s.domain.exporting.writer import NodeWriter
from kubevnfm_infra_k8s.domain.inventory.ports import LeaseLost, Term

log = structlog.get_logger()

_PAUSES: Final = BackOff(first_s=1.0, longest_s=60.0)
_REFUSED: Final = BackOff(first_s=30.0, longest_s=3600.0)
"""From one try of what A&AI refuses to the next."""
_FAULT: Final = BackOff(first_s=30.0, longest_s=300.0)
"""The same if A&AI names a fault of its own, which is over for all nodes when its database is back."""
_LATER_S: Final = 2.0
"""Until an announced write is looked for again."""
_IDLE_S: Final = 1.0
"""Without anything to export. Several changes of one object in this time are one."""


@dataclass
class _Round:
    """The answers of A&AI in one round."""

    accepted: int = 0
    """Objects."""
    denied: list[tuple[DueObject, AaiForbidden]] = field(default_factory=list)


@dataclass
class _Held:
    """A link or features in work."""

    due: DueSubject
    """As it is stored now."""


@dataclass
class Exporter:
    """The work of the process that leads."""

    records: ExportRecords
    graph: Graph
    regions: RegionsOfVims
    parallel: int
    """Transactions at the same time, never two of one VNF: A&AI is not safe with concurrent changes of one node."""
    batch: int
    """Operations of a transaction; A&AI's own limit is 30."""
    idle_s: float = _IDLE_S
    pauses: BackOff = _PAUSES
    exported: int = field(default=0)
    """Objects since the start of the process."""
    refused: int = field(default=0)
    """Refusals since then."""

    async def run(self, term: Term) -> None:
        """Export until cancelled. Raises LeaseLost."""
        writer = NodeWriter(self.graph, term.check)
        failures, is_begun, outage = 0, False, Outage("aai")
        while True:
            pause_s = self.idle_s
            try:
                term.check()
                if not is_begun:
                    await self.records.begin()
                    is_begun = True
                if await self._round(writer) or await self.records.mark_page():
                    pause_s = 0.0
                failures = 0
                outage.answered()
            except AaiAway as error:
                failures += 1
                pause_s = self.pauses.after(failures)
                outage.failed(error)
                await self._say(is_reachable=False, reason=str(error))
            except LeaseLost:
                raise
            except VnfmError as error:
                failures += 1
                pause_s = self.pauses.after(failures)
                unless_said(error).warning("export_interrupted", reason=str(error))
            except Exception:  # a fault of ours must not end the export for good, and must be seen
                failures += 1
                pause_s = self.pauses.after(failures)
                log.exception("export_failed")
            await asyncio.sleep(pause_s)

    async def _say(self, *, is_reachable: bool, reason: str = "") -> None:
        try:
            await self.records.said(is_reachable=is_reachable, reason=reason)
        except VnfmError as error:
            unless_said(error).warning("export_state_not_stored", reason=str(error))

    async def _round(self, writer: NodeWriter) -> bool:
        """Export what is due; return whether there may be more."""
        most = self.parallel * self.batch
        objects = await self.records.objects(limit=most)
        lanes: dict[int, list[DueObject]] = defaultdict(list)
        for due in objects:
            lanes[int(hashlib.sha256(due.vnf_id.encode()).hexdigest()[:8], 16) % self.parallel].append(due)
        answered = _Round()
        results = await asyncio.gather(
            *(self._lane(writer, lane, answered) for lane in lanes.values()), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        await self._put_off_denied(answered)
        subjects = await self.records.subjects(limit=self.batch)
        for subject in subjects:
            await self._subject(writer, subject)
        if objects or subjects:
            await self._say(is_reachable=True)
        return len(objects) == most or len(subjects) == self.batch

    async def _put_off_denied(self, answered: _Round) -> None:
        """Put off the objects that A&AI does not let us write. Raises AaiAway if it lets us write none."""
        if not answered.denied:
            return
        await self.graph.check_allowed()
        new = [error for due, error in answered.denied if due.tries == 0]
        if len(new) > 1 and not answered.accepted:
            raise AaiAway(f"it accepts no node: {new[0]}")
        for due, error in answered.denied:
            await self._put_off(due, error)

    async def _lane(self, writer: NodeWriter, due: Sequence[DueObject], answered: _Round) -> None:
        for begin in range(0, len(due), self.batch):
            batch = due[begin : begin + self.batch]
            keys = {vim_id: await self._key(vim_id) for vim_id in {each.vim_id for each in batch}}
            done = batch
            try:
                for each in batch:
                    # Objects of a VIM that is no region have no node.
                    if (key := keys[each.vim_id]) is not None and each.record is not None:
                        await writer.ensure(*self._needed(each, key))
                operations = await writer.operations(
                    [partial(self._wanted, writer, each, keys[each.vim_id]) for each in batch]
                )
                intended = await self._intended(batch, operations)
                batch = done = [each for each, _ in intended]
                await writer.send([operation for _, operation in intended])
            except Exception as error:
                if not _is_of_a_node(error):
                    raise
                # One at a time, to find out which.
                log.info("export_batch_refused", operations=len(batch), reason=_reason(error))
                alone = [await self._alone(writer, each, keys[each.vim_id], answered) for each in batch]
                done = [each for each in alone if each is not None]
            answered.accepted += len(done)
            held = await self._without_unused(writer, [each for each in done if keys[each.vim_id] is not None])
            for each, refusal in held:
                await self._put_off(each, refusal)
            settled = [each for each in done if each.id not in {one.id for one, _ in held}]
            await asyncio.gather(*map(self.records.settle, settled))
            self.exported += len(settled)

    @staticmethod
    def _needed(due: DueObject, key: RegionKey) -> Sequence[Node]:
        vnf = nodes.generic_vnf(due.vnf_id)
        if not due.is_placed:
            return [vnf]
        return [nodes.cloud_region(key), nodes.tenant(key, due.namespace), vnf]

    async def _wanted(self, writer: NodeWriter, due: DueObject, key: RegionKey | None) -> Operation | None:
        if key is None or not due.is_placed:
            return None
        if due.record is None:
            return await writer.removal(nodes.vserver_at(key, due.namespace, due.id))
        node = nodes.vserver(key, due.record, version=self.graph.version)
        # A creation needs no read: if the node exists after all, the transaction is refused.
        return await writer.change(node) if due.is_known else Operation("put", node.path, node.created)

    async def _intended(
        self, batch: Sequence[DueObject], operations: Sequence[Operation | None]
    ) -> Sequence[tuple[DueObject, Operation | None]]:
        """Store which objects are about to be created; return those of the batch that have not changed since they were read.

        If this process is cut off before it has stored the answer, the next one knows of a creation that may arrive late.
        """

        async def noted(due: DueObject, operation: Operation | None) -> DueObject | None:
            return await self.records.intend(due) if operation is not None and operation.is_creation else due

        found = await asyncio.gather(*map(noted, batch, operations))
        return [(each, one) for each, one in zip(found, operations, strict=True) if each is not None]

    async def _alone(
        self, writer: NodeWriter, due: DueObject, key: RegionKey | None, answered: _Round
    ) -> DueObject | None:
        """Export one object by itself; return it as it is stored, None if that was not possible."""
        if key is None:
            return due
        try:
            if due.record is None:
                if due.is_placed:
                    await writer.remove(nodes.vserver_at(key, due.namespace, due.id))
                return due
            writer.forget(*self._needed(due, key))
            await writer.ensure(*self._needed(due, key))
            if due.is_placed:
                record, intended = due.record, await self.records.intend(due)
                if intended is None:
                    return None
                due = intended
                await writer.put(nodes.vserver(key, record, version=self.graph.version))
        except Exception as error:
            if not _is_of_a_node(error):
                raise
            if isinstance(error, AaiForbidden):
                answered.denied.append((due, error))
            else:
                await self._put_off(due, error)
            return None
        return due

    async def _put_off(self, due: DueObject, error: Exception) -> None:
        self.refused += 1
        reason = _reason(error)
        log.warning(
            "export_refused", object_id=due.id, vim_id=due.vim_id, reason=reason, exc_info=_fault_of_ours(error)
        )
        await self.records.put_off(due, reason, again_s=_pause_s(error, due.tries + 1))

    async def _without_unused(
        self, writer: NodeWriter, done: Sequence[DueObject]
    ) -> Sequence[tuple[DueObject, AaiRefused]]:
        """Remove the VNFs that have no object any more, before what shows it is forgotten.

        Returns an object of each VNF that A&AI does not remove now: it shows it until that is done.
        """
        held: list[tuple[DueObject, AaiRefused]] = []
        gone: dict[str, int] = defaultdict(int)
        shown_by: dict[str, DueObject] = {}
        for each in done:
            if each.record is None:
                gone[each.vnf_id] += 1
                shown_by[each.vnf_id] = each
            if each.left_vnf_id:
                gone[each.left_vnf_id] += 0
                shown_by[each.left_vnf_id] = each
        for vnf_id, count in gone.items():
            if not await self.records.has_objects(vnf_id, gone=count):
                try:
                    await writer.remove(nodes.generic_vnf(vnf_id))
                except AaiRefused as error:
                    if isinstance(error, AaiForbidden):
                        await self.graph.check_allowed()
                    # It may be a fault of A&AI, or others have related to it what must not lose it.
                    held.append((shown_by[vnf_id], error))
        return held

    async def _key(self, vim_id: str) -> RegionKey | None:
        """Return the region of a VIM, stored first: its removal needs it when vim-registry has it no more."""
        key = await self.records.region(vim_id)
        if key is None:
            key = await self.regions.key(vim_id)
            if key is not None:
                await self.records.store_region(vim_id, key)
        return key

    async def _subject(self, writer: NodeWriter, read: DueSubject) -> None:
        held = _Held(read)
        work: Callable[[NodeWriter, _Held], Awaitable[None]] = self._link if read.subject == "link" else self._features
        try:
            await work(writer, held)
        except (AaiAway, LeaseLost):
            raise
        except RevisionConflict:
            return  # marked again meanwhile: the next round reads it
        except Exception as error:  # A&AI refuses it, or the region does not say what its nodes have
            if isinstance(error, AaiForbidden):
                await self.graph.check_allowed()
            self.refused += 1
            due, reason = held.due, _reason(error)
            log.warning(
                "export_refused",
                subject=due.subject,
                subject_id=due.subject_id,
                reason=reason,
                exc_info=_fault_of_ours(error),
            )
            await self.records.put_off_subject(due, reason, again_s=_pause_s(error, due.tries + 1))

    async def _link(self, writer: NodeWriter, held: _Held) -> None:
        due = held.due
        link = await self.records.link(due.subject_id)
        is_behind = link is not None and (due.expected == 0 or link.revision < due.expected)
        if due.is_young and (is_behind or (link is None and due.expected != 0)):
            # The mark is stored before the link.
            await self.records.put_off_subject(due, "", again_s=_LATER_S)
            return
        if link is None:
            await writer.remove(nodes.l3_network_at(due.subject_id))
            await self.records.settle_subject(due, {})
            return
        key = await self._key(link.vim_id)
        if key is None:
            await self.records.settle_subject(due, {})
            return
        node = nodes.l3_network(key, link, version=self.graph.version)
        digest = digest_of(node)
        if due.sent.get(link.id) != digest:
            writer.forget(nodes.cloud_region(key))
            await writer.ensure(nodes.cloud_region(key))
            held.due = due = await self.records.keep_sent(due, {**due.sent, link.id: ""})
            await writer.put(node)
        await self.records.settle_subject(due, {link.id: digest})

    async def _features(self, writer: NodeWriter, held: _Held) -> None:
        due = held.due
        key = await self._key(due.subject_id)
        if key is None:
            await self.records.settle_subject(due, {})
            return
        features = await self.regions.features(key)
        wanted = {} if features is None else nodes.hpa_capabilities(key, features)
        writer.forget(nodes.cloud_region(key))
        if wanted:
            await writer.ensure(nodes.cloud_region(key))
        changed = [node for name, node in wanted.items() if due.sent.get(name) != digest_of(node)]
        left = [nodes.hpa_capability_at(key, name) for name in due.sent if name not in wanted]
        if changed or left:
            # Stored first, so that a capability that was sent is found again when it has gone.
            sent = {**due.sent, **{name: "" for name in wanted if name not in due.sent}}
            held.due = due = await self.records.keep_sent(due, sent)
        steps: list[Callable[[], Awaitable[Operation | None]]] = [partial(writer.change, node) for node in changed]
        steps += [partial(writer.removal, node) for node in left]
        for begin in range(0, len(steps), self.batch):
            await writer.send(await writer.operations(steps[begin : begin + self.batch]))
        await self.records.settle_subject(due, _digests(wanted))


def _is_of_a_node(error: Exception) -> bool:
    """Return whether an error is about what was to be written: A&AI has refused it, or it cannot be brought into its form."""
    return isinstance(error, AaiRefused) or not isinstance(error, VnfmError | LeaseLost)


def _fault_of_ours(error: Exception) -> Exception | None:
    return None if isinstance(error, VnfmError) else error


def _reason(error: Exception) -> str:
    # A text of a fault of ours may quote anything.
    return str(error) if isinstance(error, VnfmError) else f"a fault of this manager: {type(error).__name__}"


def _pause_s(error: Exception, tries: int) -> float:
    is_fault = isinstance(error, AaiRefused) and error.answered >= 500
    return (_FAULT if is_fault else _REFUSED).after(tries)


def _digests(found: Mapping[str, Node]) -> Mapping[str, str]:
    return {name: digest_of(node) for name, node in found.items()}


def digest_of(node: Node) -> str:
    """Return a text that is another one when the node is."""
    return hashlib.sha256(json.dumps(node.body, sort_keys=True).encode()).hexdigest()
