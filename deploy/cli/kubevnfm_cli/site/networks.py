"""Virtual links, persistent volumes and subscriptions of a site."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.site.difference import differences
from kubevnfm_cli.site.instances import cluster_of
from kubevnfm_cli.site.model import LABEL, MARK, Entry, Key
from kubevnfm_cli.site.plans import Plan, Step, taken
from kubevnfm_cli.site.secrets import MASK, revealed
from kubevnfm_cli.site.world import Conflicts, Thing, World

_LINKS: Final = "/multicloud/v1/virtual-links"
_VOLUMES: Final = "/multicloud/v1/persistent-volumes"
_SUBSCRIPTIONS: Final = "/vnflcm/v2/subscriptions"
_PREFER: Final = "wait=60"


def region_id(world: World, entry: Entry) -> str | None:
    """Return the id of the region that an entry names, or of the VIM of a cluster; None if the cluster is not there yet."""
    if "vimOf" in entry.body:
        vim = cluster_of(world, entry.body["vimOf"])
        return None if vim is None else str(vim["vimId"])
    name: str = entry.body["region"]
    region = world.site.entries.get(Key("regions", name))
    return f"{region.body['cloud_owner']}/{name}" if region is not None else name


def _found(world: World, entry: Entry, path: str) -> JsonObject | None:
    region = region_id(world, entry)
    if region is None:
        return None
    return next(iter(world.read_list(path, {"cloud_region_id": region, "name": entry.name})), None)


def _create(world: World, entry: Entry, path: str, wanted: Mapping[str, Any]) -> Step:
    """Return the step that creates a link or a volume."""

    def run() -> None:
        region = region_id(world, entry)
        if region is None:
            raise Conflicts(f"{entry.place('vimOf')}: {entry.body['vimOf']} has registered no VIM: it is no cluster")
        world.write("POST", path, {**wanted, "cloud_region_id": region, "name": entry.name}, prefer=_PREFER)

    return Step("create", run)


class Links:
    """Virtual links: the site is one of the users, and leaves the link when it is removed."""

    def plan(self, world: World, entry: Entry) -> Plan:
        wanted = {name: value for name, value in entry.body.items() if name not in ("region", "vimOf")}
        reference, found = _reference(world), _found(world, entry, _LINKS)
        if found is None:
            return Plan(Thing(), [_create(world, entry, _LINKS, {**wanted, "reference": reference})])
        thing = Thing(str(found["id"]))
        namespaces = sorted(set(wanted.pop("namespaces", ())) - set(found.get("namespaces", ())))
        refusals = [f"{each}; a link keeps this: delete it, and apply again" for each in differences(wanted, found)]
        verb = "update"
        if reference not in found.get("references", ()):
            refusal = taken(world, "virtual link", None, str(found["id"]))
            if refusal is not None:
                return Plan(thing, refusals=[refusal])
            verb = "adopt"
        elif not namespaces:
            return Plan(thing, refusals=refusals, note=_state(found, "status", "status_detail", ("READY",)))
        text = [f"namespaces: {', '.join(namespaces)} (new)"] if namespaces else []
        body = {"namespaces": entry.body["namespaces"]} if entry.body.get("namespaces") else {}
        path = path_of("multicloud", "v1", "virtual-links", str(found["id"]), "references", reference)
        return Plan(thing, [Step(verb, lambda: world.write("PUT", path, body, prefer=_PREFER), text)], refusals)

    def removal(self, world: World, entry: Entry) -> Plan:
        found = _found(world, entry, _LINKS)
        reference = _reference(world)
        if found is None or reference not in found.get("references", ()):
            return Plan(Thing())
        others = [each for each in found["references"] if each != reference]
        path = path_of("multicloud", "v1", "virtual-links", str(found["id"]))
        text = [f"{len(others)} others use it: it stays"] if others else []
        leave = Step(
            "leave" if others else "delete",
            lambda: world.write("DELETE", path, query={"reference": reference}, prefer=_PREFER),
            text,
            is_last=True,
        )
        return Plan(Thing(str(found["id"])), [leave])


def _reference(world: World) -> str:
    return f"site:{world.site.name}"


def _state(found: JsonObject, status: str, detail: str, good: tuple[str, ...]) -> str:
    state = str(found.get(status))
    return "" if state in good else f"it is {state}: {found.get(detail) or 'no reason given'}"


class Volumes:
    """Persistent volumes: the mark is a label."""

    def plan(self, world: World, entry: Entry) -> Plan:
        wanted = {name: value for name, value in entry.body.items() if name not in ("region", "vimOf")}
        wanted["labels"] = {**wanted.get("labels", {}), LABEL: world.site.name}
        found = _found(world, entry, _VOLUMES)
        if found is None:
            return Plan(Thing(), [_create(world, entry, _VOLUMES, wanted)])
        thing, owner = Thing(str(found["id"])), part(found, "labels", LABEL)
        if owner != world.site.name and (refusal := taken(world, "volume", owner, str(found["id"]))) is not None:
            return Plan(thing, refusals=[refusal])
        # The namespace of a volume is that of its claim.
        shown = {**found, "namespace": part(found, "claim", "namespace") or wanted.get("namespace")}
        changed = list(differences(wanted, shown))
        refusals = [
            f"{each}; a volume keeps this: delete it, and apply again"
            for each in changed
            if each.path[0] not in ("size", "labels")
        ]
        parts = {str(each.path[0]) for each in changed}
        if not parts or refusals:
            return Plan(
                thing, refusals=refusals, note=_state(found, "phase", "phase_detail", ("Reserved", "Bound", "Pending"))
            )
        path, body = (
            path_of("multicloud", "v1", "persistent-volumes", str(found["id"])),
            {each: wanted[each] for each in parts},
        )
        verb = "update" if owner == world.site.name else "adopt"
        return Plan(
            thing,
            [Step(verb, lambda: world.write("PATCH", path, body, prefer=_PREFER), [str(each) for each in changed])],
        )

    def removal(self, world: World, entry: Entry) -> Plan:
        found = _found(world, entry, _VOLUMES)
        if found is None or part(found, "labels", LABEL) != world.site.name:
            return Plan(Thing())
        path = path_of("multicloud", "v1", "persistent-volumes", str(found["id"]))
        text = ["its data are kept"] if found.get("reclaim") == "Retain" else ["its data are deleted"]
        remove = Step("delete", lambda: world.write("DELETE", path, prefer=_PREFER), text, is_last=True)
        return Plan(Thing(str(found["id"])), [remove])


class Subscriptions:
    """Subscriptions to life-cycle changes: the mark is in ``metadata``. They cannot be changed, so another one replaces them."""

    def plan(self, world: World, entry: Entry) -> Plan:
        wanted = _subscription(entry)
        found = self._found(world, entry)
        mark = {MARK: world.site.name, "name": entry.name}
        create = Step("create", lambda: world.write("POST", _SUBSCRIPTIONS, {**wanted, "metadata": mark}))
        if not found:
            return Plan(Thing(), [create])
        present, surplus = found[0], found[1:]
        changed = [str(each) for each in differences({"filter": {}, "verbosity": "FULL", **_compared(wanted)}, present)]
        unwanted = sorted(set(_flat(present.get("filter", {}))) - set(_flat(wanted.get("filter", {}))))
        changed += [f"filter/{each}: not wanted" for each in unwanted]
        address = str(revealed(wanted["callbackUri"]))
        if not is_same_address(address, str(present["callbackUri"])):
            changed.append(f"callbackUri: {_shown(present['callbackUri'])} -> {_shown(address)}")
        # The new one first: no change is missed. One that an interrupted call has left is removed.
        steps = [Step("replace", create.run, changed)] if changed and not surplus else []
        outdated = [present] if changed and surplus else list(surplus)
        steps += [Step("delete the former", lambda each=each: _remove(world, each)) for each in outdated]  # type: ignore[misc]
        return Plan(Thing(str(present["id"])), steps)

    def removal(self, world: World, entry: Entry) -> Plan:
        found = self._found(world, entry)
        steps = [Step("delete", lambda each=each: _remove(world, each)) for each in found]  # type: ignore[misc]
        return Plan(Thing(str(found[0]["id"])) if found else Thing(), steps)

    def _found(self, world: World, entry: Entry) -> list[JsonObject]:
        wanted = f"(eq,metadata/{MARK},{world.site.name});(eq,metadata/name,{entry.name})"
        return world.read_list(_SUBSCRIPTIONS, {"filter": wanted})


def _subscription(entry: Entry) -> dict[str, Any]:
    wanted = {name: value for name, value in entry.body.items() if name != "instances"}
    if "instances" in entry.body:
        names = {"vnfInstanceNames": list(entry.body["instances"])}
        given = wanted.get("filter", {})
        instances = {**given.get("vnfInstanceSubscriptionFilter", {}), **names}
        wanted["filter"] = {**given, "vnfInstanceSubscriptionFilter": instances}
    return wanted


def _compared(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared value by value; authentication is never shown."""
    return {name: value for name, value in wanted.items() if name not in ("callbackUri", "authentication")}


def _flat(tree: Any, path: str = "") -> list[str]:
    """Return the paths of what a filter says; the gateway leaves out what is empty."""
    if isinstance(tree, Mapping):
        return [name for key, value in tree.items() for name in _flat(value, f"{path}/{key}".removeprefix("/"))]
    return [] if tree in ([], None) else [path]


def is_same_address(wanted: str, shown: str) -> bool:
    """Return whether an address is the one that is shown, which has ``***`` for a login, values of a query, and a fragment."""
    if wanted == shown:
        return True
    try:
        ours, theirs = urlsplit(wanted), urlsplit(shown)
    except ValueError:
        return False
    if (ours.scheme, ours.hostname, ours.port, ours.path) != (theirs.scheme, theirs.hostname, theirs.port, theirs.path):
        return False
    pairs = list(zip(ours.query.split("&"), theirs.query.split("&"), strict=False))
    return ours.query.count("&") == theirs.query.count("&") and all(_fits(*pair) for pair in pairs)


def _fits(wanted: str, shown: str) -> bool:
    name, _, value = shown.partition("=")
    return wanted == shown or shown == MASK or (value == MASK and wanted.partition("=")[0] == name)


def _shown(address: Any) -> str:
    return str(address).partition("?")[0].partition("#")[0]


def _remove(world: World, subscription: JsonObject) -> None:
    world.write("DELETE", path_of("vnflcm", "v2", "subscriptions", str(subscription["id"])))
