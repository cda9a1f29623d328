"""Messages about the VNFCs of CNFs that Kubernetes replaces between operations (capi.md CR-120a)."""

from __future__ import annotations

from kubevnfm_events.base import Command, Event
from kubevnfm_events.common import VimConnection
from kubevnfm_events.objects import PodFacts


class ReadVnfcs(Command, kind="infra.k8s.read_vnfcs", service="infra-k8s"):
    """Read which pods and virtual machines run the VDUs of a CNF now; answered by VnfcsRead, if its cluster answers."""

    vim: VimConnection
    vnf_instance_id: str
    revision: int
    """The revision of the instance's document; the answer repeats it, and counts only if it still holds."""


class VnfcsRead(Event, kind="infra.vnfcs.read", by="infra-k8s"):
    """The pods and virtual machines that run the VDUs of a CNF were read."""

    vnf_instance_id: str
    revision: int
    pods: tuple[PodFacts, ...] = ()
    lost_vdus: tuple[str, ...] = ()
    """The VDUs whose workloads do not exist, so that nothing creates their pods again: that is drift."""


class VnfcsChanged(Event, kind="lcm.vnfcs.changed", by="lcm-api"):
    """A CNF shows other VNFCs although no operation ran: Kubernetes or another party has replaced or moved them."""

    vnf_instance_id: str
    vim_ids: tuple[str, ...] = ()
    """The registered VIM that they are on."""
    added: tuple[str, ...] = ()
    """Ids of vnfcResourceInfo. A new pod with the name of the old one is in both lists."""
    removed: tuple[str, ...] = ()
