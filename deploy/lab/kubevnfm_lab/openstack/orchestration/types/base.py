"""The base of all resource types: a schema of properties, and the actions on a resource."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from kubevnfm_lab.openstack.balancer.octavia import Octavia
from kubevnfm_lab.openstack.compute.nova import Nova
from kubevnfm_lab.openstack.compute.views import ServerViews
from kubevnfm_lab.openstack.errors import ServiceError
from kubevnfm_lab.openstack.image.glance import Glance
from kubevnfm_lab.openstack.network.neutron import Neutron
from kubevnfm_lab.openstack.network.trunks import Trunks
from kubevnfm_lab.openstack.orchestration.failures import ResourceFailure
from kubevnfm_lab.openstack.orchestration.functions import UNKNOWN, is_unknown
from kubevnfm_lab.openstack.orchestration.parameters import Environment
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack, follow
from kubevnfm_lab.openstack.orchestration.template import Json, Template
from kubevnfm_lab.openstack.settings import Durations
from kubevnfm_lab.openstack.tokens import Identity
from kubevnfm_lab.openstack.volume.cinder import Cinder
from kubevnfm_lab.openstack.wire import Gate
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected

_TRUE: Final = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})


class Invalid(ServiceError):
    """An invalid property or attribute; its text comes with or without the engine's empty path pieces."""

    def __init__(self, error: str, where: str, text: str) -> None:
        self.inner = ": ".join(part for part in (error, where, text) if part)
        pieces = (f"{error}: " if error else "", where, text)
        outer = f"{pieces[0]}: {where}: : {text}" if error else f"{where}: : {text}"
        super().__init__("heat", 400, "StackValidationFailed", outer)


class UpdateReplace(Exception):
    """A type cannot update a resource in place, so it is replaced."""


@dataclass(frozen=True, slots=True)
class Property:
    """One property of a type."""

    kind: str = "string"
    """string, integer, number, boolean, list, map or any."""
    required: bool = False
    default: Any = None
    updatable: bool = False
    """Whether a change of it is made in place; otherwise the resource is replaced."""
    constraint: str | None = None
    """Name of a custom constraint: ``nova.flavor``."""
    allowed: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None

    def typed(self, value: Any) -> Any:
        """Return a value converted to the property's kind; raise ValueError in Heat's words."""
        converted = self._converted(value)
        if self.allowed and converted not in self.allowed:
            shown = ", ".join(str(one) for one in self.allowed)
            raise ValueError(f'"{converted}" is not an allowed value [{shown}]')
        if (self.low is not None and converted < self.low) or (self.high is not None and converted > self.high):
            raise ValueError(f"{converted} is out of range (min: {self.low}, max: {self.high})")
        return converted

    def _converted(self, value: Any) -> Any:
        if self.kind == "string":
            if isinstance(value, dict | list):
                raise ValueError("Value must be a string")
            return value if isinstance(value, str) else str(value)
        if self.kind == "integer":
            try:
                return int(value)
            except (ValueError, TypeError) as error:
                raise ValueError(f"Value '{value}' is not an integer") from error
        if self.kind == "number":
            try:
                return float(value) if "." in str(value) else int(value)
            except (ValueError, TypeError) as error:
                raise ValueError(f'Value "{value}" is not a number') from error
        if self.kind == "boolean":
            text = str(value).lower()
            if text not in _TRUE | _FALSE:
                raise ValueError(f'"{value}" is not a valid boolean')
            return text in _TRUE
        if self.kind == "list" and not isinstance(value, list):
            if isinstance(value, str):
                # A string is accepted for a list, as a parameter of type comma_delimited_list may be passed on
                # unparsed.
                return [one.strip() for one in value.split(",")] if value else []
            raise ValueError(f'"{value!r}" is not a list')
        if self.kind == "map" and not isinstance(value, dict):
            raise ValueError(f'"{value}" is not a map')
        return value


class StackRunner(Protocol):
    """The engine's methods for nested types."""

    async def create_nested(self, holder: Resource, template: Template, environment: Environment) -> None:
        """Create the nested stack of a resource; raise ResourceFailure."""
        ...

    async def update_nested(
        self, holder: Resource, template: Template, environment: Environment, *, is_batch: bool = False
    ) -> None:
        """Update it; raise ResourceFailure."""
        ...

    async def delete_nested(self, holder: Resource) -> None:
        """Delete it; raise ResourceFailure."""
        ...

    async def pause_nested(self, holder: Resource, action: str) -> None:
        """SUSPEND or RESUME it; raise ResourceFailure."""
        ...

    def begin_resize(self, holder: Resource, template: Template, environment: Environment) -> None:
        """Update it on its own, after a signal, with no stack that waits; raise ServiceError if it cannot start."""
        ...


@dataclass
class Services:
    """The rest of the cloud, as Heat's resource types use it."""

    nova: Nova
    server_views: ServerViews
    neutron: Neutron
    trunks: Trunks
    octavia: Octavia
    cinder: Cinder
    glance: Glance
    identity: Identity
    gate: Gate
    durations: Durations
    base_url: str = ""
    """The cloud's address, for the addresses that resources publish."""
    configs: dict[str, str] = field(default_factory=dict)
    """Texts of software configurations and multi-part user data, by id."""
    signal_key: bytes = b""
    """Key of the signatures in addresses at which signals need no token."""

    async def enter(self, part: str, verb: str, node: str = "") -> None:
        """Enter another service's gate; raise the error of Heat's client for it."""
        try:
            await self.gate.enter(part, verb, node)
        except FaultInjected as fault:
            raise ServiceError(part, fault.status, "FaultInjected", fault.message) from fault
        except ConnectionDropped as fault:
            raise ResourceFailure("ConnectFailure", f"Unable to establish connection to {part}") from fault

    def wrong(self, constraint: str, value: Any, project_id: str = "", user_id: str = "") -> str | None:
        """Return what is wrong with a value under a custom constraint, in Heat's words; None if it is valid."""
        text = str(value)
        found: object
        missing: str
        if constraint == "nova.flavor":
            found, missing = self.nova.find_flavor(text), f"No Flavor matching {{'name': '{text}'}}. (HTTP 404)"
        elif constraint == "glance.image":
            found, missing = self.glance.find(text), f"No images matching {{'name': '{text}'}}."
        elif constraint == "neutron.network":
            found = self.neutron.find_network(text, project_id)
            missing = f"Unable to find network with name or id '{text}'"
        elif constraint == "neutron.subnet":
            found = self.neutron.find(self.neutron.subnets, text, project_id)
            missing = f"Unable to find subnet with name or id '{text}'"
        elif constraint == "neutron.port":
            found = self.neutron.find(self.neutron.ports, text, project_id)
            missing = f"Unable to find port with name or id '{text}'"
        elif constraint == "neutron.router":
            found = self.neutron.find(self.neutron.routers, text, project_id)
            missing = f"Unable to find router with name or id '{text}'"
        elif constraint == "neutron.security_group":
            found = self.neutron.find(self.neutron.security_groups, text, project_id)
            missing = f"Unable to find security_group with name or id '{text}'"
        elif constraint in ("octavia.loadbalancer", "octavia.listener", "octavia.pool"):
            kind = constraint.removeprefix("octavia.")
            found = self.octavia.find(kind, text, project_id)
            missing = f"Unable to find {kind} with name or id '{text}'"
        elif constraint == "nova.keypair":
            found = self.nova.key_pairs.get((user_id, text))
            missing = f"The Key ({text}) could not be found."
        elif constraint == "nova.server":
            found, missing = self.nova.servers.get(text), f"The Server ({text}) could not be found."
        elif constraint == "cinder.volume":
            found, missing = self.cinder.volumes.get(text), f"The Volume ({text}) could not be found."
        elif constraint == "cinder.vtype":
            found, missing = self.cinder.types.find(text), f"The VolumeType ({text}) could not be found."
        elif constraint == "keystone.project":
            found, missing = self.identity.find_project(text), f"The KeystoneProject ({text}) could not be found."
        else:
            return None
        return None if found is not None else f"Error validating value '{text}': {missing}"


class ResourceType(ABC):
    """A type of resource; one object of it serves every resource of the type."""

    name: ClassVar[str]
    properties: ClassVar[Mapping[str, Property]]
    attributes: ClassVar[frozenset[str]] = frozenset({"show"})
    always_updates: ClassVar[bool] = False
    """Whether an update of the stack runs it even if its own properties are unchanged."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @abstractmethod
    async def create(self, resource: Resource) -> None:
        """Create it and set ``physical_id`` as soon as there is something to delete."""

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:  # noqa: B027  # optional
        """Update it in place; ``resource.props`` are the new properties, ``before`` the old ones."""

    async def delete(self, resource: Resource) -> None:  # noqa: B027  # optional
        """Delete it; does nothing if it no longer exists."""

    async def suspend(self, resource: Resource) -> None:  # noqa: B027  # optional
        """Suspend it; most types cannot be suspended."""

    async def resume(self, resource: Resource) -> None:  # noqa: B027  # optional
        """Resume it."""

    async def before_replacement(self, resource: Resource) -> None:  # noqa: B027  # optional
        """Release what the replacement of the resource needs."""

    def schema(self, stack: Stack, resource_type: str) -> Mapping[str, Property]:
        """Return its properties; nested templates have their own."""
        return self.properties

    def validate(self, resource_name: str, props: Json) -> None:  # noqa: B027  # optional
        """Raise errors of combined properties; values not known yet are ``UNKNOWN``."""

    def is_there(self, resource: Resource) -> bool:
        """Return whether it exists and works, for a check and after a failure."""
        return resource.physical_id is not None

    def reference(self, resource: Resource) -> Any:
        """Return what ``get_resource`` gives."""
        return resource.physical_id

    def show(self, resource: Resource) -> Json:
        """Return its attributes as the API shows them."""
        return {}

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return what ``get_attr`` gives."""
        shown = self.show(resource)
        return follow(shown if name == "show" else shown.get(name), path)

    def knows(self, attribute: str, stack: Stack, resource_type: str) -> bool:
        """Return whether there is such an attribute."""
        return attribute in self.attributes or attribute == "show"


def checked(
    schema: Mapping[str, Property], given: Json, *, where: str, services: Services, project_id: str, user_id: str
) -> Json:
    """Return all properties of a schema, typed; None or the default if not given.

    Raises: Invalid, which names the property.
    """
    for name in given:
        if name not in schema:
            raise Invalid("Property error", f"{where}.properties", f"Unknown Property {name}")
    props: Json = {}
    for name, spec in schema.items():
        value = given.get(name)
        if value is None:
            if spec.required:
                raise Invalid("Property error", f"{where}.properties", f"Property {name} not assigned")
            props[name] = spec.default
            continue
        # During validation, an attribute of a resource that does not exist yet has no value to check.
        if value is UNKNOWN:
            props[name] = UNKNOWN
            continue
        try:
            props[name] = value if is_unknown(value) else spec.typed(value)
        except ValueError as error:
            raise Invalid("Property error", f"{where}.properties.{name}", str(error)) from error
        if spec.constraint is not None and not is_unknown(value):
            for one in props[name] if spec.kind == "list" else (value,):
                wrong = services.wrong(spec.constraint, one, project_id, user_id)
                if wrong is not None:
                    raise Invalid("Property error", f"{where}.properties.{name}", wrong)
    return props
