"""The settings of the stand-in cloud: credentials, sizes, and durations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

UNLIMITED: Final = -1


@dataclass(frozen=True)
class Credentials:
    """One user and the project it works in."""

    username: str = "nfv"
    password: str = field(default="nfv", repr=False)
    project: str = "nfv"
    domain: str = "Default"
    roles: tuple[str, ...] = ("member", "reader", "heat_stack_owner")


@dataclass(frozen=True)
class Flavor:
    """A size of server."""

    flavor_id: str
    name: str
    vcpus: int
    ram_mib: int
    disk_gib: int
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    fits: bool = True
    """Whether any host is large enough; if not, its servers fail with "No valid host was found"."""


FLAVORS: Final = (
    Flavor("1", "m1.tiny", 1, 512, 1),
    Flavor("2", "m1.small", 1, 2048, 20),
    Flavor("3", "m1.medium", 2, 4096, 40),
    Flavor("4", "m1.large", 4, 8192, 80),
    Flavor("5", "m1.impossible", 1, 9_000_000, 1, fits=False),
    Flavor("84", "m1.micro", 1, 256, 1),
)


@dataclass
class Durations:
    """The durations of the cloud's work, in seconds; by default nothing takes time.

    Changed while the lab runs by ``PUT /lab/v1/settings``.
    """

    server_create_s: float = 0.0
    server_delete_s: float = 0.0
    server_action_s: float = 0.0
    port_create_s: float = 0.0
    volume_create_s: float = 0.0
    volume_attach_s: float = 0.0
    balancer_change_s: float = 0.0
    """How long a load balancer cannot be changed after a change of it or of its parts; a minute or two when it is made."""
    signal_s: float = 0.0
    """From the answer to a signal until the scaling starts; a second or two in real clouds."""
    stack_cancel_s: float = 0.0
    """How long a stack whose deletion cancels other work shows as failed; at most a second in real clouds."""
    stack_forget_s: float = 0.0
    """How long Heat lists a stack that is DELETE_COMPLETE and keeps its name taken; about a second in real clouds."""
    stack_minute_s: float = 60.0
    """The length of one minute of a stack's ``timeout_mins``; tests make it short."""

    def change(self, values: Mapping[str, Any]) -> None:
        """Set the named durations; raise ValueError that names the first invalid field, and change nothing."""
        known = {spec.name for spec in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise ValueError(f"{name}: no such setting; there are {', '.join(sorted(known))}")
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise ValueError(f"{name}: a number of seconds, 0 or more, expected, got {value!r}")
        for name, value in values.items():
            setattr(self, name, float(value))


@dataclass(frozen=True)
class CloudSettings:
    """Everything that can be set about a lab's cloud before it starts."""

    credentials: tuple[Credentials, ...] = (Credentials(),)
    region: str = "RegionOne"
    catalog: Mapping[str, str] = field(default_factory=dict)
    """Further services in Keystone's catalogue: URL by type. ``{project}`` in a URL is the id of the token's project."""
    token_lifetime_s: float = 3600.0
    flavors: tuple[Flavor, ...] = FLAVORS
    images: tuple[str, ...] = ("dummy", "ubuntu")
    compute_hosts: int = 8
    """Hosts compute1, compute2, ...; anti-affinity groups hold at most that many servers."""
    create_retries: int = 5
    """How often Heat retries a server that went to ERROR (its action_retry_limit)."""
    deleted_stacks_kept: int = 2000
    """How many deleted stacks can still be read by id."""
    durations: Durations = field(default_factory=Durations)
    quotas: Mapping[str, int] = field(default_factory=dict)
    """Limits by name (see ``quotas.QUOTA_NAMES``); a quota that is not named is unlimited."""
