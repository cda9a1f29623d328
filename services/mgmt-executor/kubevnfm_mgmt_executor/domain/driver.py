"""What a management driver is: code that does one life-cycle phase of a VNF inside its machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode, Phase

from kubevnfm_mgmt_executor.domain.errors import DriverUnknown
from kubevnfm_mgmt_executor.domain.masking import Mask
from kubevnfm_mgmt_executor.domain.ports import HostKeys, Journal, Machines, OutputLog
from kubevnfm_mgmt_executor.domain.recorder import Recorder


class PackageFiles(Protocol):
    """The files of the VNF package."""

    async def read(self, path: str) -> bytes | None:
        """Return a file's content; None when the package has no such file."""
        ...


@dataclass(frozen=True)
class PhaseRequest:
    """What is asked of a driver. For scale and heal, ``is_target`` of a node says whether it is worked on."""

    vnf_instance_id: str
    phase: Phase
    nodes: Sequence[ManagedNode]
    package: PackageFiles
    parameters: Mapping[str, Any] = field(repr=False)
    """additionalParams in clear."""
    cluster_address: str | None = None
    cluster_public_address: str | None = None
    max_nodes: int | None = None


@dataclass(frozen=True)
class PhaseResult:
    """What a phase leaves for others to know."""

    cluster: ClusterAccess | None = None
    node_names: Mapping[str, str] = field(default_factory=dict)
    """Kubernetes node name by VNFC id."""


@dataclass(frozen=True)
class Tools:
    """What a driver works with; made anew for each command."""

    machines: Machines
    journal: Journal
    host_keys: HostKeys
    output_log: OutputLog
    recorder: Recorder
    mask: Mask
    operation_id: str


class Driver(Protocol):
    """Does phases. Every phase can be repeated, also when it was cut off in its middle."""

    async def run(self, request: PhaseRequest, tools: Tools) -> PhaseResult:
        """Do the phase. Raises VnfmError; ConnectionLost when a repeat may help."""
        ...


class Drivers:
    """The drivers by the implementation names that VNFDs give them."""

    def __init__(self, by_name: Mapping[str, Driver]) -> None:
        self._by_name = dict(by_name)

    def named(self, name: str) -> Driver:
        """Return the driver. Raises DriverUnknown."""
        driver = self._by_name.get(name)
        if driver is None:
            raise DriverUnknown(name, known=", ".join(sorted(self._by_name)))
        return driver
