"""How the parts of an object merge: which lists are associative and by which keys, which maps are atomic.

Built-in kinds follow the markers of Kubernetes' own types (``+listType``, ``+listMapKey``, ``+structType=atomic``), here
by field name and parent, which is unambiguous for the kinds that the lab serves. Custom kinds follow their schema
(``x-kubernetes-list-type``, ``x-kubernetes-list-map-keys``, ``x-kubernetes-map-type``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kubevnfm_lab.kubernetes.objects import Obj, compact_json
from kubevnfm_lab.kubernetes.resources import Resource


@dataclass(frozen=True)
class ListType:
    """How a list merges: as a whole, as a set of values, or item by item by its keys."""

    keys: tuple[str, ...] = ()
    is_set: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of keys that an item may leave out (``protocol: TCP``)."""

    @property
    def is_atomic(self) -> bool:
        return not self.keys and not self.is_set

    def element(self, item: Any) -> str | None:
        """Return the item's path element in ``fieldsV1`` form; None if it lacks a key."""
        if self.is_set:
            return f"v:{compact_json(item)}"
        if not isinstance(item, dict):
            return None
        # A key that is absent and has no default is left out, as structured-merge-diff does for optional keys.
        values = {key: item.get(key, self.defaults.get(key)) for key in self.keys}
        present = {key: value for key, value in values.items() if value is not None}
        return f"k:{compact_json(present)}" if present else None


ATOMIC: Final = ListType()
SET: Final = ListType(is_set=True)


class Shape(Protocol):
    """How one value inside an object merges."""

    def child(self, name: str) -> Shape:
        """Return the shape of a map's field."""
        ...

    def item(self) -> Shape:
        """Return the shape of a list's items."""
        ...

    @property
    def list_type(self) -> ListType:
        """How this list merges."""
        ...

    @property
    def is_atomic_map(self) -> bool:
        """Whether this map merges as a whole."""
        ...


_NAMED: Final = ListType(("name",))
_CONTAINERS: Final = frozenset({"containers", "initContainers", "ephemeralContainers"})
_LISTS: Final[Mapping[str, ListType]] = {
    "containers": _NAMED,
    "initContainers": _NAMED,
    "ephemeralContainers": _NAMED,
    "env": _NAMED,
    "volumes": _NAMED,
    "imagePullSecrets": _NAMED,
    "resourceClaims": _NAMED,
    "schedulingGates": _NAMED,
    "webhooks": _NAMED,
    "volumeMounts": ListType(("mountPath",)),
    "volumeDevices": ListType(("devicePath",)),
    "hostAliases": ListType(("ip",)),
    "podIPs": ListType(("ip",)),
    "topologySpreadConstraints": ListType(("topologyKey", "whenUnsatisfiable")),
    # Controllers own one condition each, so conditions merge by type.
    "conditions": ListType(("type",)),
    "ownerReferences": ListType(("uid",)),
    "finalizers": SET,
    "podCIDRs": SET,
}
_BY_PARENT: Final[Mapping[tuple[str, str], ListType]] = {
    **{(parent, "ports"): ListType(("containerPort", "protocol"), defaults={"protocol": "TCP"}) for parent in _CONTAINERS},
    ("service", "ports"): ListType(("port", "protocol"), defaults={"protocol": "TCP"}),
    ("node", "addresses"): ListType(("type",)),
    ("serviceaccount", "secrets"): _NAMED,
    ("serviceaccount", "imagePullSecrets"): ATOMIC,
}  # fmt: skip
_ATOMIC_MAPS: Final = frozenset(
    {"nodeSelector", "configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef", "labelSelector",
     "podSelector", "namespaceSelector", "objectSelector", "matchLabels", "claimRef", "involvedObject", "nodeSelectorTerms",
     "scaleTargetRef", "roleRef", "ingressClassRef"}
)  # fmt: skip


@dataclass(frozen=True)
class BuiltInShape:
    """The shape of a part of a built-in kind, identified by its field name and its parent."""

    kind: str
    """The object's kind in lower case."""
    parent: str = ""
    name: str = ""

    def child(self, name: str) -> BuiltInShape:
        """See `Shape`."""
        return BuiltInShape(self.kind, parent=self.name, name=name)

    def item(self) -> BuiltInShape:
        """See `Shape`; an item has the shape of its list."""
        return self

    @property
    def list_type(self) -> ListType:
        by_parent = _BY_PARENT.get((self.parent, self.name)) or _BY_PARENT.get((self.kind, self.name))
        return by_parent or _LISTS.get(self.name, ATOMIC)

    @property
    def is_atomic_map(self) -> bool:
        # Keys below metadata.labels are free, so only real fields of these names count.
        if self.parent in {"labels", "annotations", "data"}:
            return False
        return self.name in _ATOMIC_MAPS or (self.name == "selector" and self.parent == "spec")


@dataclass(frozen=True)
class SchemaShape:
    """The shape of a part of a custom resource, read from its schema; without a schema it is granular."""

    schema: Mapping[str, Any]

    def child(self, name: str) -> SchemaShape:
        """See `Shape`."""
        properties = self.schema.get("properties") or {}
        if name in properties:
            return SchemaShape(properties[name])
        more = self.schema.get("additionalProperties")
        return SchemaShape(more if isinstance(more, dict) else {})

    def item(self) -> SchemaShape:
        """See `Shape`."""
        items = self.schema.get("items")
        return SchemaShape(items if isinstance(items, dict) else {})

    @property
    def list_type(self) -> ListType:
        kind = self.schema.get("x-kubernetes-list-type")
        if kind == "set":
            return SET
        if kind != "map":
            return ATOMIC
        properties = self.item().schema.get("properties") or {}
        keys = tuple(self.schema.get("x-kubernetes-list-map-keys") or ())
        defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
        return ListType(keys, defaults=defaults)

    @property
    def is_atomic_map(self) -> bool:
        return self.schema.get("x-kubernetes-map-type") == "atomic"


@dataclass(frozen=True)
class CustomObjectShape:
    """A whole custom resource: its metadata is that of any object, the rest follows the schema."""

    schema: SchemaShape

    def child(self, name: str) -> Shape:
        """See `Shape`."""
        if name == "metadata":
            return BuiltInShape("", name="metadata")
        return self.schema.child(name)

    def item(self) -> Shape:
        """See `Shape`."""
        return self.schema.item()

    @property
    def list_type(self) -> ListType:
        return ATOMIC

    @property
    def is_atomic_map(self) -> bool:
        return False


def shape_of(resource: Resource) -> Shape:
    """Return how objects of the resource merge."""
    if resource.custom is not None:
        return CustomObjectShape(SchemaShape(resource.custom.schema))
    return BuiltInShape(resource.kind.lower())


def find_item(items: list[Any], element: str, kind: ListType) -> Any | None:
    """Return the item of an associative list that has this path element."""
    return next((item for item in items if kind.element(item) == element), None)


def merged(live: Any, config: Any, shape: Shape) -> Any:
    """Return ``live`` with ``config`` merged over it; neither is changed.

    Items of associative lists keep their place in ``live``; new ones follow in the order of ``config``.
    """
    if isinstance(config, dict) and isinstance(live, dict) and not shape.is_atomic_map:
        result: Obj = dict(live)
        for name, value in config.items():
            result[name] = merged(live.get(name), value, shape.child(name))
        return result
    if isinstance(config, list) and isinstance(live, list) and not shape.list_type.is_atomic:
        kind, item_shape = shape.list_type, shape.item()
        # Items without their keys cannot match any other, but must not be lost.
        fresh = {kind.element(item) or f"?{index}": item for index, item in enumerate(config)}
        items = []
        for old in live:
            element = kind.element(old) or ""
            items.append(merged(old, fresh.pop(element), item_shape) if element in fresh else old)
        return [*items, *fresh.values()]
    return config
