"""The facts of a cloud region in an inventory: its kubeconfig, labels and properties (multicloud.md MC-078). Pure functions."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_clients.multicloud.region_views import InventoryHealth
from kubevnfm_clients.multicloud.regions import KEPT_BYTES, KUBECONFIG_BYTES, MOST_LABELS
from kubevnfm_clients.multicloud.types import LabelKey, LabelValue
from kubevnfm_kit.json_pointer import unescaped
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_kit.printable import printable
from kubevnfm_secrets import SecretParams
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kubevnfm_vim_registry.domain.errors import InventoryRefused

_EXEC: Final = "client.authentication.k8s.io/exec"
"""The extension in which an entry configures its provider of credentials."""
_NOT_SENT: Final = ("extensions", "disable-compression")
"""Members of an entry that change no connection of ours."""
_LONGEST_REASON: Final = 1024
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,5}")
_KEY: Final = TypeAdapter[str](LabelKey)
_VALUE: Final = TypeAdapter[str](LabelValue)


@dataclass(frozen=True)
class Pulled:
    """The answer of an inventory."""

    kubeconfig: str = field(repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    kv: JsonMapping = field(default_factory=dict)
    control_plane: str = ""
    """Why the inventory calls the control plane unhealthy; empty: it does not."""


class InventoryState(BaseModel):
    """The result of the last reading, in the record of a region."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    health: InventoryHealth
    labels: dict[str, str] = Field(default_factory=dict)
    kv: SecretParams = Field(default_factory=dict)
    context: str | None = None
    """The context that the registration named; None: the current one of each kubeconfig."""

    def since_when(self, earlier: InventoryState | None) -> InventoryState:
        """Return the state with the time from which on it has been so."""
        if earlier is None:
            return self
        as_before = self.health.model_copy(update={"since": earlier.health.since})
        return self.model_copy(update={"health": as_before}) if as_before == earlier.health else self

    def failed(self, reason: str, *, is_lost: bool, now: str) -> InventoryState:
        """Return the state after a reading that has brought nothing usable."""
        health = self.health.model_copy(
            update={"since": now, "reason": printable(reason[:_LONGEST_REASON]), "lost": is_lost}
        )
        return self.model_copy(update={"health": health}).since_when(self)


def state_of(pulled: Pulled, context: str | None, now: str) -> InventoryState:
    """Return the state after a reading that has brought a kubeconfig."""
    health = InventoryHealth(since=now, control_plane=pulled.control_plane)
    return InventoryState(health=health, labels=dict(pulled.labels), kv=dict(pulled.kv), context=context)


def text_at(document: object, pointer: str) -> str:
    """Return the kubeconfig at a place of a document. Raises InventoryRefused."""
    here = document
    for part in pointer.split("/")[1:]:
        if isinstance(here, Mapping):
            here = here.get(unescaped(part))
        elif isinstance(here, Sequence) and not isinstance(here, str) and _INDEX.fullmatch(part):
            here = here[int(part)] if int(part) < len(here) else None
        else:
            here = None
    if not isinstance(here, str) or not here.strip():
        raise InventoryRefused("inventory/path", f"{pointer}: a text expected there")
    return kubeconfig_in(here)


def kubeconfig_in(text: str) -> str:
    """Return a kubeconfig that is given as text, or as base64 of it. Raises InventoryRefused."""
    # A kubeconfig has colons, so that it is never base64 itself.
    with suppress(binascii.Error, ValueError):
        text = base64.b64decode("".join(text.split()), validate=True).decode()
    if len(text.encode()) > KUBECONFIG_BYTES:
        raise InventoryRefused("inventory", f"a kubeconfig of at most {KUBECONFIG_BYTES} bytes expected")
    return text


def in_secret(secret: JsonMapping, *names: str) -> str:
    """Return the text of the first of these keys of a Secret; empty: it has none of them. Raises InventoryRefused."""
    data = secret.get("data")
    given = next((data[name] for name in names if data.get(name)), "") if isinstance(data, Mapping) else ""
    try:
        return base64.b64decode(str(given), validate=True).decode()
    except (binascii.Error, ValueError):
        raise InventoryRefused("inventory", f"the Secret with the key {names[0]}: base64 of a text expected") from None


@dataclass(frozen=True)
class Provider:
    """One way to the credentials of a cluster, as a ClusterProfile offers it."""

    name: str
    cluster: JsonMapping
    """The entry ``cluster`` of a kubeconfig."""

    @property
    def config(self) -> JsonMapping:
        """The configuration of the provider."""
        extensions = self.cluster.get("extensions")
        for each in extensions if isinstance(extensions, list) else ():
            if isinstance(each, Mapping) and each.get("name") == _EXEC and isinstance(each.get("extension"), Mapping):
                found: JsonMapping = each["extension"]
                return found
        return {}

    def text(self, name: str, default: str = "") -> str:
        """Return a text of the configuration."""
        value = self.config.get(name)
        return value if isinstance(value, str) and value else default

    def kubeconfig(self, user: JsonMapping) -> str:
        """Return the kubeconfig of the cluster with this user."""
        cluster = {name: value for name, value in self.cluster.items() if name not in _NOT_SENT}
        config: JsonObject = {
            "current-context": self.name,
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": self.name}}],
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
        }
        return kubeconfig_in(json.dumps(config))


def providers_of(profile: JsonMapping) -> Sequence[Provider]:
    """Return the ways to credentials that a ClusterProfile offers, in its order."""
    status = profile.get("status")
    if not isinstance(status, Mapping):
        return ()
    listed = status.get("accessProviders") or status.get("credentialProviders")
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return [
        Provider(printable(str(each.get("name", ""))[:253]), each["cluster"])
        for each in entries
        if isinstance(each.get("cluster"), Mapping)
    ]


def described(profile: JsonMapping, kubeconfig: str) -> Pulled:
    """Return a kubeconfig with what a ClusterProfile says of its cluster."""
    status, metadata = profile.get("status"), profile.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    shown = sorted(labels.items()) if isinstance(labels, Mapping) else []
    status = status if isinstance(status, Mapping) else {}
    return Pulled(
        kubeconfig,
        {name: str(value) for name, value in shown if _is_label(name, value)} if len(shown) <= MOST_LABELS else {},
        _properties(status.get("properties")),
        _unhealthy(status.get("conditions")),
    )


def _is_label(name: object, value: object) -> bool:
    try:
        _KEY.validate_python(name, strict=True)
        _VALUE.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def _properties(listed: object) -> JsonObject:
    entries = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    found: JsonObject = {}
    left_bytes = KEPT_BYTES
    for each in entries:
        name, value = each.get("name"), each.get("value")
        # A name that begins with $ is none of a document.
        if isinstance(name, str) and isinstance(value, str) and not name.startswith("$"):
            left_bytes -= len(json.dumps({name: value}))
            if left_bytes < 0:
                break
            found[name] = value
    return found


def _unhealthy(conditions: object) -> str:
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == "ControlPlaneHealthy" and each.get("status") == "False":
            return printable(f"{each.get('reason', '')}: {each.get('message', '')}"[:_LONGEST_REASON])
    return ""
