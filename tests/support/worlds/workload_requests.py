"""Requests for a change of a workload cluster, read into the draft of an operation, and the operation run by twins: no server."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, BinaryIO, Final

from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.vnfd.model import Vnfd
from kubevnfm_csar.vnfd.read import read_vnfd
from kubevnfm_events import CommandFailed, Event
from kubevnfm_events.capi import ClusterReached
from kubevnfm_kit.clock import SystemClock
from kubevnfm_lcm_api.lifecycle.containers.instantiating import cnf_draft, manifest_files
from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord, Release
from kubevnfm_lcm_api.lifecycle.core.instantiation import InstantiateDraft
from kubevnfm_lcm_api.lifecycle.core.kind import CHANGE_VNFPKG, HEAL, SCALE, SCALE_TO_LEVEL, Asked, UnderChange, VnfKind
from kubevnfm_lcm_api.lifecycle.core.saga import Move
from kubevnfm_lcm_api.lifecycle.core.scale_levels import scale_status
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.lifecycle.requests import changes, scale
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices
from kubevnfm_lcm_api.lifecycle.workloads.capi import capi_parameters
from kubevnfm_lcm_api.lifecycle.workloads.drafts import InstantiateWorkloadDraft
from kubevnfm_lcm_api.lifecycle.workloads.kind import Workloads
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import (
    ChangeCurrentVnfPkgRequest,
    HealVnfRequest,
    InstantiateVnfRequest,
    OperationState,
    OperationType,
    ScaleVnfRequest,
    ScaleVnfToLevelRequest,
)
from kubevnfm_sol.resources import InstantiatedVnfInfo
from kubevnfm_store.query import Stored
from packages.package_variants import SAMPLES

from worlds.lcm_builders import ANSWERS, PACKAGE, RING, VIM, an_instance, later
from worlds.lcm_moves import SAGA, answered, commands_of, granted, reread
from worlds.lcm_world import sample_request
from worlds.workload_world import AWAIT, KINDS, TOPOLOGY, VNFD, applied, machines

TASKS: Final = (SCALE, SCALE_TO_LEVEL, HEAL, CHANGE_VNFPKG)
_SAMPLE: Final = SAMPLES / "capi-workload"


class _Files(FolderFiles):
    """The sample, with another descriptor."""

    def __init__(self, descriptor: bytes) -> None:
        super().__init__(_SAMPLE)
        self._descriptor = descriptor

    def size(self, name: str) -> int:
        return len(self._descriptor) if name == VNFD else super().size(name)

    def open(self, name: str) -> BinaryIO:
        return io.BytesIO(self._descriptor) if name == VNFD else super().open(name)


@cache
def _read(descriptor: str) -> tuple[Vnfd, frozenset[str]]:
    files = _Files(descriptor.encode())
    return read_vnfd(files), files.names()


@dataclass
class _Packages:
    """The part of the package catalogue that changes ask."""

    files: frozenset[str]

    async def file_names(self, package_id: str) -> frozenset[str]:
        return self.files

    async def base_hot(self, package_id: str, flavour_id: str) -> None:
        """Return that there is none: it has no machines of OpenStack."""


@dataclass(frozen=True)
class _Services(RequestServices):
    """Services that know one VNF."""

    vnf: UnderChange

    async def find(self, instance_id: str, task: str) -> tuple[VnfKind, UnderChange]:
        assert task in self.vnf.record.internals.tasks
        return self.kinds[0], self.vnf


@dataclass
class WorkloadVnf:
    """A workload cluster: its instance as it is stored, and the answers of the services."""

    record: InstanceRecord
    vnfd: Vnfd
    files: frozenset[str]
    answers: dict[str, Event] = field(default_factory=lambda: dict(ANSWERS))
    """By routing key of the command."""
    failing: set[str] = field(default_factory=set)
    """Routing keys of the commands that fail, or ``<routing key>/<step>``."""
    sent: list[Any] = field(default_factory=list)
    """The data of all commands so far."""
    operation: OperationType | None = None
    """The operation that the last request has asked for."""
    move: Move | None = None
    """The last move of the last operation."""

    async def draft(self, request: SolType) -> Draft:
        """Return the draft of an operation that the request asks for. Raises what refuses the request."""
        flavour = self.vnfd.flavour("simple")
        vnf = UnderChange(Stored("inst-1", 1, {}), self.record, PACKAGE, self.vnfd, flavour, self.info)
        packages: Any = _Packages(self.files)
        unused: Any = None
        kind = Workloads(
            packages=packages,
            vims=unused,
            links=unused,
            volumes=unused,
            charts=unused,
            repositories=unused,
            namespaces=unused,
            clock=SystemClock(),
            ring=RING,
        )
        on = _Services(
            unused, unused, packages, unused, unused, [kind], unused, unused, unused, unused, unused, unused, False, vnf
        )
        original = request.model_dump(mode="json", by_alias=True, exclude_none=True)
        match request:
            case ScaleVnfRequest():
                checked = await scale.checked(on, "inst-1", Asked(request, original, "v2"))
            case ScaleVnfToLevelRequest():
                checked = await scale.checked_level(on, "inst-1", Asked(request, original, "v2"))
            case HealVnfRequest():
                checked = await changes.checked_heal(on, "inst-1", Asked(request, original, "v2"))
            case ChangeCurrentVnfPkgRequest():
                checked = await changes.checked_package(on, "inst-1", Asked(request, original, "v2"))
            case _:
                raise AssertionError(f"{request!r} is not expected")
        self.operation = checked.operation
        return checked.draft

    async def ask(self, request: SolType) -> OperationState:
        """Run the operation until it is COMPLETED or FAILED_TEMP."""
        return self._run(granted(await self.draft(request)))

    def retry(self) -> OperationState:
        """Retry the operation that is FAILED_TEMP."""
        assert self.move is not None
        return self._run(SAGA.retry(reread(self.move.record), later(5)))

    def roll_back(self) -> OperationState:
        """Roll the operation back that is FAILED_TEMP."""
        assert self.move is not None
        return self._run(SAGA.rollback(reread(self.move.record), later(5)))

    def fail(self) -> None:
        """Give up the operation that is FAILED_TEMP."""
        assert self.move is not None
        self._end(SAGA.fail(reread(self.move.record), later(5)))

    def _run(self, move: Move) -> OperationState:
        out = commands_of(move)
        while out:
            command = out.pop(0)
            self.sent.append(command.data)
            key = type(command.data).routing_key()
            event = self.answers[key]
            if {key, f"{key}/{command.stepid}"} & self.failing:
                event = CommandFailed(command=command.type, code="c", title="t", detail="no host", status=422)
            move = answered(move, command.follow_up(event, source="/kubevnfm/twin"))
            out += commands_of(move)
        return self._end(move)

    def _end(self, move: Move) -> OperationState:
        """Store the result of an operation that has ended."""
        self.move, state = move, move.record.occ.operation_state
        draft = SEQUENCES.draft(move.record.plan, move.record.draft)
        if state is OperationState.COMPLETED:
            self.record = draft.completed(self.record)
        elif state is OperationState.ROLLED_BACK:
            self.record = draft.rolled_back(self.record)
        elif state is OperationState.FAILED:
            self.record = draft.failed(self.record, move.record.occ.id)
        return state

    @property
    def info(self) -> InstantiatedVnfInfo:
        """The part of the instance that an operation changes."""
        info = self.record.vnf.instantiated_vnf_info
        assert info is not None
        return info

    @property
    def changed(self) -> set[tuple[str, str]]:
        """The VNFCs that the last operation has changed, and how."""
        assert self.move is not None
        found = self.move.record.occ.resource_changes
        return {(one.id, one.change_type) for one in found.affected_vnfcs} if found is not None else set()

    @property
    def levels(self) -> dict[str, int]:
        """The scale levels by aspect."""
        return {one.aspect_id: one.scale_level for one in self.info.scale_status or ()}

    def of_kind(self, kind: type[Any]) -> list[Any]:
        """Return the commands of a kind, in order."""
        return [each for each in self.sent if isinstance(each, kind)]


async def a_workload_vnf(
    kinds: Sequence[tuple[str, str, str]] = KINDS,
    *,
    descriptor: str | None = None,
    reached: ClusterReached | None = None,
    **capi: Any,
) -> WorkloadVnf:
    """Return the sample cluster as its request builds it, with one worker or as ``reached``; ``kinds``: the objects of its files.

    ``capi``: more of ``additionalParams.capi``.
    """
    text = descriptor or (SAMPLES / "capi-workload" / VNFD).read_text(encoding="utf-8")
    if kinds is TOPOLOGY:
        # Parts of a topology have names of their own (capi.md CR-050).
        text = text.replace("workload-control-plane", "controlPlane").replace("workload-md-0", "md-0")
    vnfd, files = _read(text)
    flavour, new = vnfd.flavour("simple"), an_instance(vnfd_id=vnfd.vnfd_id)
    original = sample_request("capi-workload", "instantiate")
    original["additionalParams"]["capi"] |= capi
    asked = Asked(InstantiateVnfRequest.model_validate(original), original, "v2")
    common = InstantiateDraft(
        vnf_instance_id="inst-1",
        package=PACKAGE,
        vim_key="management",
        vim=VIM,
        vim_connections=asked.request.vim_connection_info,
        flavour_id="simple",
        parameters=asked.request.additional_params,
        scale_status=scale_status(flavour.scale_levels(None)),
        max_scale_levels=scale_status({name: aspect.max_scale_level for name, aspect in flavour.aspects.items()}),
        tasks=TASKS,
    )
    objects = await cnf_draft(common, new, flavour, asked, files)
    given = capi_parameters(
        original["additionalParams"]["capi"], lambda listed, place: manifest_files(listed, files, place=place)
    )
    draft = InstantiateWorkloadDraft(**vars(objects), capi=given).with_release(Release.from_applied(applied(kinds)))
    record = draft.with_reached(reached or machines([0])).completed(new)
    vnf = WorkloadVnf(record, vnfd, files)
    vnf.answers[AWAIT] = reached or machines([0])
    return vnf
