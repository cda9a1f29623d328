"""Nova's records: servers, key pairs, server groups, and their form in the API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from kubevnfm_lab.openstack.ids import new_uuid, now_z
from kubevnfm_lab.openstack.settings import Flavor

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A public key for logins to a server."""

    name: str
    user_id: str
    public_key: str
    fingerprint: str
    created_at: str = field(default_factory=now_z)

    def view(self, minor: int) -> Json:
        """Return it as the API lists it; ``minor``: the micro-version's second number."""
        shown = {"name": self.name, "public_key": self.public_key, "fingerprint": self.fingerprint}
        return {**shown, "type": "ssh"} if minor >= 2 else shown


@dataclass(kw_only=True, slots=True)
class ServerGroup:
    """Servers that must, or must not, share a host."""

    group_id: str = field(default_factory=new_uuid)
    name: str
    project_id: str
    user_id: str
    policy: str
    rules: Json = field(default_factory=dict)
    members: list[str] = field(default_factory=list)

    def view(self, minor: int) -> Json:
        """Return it as the API shows it; ``minor``: the micro-version's second number."""
        shown: Json = {"id": self.group_id, "name": self.name, "members": self.members}
        if minor >= 13:
            shown |= {"project_id": self.project_id, "user_id": self.user_id}
        if minor >= 64:
            return {**shown, "policy": self.policy, "rules": self.rules}
        return {**shown, "policies": [self.policy], "metadata": {}}


@dataclass(kw_only=True, slots=True)
class AttachedVolume:
    """A volume of a server."""

    volume_id: str
    device: str
    delete_on_termination: bool = False
    boots: bool = False
    """Whether the server boots from it; then it cannot be detached."""


@dataclass(kw_only=True, slots=True)
class ServerRequest:
    """A request for a server, with every name resolved."""

    name: str
    flavor: Flavor
    image_id: str | None = None
    port_ids: list[str] = field(default_factory=list)
    network_ids: list[tuple[str, str | None]] = field(default_factory=list)
    """Networks to create ports on, each with a fixed address or None."""
    key_name: str | None = None
    user_data: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    security_groups: list[str] = field(default_factory=list)
    availability_zone: str | None = None
    host: str | None = None
    group_id: str | None = None
    volumes: list[AttachedVolume] = field(default_factory=list)
    new_volumes: list[tuple[int, str | None, bool]] = field(default_factory=list)
    """Volumes that Nova creates itself: size in GiB, image, whether they are deleted with the server."""
    tags: list[str] = field(default_factory=list)
    config_drive: bool = False


@dataclass(kw_only=True, slots=True)
class Server:
    """A machine as Nova sees it."""

    server_id: str = field(default_factory=new_uuid)
    name: str
    project_id: str
    user_id: str
    flavor: Flavor
    image_id: str | None
    key_name: str | None
    user_data: str
    metadata: dict[str, str]
    security_groups: list[str]
    availability_zone: str
    group_id: str | None
    config_drive: bool
    host: str | None = None
    port_ids: list[str] = field(default_factory=list)
    volumes: list[AttachedVolume] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    status: str = "BUILD"
    task_state: str | None = "scheduling"
    vm_state: str = "building"
    power_state: int = 0
    fault: Json | None = None
    created: str = field(default_factory=now_z)
    updated: str = field(default_factory=now_z)
    launched_at: str | None = None
    image_min_disk_gib: int = 0
    """The least disk of a new flavor: Nova notes the disk that the server had when its image was put on it."""
    locked: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the server is deleted."""
    deleting: bool = False

    @property
    def hostname(self) -> str:
        """The host name of the machine: lower case, without characters that a host name cannot have."""
        allowed = "".join(c if c.isalnum() or c in "-." else "-" if c in " _" else "" for c in self.name.lower())
        return allowed.strip("-.") or f"server-{self.server_id}"

    def became(self, status: str, vm_state: str, power_state: int) -> None:
        """Record a settled state."""
        self.status, self.vm_state, self.power_state, self.task_state = status, vm_state, power_state, None
        self.updated = now_z()
