"""VNF instances of a site: created, instantiated, and changed by the operation that fits; the mark is in ``metadata``.

The mark has hashes of what was requested and is not shown again (parameters, external links), so that a change of the file
is found. It is written before an operation that the VNF itself shows (a change of package), and after one that only
the mark shows (a change of external links): what an interrupted call has left is done again, and never taken for done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_cli.faults import Fault
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.site.difference import differences
from kubevnfm_cli.site.model import MARK, Entry, Key
from kubevnfm_cli.site.plans import Plan, Step, taken
from kubevnfm_cli.site.secrets import digest
from kubevnfm_cli.site.vims import LONG_TYPES, vim_of_instance, vim_of_name
from kubevnfm_cli.site.world import OPEN_STATES, Conflicts, Thing, World, failure_text

_INSTANCES: Final = "/vnflcm/v2/vnf_instances"
_OPERATIONS: Final = "/vnflcm/v2/vnf_lcm_op_occs"
_REQUESTED: Final = (
    *("flavourId", "instantiationLevelId", "additionalParams", "extVirtualLinks", "extManagedVirtualLinks"),
    *("extensions", "vnfConfigurableProperties"),
)
"""The attributes of an instantiation that an entry has."""
_INFORMATION: Final = ("vnfInstanceDescription", "metadata", "extensions", "vnfConfigurableProperties")
"""Those that a modification changes."""
_TERMINATION: Final = {"terminationType": "GRACEFUL"}
_MOST_STEPS: Final = 10_000


@dataclass(frozen=True)
class _Look:
    """An entry, and what stands for it."""

    world: World
    entry: Entry
    found: JsonObject
    mark: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.found["id"])

    @property
    def body(self) -> Mapping[str, Any]:
        return self.entry.body

    def can(self, link: str) -> bool:
        """Return whether the VNF has an operation, by the name of its link."""
        return link in self.found.get("_links", {})

    def start(self, task: str, body: Mapping[str, Any]) -> None:
        """Start an operation, and wait for its end if something needs that."""
        reply = self.world.write("POST", path_of("vnflcm", "v2", "vnf_instances", self.id, task), dict(body))
        self._end(
            reply.headers.get("Location"), is_needed=self.world.must_wait(self.entry) or _has_more(task, self.body)
        )

    def check(self, task: str, body: Mapping[str, Any]) -> None:
        """Have the gateway check an operation, which does not begin. Raises Refused."""
        self.world.check(self.entry.key, "POST", path_of("vnflcm", "v2", "vnf_instances", self.id, task), dict(body))

    def operation(
        self, verb: str, task: str, body: Mapping[str, Any], differences: Sequence[str], *, is_last: bool = False
    ) -> Step:
        """Return the step that is one operation."""
        is_known = body.get("vnfdId", "") is not None
        check = (lambda: self.check(task, body)) if is_known else None
        return Step(verb, lambda: self.start(task, body), differences, check, is_last)

    def modify(self, body: Mapping[str, Any]) -> None:
        """Modify the information; the end is always awaited, as other operations would be refused before it."""
        reply = self.world.write("PATCH", path_of("vnflcm", "v2", "vnf_instances", self.id), dict(body))
        self._end(reply.headers.get("Location"), is_needed=True)

    def check_modification(self, body: Mapping[str, Any]) -> None:
        """Have the gateway check a modification, which does not begin. Raises Refused."""
        self.world.check(self.entry.key, "PATCH", path_of("vnflcm", "v2", "vnf_instances", self.id), dict(body))

    def _end(self, location: str | None, *, is_needed: bool) -> None:
        operation_id = str(location).rstrip("/").rsplit("/", 1)[-1]
        self.world.warn_of_operation(self.entry.key, operation_id)
        if is_needed:
            self.world.awaited_operation(self.entry.key, operation_id)


def _has_more(task: str, body: Mapping[str, Any]) -> bool:
    """Return whether another step may follow an operation."""
    return task in ("change_ext_conn", "scale", "terminate") or (
        task in ("instantiate", "change_vnfpkg", "change_flavour") and "scale" in body
    )


class Instances:
    """VNF instances by SOL003 v2."""

    def plan(self, world: World, entry: Entry) -> Plan:
        found, refusal = _found(world, entry)
        if refusal is not None:
            return Plan(Thing(), refusals=[refusal])
        vnfd_id = world.thing(Key("packages", entry.body["package"])).facts.get("vnfdId")
        if found is None:
            return Plan(
                Thing(), [Step("create", lambda: _create(world, entry, vnfd_id)), Step("instantiate", _not_yet)]
            )
        look = _Look(world, entry, found, _mark(found))
        thing = Thing(look.id)
        if _site(found) != world.site.name:
            mark = _mark_of(entry, world.site.name)
            return Plan(thing, [Step("adopt", lambda: look.modify({"metadata": {MARK: mark}}))])
        if (running := _open_operation(world, look.id)) is not None:
            return _behind(thing, running)
        if found["instantiationState"] == "NOT_INSTANTIATED":
            return Plan(
                thing,
                [
                    *_modifications(look, vnfd_id),
                    Step(
                        "instantiate",
                        lambda: look.start("instantiate", _instantiation(look)),
                        check=(lambda: _check_instantiation(look)) if found["vnfdId"] == vnfd_id else None,
                        is_last="scale" not in entry.body,
                    ),
                ],
            )
        refusals = list(_refusals(look, vnfd_id))
        steps = [] if refusals else list(_changes(look, vnfd_id))
        return Plan(thing, steps, refusals, note=_drift(found))

    def removal(self, world: World, entry: Entry) -> Plan:
        found = _marked(world, entry)
        if found is None:
            return Plan(Thing())
        look = _Look(world, entry, found, _mark(found))
        thing = Thing(look.id)
        if (running := _open_operation(world, look.id)) is not None:
            return _behind(thing, running)
        path = path_of("vnflcm", "v2", "vnf_instances", look.id)
        delete = Step("delete", lambda: world.write("DELETE", path), is_last=True)
        if found["instantiationState"] == "NOT_INSTANTIATED":
            return Plan(thing, [delete])
        body = {**_TERMINATION, **entry.body.get("termination", {})}
        return Plan(thing, [Step("terminate", lambda: look.start("terminate", body)), delete])


def _not_yet() -> None:
    raise AssertionError("the first step comes first")


def _behind(thing: Thing, running: JsonObject) -> Plan:
    """Return the plan while an operation is open."""
    if running["operationState"] == "FAILED_TEMP":
        operation_id = running["id"]
        way = f"kubevnfm retry, rollback or fail {operation_id}, then go on"
        return Plan(thing, refusals=[f"{failure_text(running)}; {way}"])
    return Plan(thing, running={"id": str(running["id"]), "operation": str(running["operation"])})


# --- what exists ------------------------------------------------------------------------------------------------------


def _marked(world: World, entry: Entry) -> JsonObject | None:
    wanted = f"(eq,metadata/{MARK}/site,{world.site.name});(eq,metadata/{MARK}/name,{entry.name})"
    found = world.read_list(_INSTANCES, {"filter": wanted, "all_fields": ""})
    if len(found) > 1:
        ids = ", ".join(str(each["id"]) for each in found)
        raise Conflicts(f"{entry.key}: several instances have its mark: {ids}; delete all but one")
    return found[0] if found else None


def _found(world: World, entry: Entry) -> tuple[JsonObject | None, str | None]:
    """Return the instance of an entry, or why another one of its name cannot be used."""
    found = _marked(world, entry)
    if found is not None:
        return found, None
    named = world.read_list(_INSTANCES, {"filter": f"(eq,vnfInstanceName,{entry.name})", "all_fields": ""})
    if not named:
        return None, None
    free = [each for each in named if not _site(each)]
    chosen = (free or named)[0]
    if len(free) > 1:
        return None, f"{len(free)} instances have this name, and none of them a mark"
    refusal = taken(world, "VNF instance", _site(chosen), str(chosen["id"]))
    return (chosen, None) if refusal is None else (None, refusal)


def _mark(found: JsonObject) -> Mapping[str, Any]:
    mark = part(found, "metadata", MARK)
    return mark if isinstance(mark, dict) else {}


def _site(found: JsonObject) -> str | None:
    return _mark(found).get("site")


def _open_operation(world: World, instance_id: str) -> JsonObject | None:
    wanted = f"(eq,vnfInstanceId,{instance_id});(in,operationState,{','.join(OPEN_STATES)})"
    return next(iter(world.read_list(_OPERATIONS, {"filter": wanted, "fields": "error"})), None)


def _drift(found: JsonObject) -> str:
    return str(part(found, "metadata", "kubevnfm_drift", "reason") or "")


def cluster_of(world: World, name: str) -> Mapping[str, Any] | None:
    """Return id and type of the VIM that an instance of the site has become; None if it is not there, or no cluster."""
    key = Key("instances", name)
    instance_id = world.thing(key).id
    if instance_id is None:
        # In a removal the instance comes after what is on it.
        found = _marked(world, world.site.entries[key])
        instance_id = None if found is None else str(found["id"])
    return None if instance_id is None else vim_of_instance(world, instance_id)


# --- what is wanted ---------------------------------------------------------------------------------------------------


def _mark_of(entry: Entry, site: str) -> dict[str, str]:
    requested = {name: entry.body[name] for name in _REQUESTED if entry.body.get(name) and name not in _INFORMATION}
    links = requested.pop("extVirtualLinks", [])
    requested.pop("flavourId")
    return {"site": site, "name": entry.name, "parameters": digest(requested), "links": digest(links)}


class NotYet(Conflicts):
    """The VIM of an instance is one that the site will make."""


def _vim(world: World, entry: Entry) -> Mapping[str, Any] | None:
    """Return id and type of the VIM that an entry names; None if it names none. Raises Conflicts, NotYet."""
    body = entry.body
    if "vimOf" in body:
        own = cluster_of(world, body["vimOf"])
        if own is None:
            is_made = world.thing(Key("instances", body["vimOf"])).will_change
            raise (NotYet if is_made else Conflicts)(
                f"{entry.place('vimOf')}: {body['vimOf']} has registered no VIM: it is no cluster, or is not instantiated"
            )
        return own
    name = body.get("vim") or body.get("region")
    if name is None:
        return None
    section = "vims" if "vim" in body else "regions"
    thing = world.thing(Key(section, name))
    if thing.id is not None:
        return {"vimId": thing.id, "vimType": thing.facts["vimType"]}
    if Key(section, name) in world.site.entries:
        raise NotYet(f"{entry.place(section.removesuffix('s'))}: {name} is not registered yet")
    outside = vim_of_name(world, name)
    if outside is None:
        near = did_you_mean(name, [key.name for key in world.site.entries if key.section == section])
        raise Conflicts(f"{entry.place('vim')}: no VIM {name} is registered, and the site has none of this name{near}")
    return {"vimId": str(outside["id"]), "vimType": LONG_TYPES[str(outside["type"])]}


def _create(world: World, entry: Entry, vnfd_id: str | None) -> None:
    if vnfd_id is None:
        raise Conflicts(f"{entry.place('package')}: the package is not onboarded")
    metadata = {**entry.body.get("metadata", {}), MARK: _mark_of(entry, world.site.name)}
    body = {"vnfdId": vnfd_id, "vnfInstanceName": entry.name, "metadata": metadata}
    if "vnfInstanceDescription" in entry.body:
        body["vnfInstanceDescription"] = entry.body["vnfInstanceDescription"]
    world.write("POST", _INSTANCES, body)


def _instantiation(look: _Look) -> dict[str, Any]:
    """Return the body of the instantiation. Raises Conflicts if its VIM is not there, NotYet if the site will make it."""
    body = {name: look.body[name] for name in _REQUESTED if name in look.body}
    vim = _vim(look.world, look.entry)
    if vim is not None:
        body["vimConnectionInfo"] = {"site": dict(vim)}
    return body


def _check_instantiation(look: _Look) -> None:
    with contextlib.suppress(NotYet):
        look.check("instantiate", _instantiation(look))


# --- changes ----------------------------------------------------------------------------------------------------------


def _refusals(look: _Look, vnfd_id: str | None) -> Iterator[str]:
    """Yield the wanted changes that no operation of SOL003 makes."""
    wanted, info = _mark_of(look.entry, look.world.site.name), look.found["instantiatedVnfInfo"]
    is_other_package = look.found["vnfdId"] != vnfd_id
    if look.mark.get("parameters") != wanted["parameters"] and not is_other_package:
        yield (
            "additionalParams, instantiationLevelId or extManagedVirtualLinks: another value than at the instantiation; they"
            " change with the package only: delete the VNF and apply again, or put the former values back (levels: scale)"
        )
    if is_other_package and not look.can("changeCurrentVnfPkg"):
        yield "package: this VNF cannot be changed to another package: delete it, and apply again"
    if info["flavourId"] != look.body["flavourId"] and not look.can("changeFlavour"):
        yield f"flavourId: {info['flavourId']} -> {look.body['flavourId']}: its flavour cannot be changed: delete the VNF, and apply again"
    if look.mark.get("links") != wanted["links"] and not (
        look.can("changeExtConn") and look.body.get("extVirtualLinks")
    ):
        yield "extVirtualLinks: this change of external links is no operation: delete the VNF, and apply again"
    yield from _vim_refusal(look)
    levels = _levels(look.found)
    for aspect in look.body.get("scale", {}):
        if aspect not in levels:
            known = ", ".join(levels) or "none"
            yield f"{look.entry.place('scale', aspect)}: no aspect {aspect}; this VNF has {known}"
        elif levels[aspect] != look.body["scale"][aspect] and not look.can("scale"):
            yield f"scale/{aspect}: this VNF cannot be scaled"


def _vim_refusal(look: _Look) -> Iterator[str]:
    if not {"vim", "region", "vimOf"} & set(look.body):
        return
    stays = "vim: the VNF is on another VIM, where it stays: delete it, and apply again"
    try:
        wanted = _vim(look.world, look.entry)
    except NotYet:
        yield stays
        return
    except Fault as fault:
        yield str(fault)
        return
    used = [each.get("vimId") for each in look.found.get("vimConnectionInfo", {}).values()]
    if wanted is not None and wanted["vimId"] not in used:
        yield stays


def _changes(look: _Look, vnfd_id: str | None) -> Iterator[Step]:
    yield from _modifications(look, look.found["vnfdId"])
    wanted, info = _mark_of(look.entry, look.world.site.name), look.found["instantiatedVnfInfo"]
    is_waiting_for_scale = "scale" in look.body
    if look.found["vnfdId"] != vnfd_id:
        text = [_other_package(look, vnfd_id)]
        change = {"vnfdId": vnfd_id, "additionalParams": look.body.get("changeParams", {})}
        yield look.operation("change the package of", "change_vnfpkg", change, text, is_last=not is_waiting_for_scale)
    elif info["flavourId"] != look.body["flavourId"]:
        text = [f"flavourId: {info['flavourId']} -> {look.body['flavourId']}"]
        flavour = {"newFlavourId": look.body["flavourId"]}
        yield look.operation("change the flavour of", "change_flavour", flavour, text, is_last=not is_waiting_for_scale)
    if look.mark.get("links") != wanted["links"]:
        links = {"extVirtualLinks": look.body.get("extVirtualLinks", [])}
        yield Step(
            "change the links of",
            lambda: _change_links(look, links, wanted["links"]),
            ["extVirtualLinks: another value"],
            check=lambda: look.check("change_ext_conn", links),
        )
    levels = _levels(look.found)
    for aspect, level in look.body.get("scale", {}).items():
        steps = level - levels.get(aspect, level)
        if steps:
            kind = "SCALE_OUT" if steps > 0 else "SCALE_IN"
            body = {"type": kind, "aspectId": aspect, "numberOfSteps": min(abs(steps), _MOST_STEPS)}
            text = [f"scale/{aspect}: {levels[aspect]} -> {level}"]
            yield look.operation("scale", "scale", body, text)


def _change_links(look: _Look, body: Mapping[str, Any], links: str) -> None:
    look.start("change_ext_conn", body)
    look.modify({"metadata": {MARK: {**look.mark, "links": links}}})


def _modifications(look: _Look, vnfd_id: str | None) -> Iterator[Step]:
    """Yield the modification of the information that differs, one for all."""
    wanted = _mark_of(look.entry, look.world.site.name)
    is_new = look.found["instantiationState"] == "NOT_INSTANTIATED"
    information = _INFORMATION[:2] if is_new else _INFORMATION
    changed = [
        each
        for name in information
        if name in look.body
        for each in differences(
            look.body[name], look.found.get(name, {} if name != "vnfInstanceDescription" else ""), (name,)
        )
    ]
    body: dict[str, Any] = {str(each.path[0]): look.body[str(each.path[0])] for each in changed}
    text = [str(each) for each in changed]
    mark = {**look.mark, "parameters": wanted["parameters"], **({"links": wanted["links"]} if is_new else {})}
    if mark != look.mark:
        body["metadata"] = {**body.get("metadata", {}), MARK: mark}
        text.append("what was requested: another value")
    if is_new and look.found["vnfdId"] != vnfd_id:
        body["vnfdId"] = vnfd_id
        text.append(_other_package(look, vnfd_id))
    if body:
        check = None if body.get("vnfdId", "") is None else lambda: look.check_modification(body)
        yield Step("modify", lambda: look.modify(body), text, check)


def _other_package(look: _Look, vnfd_id: str | None) -> str:
    return f"vnfdId: {look.found['vnfdId']} -> {vnfd_id or 'that of the new package'}"


def _levels(found: JsonObject) -> dict[str, int]:
    status: Sequence[Mapping[str, Any]] = found["instantiatedVnfInfo"].get("scaleStatus", ())
    return {str(each["aspectId"]): int(each["scaleLevel"]) for each in status}
