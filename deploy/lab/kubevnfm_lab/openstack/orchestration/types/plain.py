"""OS::Heat resources that only hold values, and the test resource."""

from __future__ import annotations

import asyncio
import string
from collections.abc import Mapping, Sequence
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any, ClassVar, Final

from kubevnfm_lab import yaml_text
from kubevnfm_lab.openstack.ids import new_secret, new_uuid
from kubevnfm_lab.openstack.orchestration.failures import ResourceFailure
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack, follow
from kubevnfm_lab.openstack.orchestration.template import Json
from kubevnfm_lab.openstack.orchestration.types.base import Property, ResourceType

_CLASSES: Final = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}


class NamedType(ResourceType):
    """A resource without any counterpart in the cloud: its physical id is its name."""

    async def create(self, resource: Resource) -> None:
        """Set the physical id."""
        resource.physical_id = resource.physical_name


class ValueType(NamedType):
    """OS::Heat::Value."""

    name = "OS::Heat::Value"
    properties: ClassVar[Mapping[str, Property]] = {
        "value": Property("any", required=True, updatable=True),
        "type": Property(updatable=True),
    }
    attributes = frozenset({"value"})

    def show(self, resource: Resource) -> Json:
        """Return the value."""
        return {"value": resource.props.get("value")}


class NoneType(NamedType):
    """OS::Heat::None: takes any property and does nothing."""

    name = "OS::Heat::None"
    properties: ClassVar[Mapping[str, Property]] = {}

    def schema(self, stack: Stack, resource_type: str) -> Any:
        """Return a schema that has every property."""
        return _Anything()

    def knows(self, attribute: str, stack: Stack, resource_type: str) -> bool:
        """It has every attribute, without a value."""
        return True


class _Anything(dict[str, Property]):
    def __contains__(self, key: object) -> bool:
        return True


class RandomStringType(NamedType):
    """OS::Heat::RandomString."""

    name = "OS::Heat::RandomString"
    properties: ClassVar[Mapping[str, Property]] = {
        "length": Property("integer", default=32, low=1, high=512),
        "character_classes": Property("list", default=[]),
        "character_sequences": Property("list"),
        "salt": Property(),
    }
    attributes = frozenset({"value"})

    async def create(self, resource: Resource) -> None:
        """Draw the string: the minimum of each class, the rest from all classes, shuffled."""
        await super().create(resource)
        length = int(resource.props["length"])
        classes = resource.props["character_classes"] or [{"class": "lettersdigits", "min": 1}]
        drawn: list[str] = []
        for one in classes:
            drawn += new_secret(int(one.get("min", 1)), _CLASSES[str(one.get("class", "lettersdigits"))])
        alphabet = "".join(_CLASSES[str(one.get("class", "lettersdigits"))] for one in classes)
        drawn += new_secret(max(0, length - len(drawn)), alphabet)
        resource.data["value"] = "".join(drawn[:length])

    def show(self, resource: Resource) -> Json:
        """Return the string."""
        return {"value": resource.data.get("value")}

    def reference(self, resource: Resource) -> Any:
        """Return the string."""
        return resource.data.get("value", resource.physical_id)


class SoftwareConfigType(ResourceType):
    """OS::Heat::SoftwareConfig: a text that servers take as user data."""

    name = "OS::Heat::SoftwareConfig"
    properties: ClassVar[Mapping[str, Property]] = {
        "config": Property(),
        "group": Property(default="Heat::Ungrouped"),
        "inputs": Property("list", default=[]),
        "outputs": Property("list", default=[]),
        "options": Property("map", default={}),
    }
    attributes = frozenset({"config"})

    async def create(self, resource: Resource) -> None:
        """Store the text under an id."""
        resource.physical_id = new_uuid()
        self.services.configs[resource.physical_id] = self.text(resource)

    async def delete(self, resource: Resource) -> None:
        """Delete it."""
        self.services.configs.pop(resource.physical_id or "", None)

    def text(self, resource: Resource) -> str:
        """Return the text for a server."""
        return str(resource.props["config"] or "")

    def show(self, resource: Resource) -> Json:
        """Return the text."""
        return {"config": self.services.configs.get(resource.physical_id or "")}


class CloudConfigType(SoftwareConfigType):
    """OS::Heat::CloudConfig."""

    name = "OS::Heat::CloudConfig"
    properties: ClassVar[Mapping[str, Property]] = {"cloud_config": Property("map", default={})}

    def text(self, resource: Resource) -> str:
        """Return the configuration as cloud-init reads it."""
        return "#cloud-config\n" + yaml_text.dump(resource.props["cloud_config"] or {})


class MultipartMimeType(SoftwareConfigType):
    """OS::Heat::MultipartMime: several parts in one message; the lab's machines run each."""

    name = "OS::Heat::MultipartMime"
    properties: ClassVar[Mapping[str, Property]] = {
        "parts": Property("list", default=[]),
        "group": Property(default="Heat::Ungrouped"),
    }

    def text(self, resource: Resource) -> str:
        """Return the parts as one MIME message, as cloud-init takes it."""
        message = MIMEMultipart()
        for part in resource.props["parts"] or ():
            given = str(part.get("config") or "")
            # A part is given as the id of a stored configuration, or as the text itself.
            text = self.services.configs.get(given, given)
            subtype = "x-shellscript" if text.startswith("#!") else "cloud-config"
            message.attach(MIMEText(text, part.get("subtype") or subtype))
        return message.as_string()


class TestResourceType(NamedType):
    """OS::Heat::TestResource: waits and fails as its properties say."""

    name = "OS::Heat::TestResource"
    properties: ClassVar[Mapping[str, Property]] = {
        "value": Property(default="test_string", updatable=True),
        "fail": Property("boolean", default=False, updatable=True),
        "update_replace": Property("boolean", default=False, updatable=True),
        "update_replace_value": Property(),
        "wait_secs": Property("number", default=0, updatable=True),
        "action_wait_secs": Property("map", updatable=True),
        "client_name": Property(default=""),
        "entity_name": Property(default=""),
        "constraint_prop_secs": Property("number", default=0),
    }
    attributes = frozenset({"output"})

    async def create(self, resource: Resource) -> None:
        """Wait, then fail or exist."""
        await super().create(resource)
        await self._act(resource, "create")

    async def update(self, resource: Resource, before: Json, changed: set[str]) -> None:
        """Wait, then fail or take the new value."""
        await self._act(resource, "update")

    async def delete(self, resource: Resource) -> None:
        """Wait."""
        wait = (resource.props.get("action_wait_secs") or {}).get("delete")
        if wait:
            await asyncio.sleep(float(wait))

    def is_there(self, resource: Resource) -> bool:
        """A failed one is created again."""
        return resource.status != "FAILED"

    def show(self, resource: Resource) -> Json:
        """Return the value."""
        return {"output": resource.props.get("value")}

    def attribute(self, resource: Resource, name: str, path: Sequence[Any]) -> Any:
        """Return the value."""
        return follow(resource.props.get("value"), path) if name == "output" else None

    async def _act(self, resource: Resource, action: str) -> None:
        wait = (resource.props["action_wait_secs"] or {}).get(action, resource.props["wait_secs"])
        if wait:
            await asyncio.sleep(float(wait))
        if resource.props["fail"]:
            raise ResourceFailure("ValueError", f"Test Resource failed {resource.name}")


PLAIN_TYPES: Final[Sequence[type[ResourceType]]] = (
    ValueType,
    NoneType,
    RandomStringType,
    SoftwareConfigType,
    CloudConfigType,
    MultipartMimeType,
    TestResourceType,
)
