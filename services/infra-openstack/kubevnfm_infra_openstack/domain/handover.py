"""Finds the servers that have to leave before a change of their stack: they hold what their replacements need.

Heat makes a new server before it deletes the one in its place. It moves the ports first, but a volume stays in its server
until that is deleted, and Cinder gives a volume to one server only: a server that boots from a volume can never be replaced
in that order. A heal deletes its servers first in any case, which also frees their place in a server group, on a host and in
a full project.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_infra_openstack.domain.hot import (
    AUTO_SCALING_GROUP,
    RESOURCE_GROUP,
    SERVER,
    UNKNOWN,
    VOLUME,
    Parameters,
    Template,
    bound,
    declared,
    properties_of,
    resolve,
    resources_of,
)
from kubevnfm_infra_openstack.domain.resources import nesting
from kubevnfm_infra_openstack.domain.rolling import ReadDefinition
from kubevnfm_infra_openstack.domain.scaling import present_value
from kubevnfm_infra_openstack.domain.stack import HeatResource, Stack, StackContents

_MEMBER: Final = {AUTO_SCALING_GROUP: "resource", RESOURCE_GROUP: "resource_def"}
_DRIVES: Final = ("block_device_mapping_v2", "block_device_mapping")
_FIXED: Final[Mapping[str, Sequence[str]]] = {
    SERVER: (
        *_DRIVES, "admin_user", "availability_zone", "config_drive", "diskConfig", "key_name", "personality",
        "reservation_id", "scheduler_hints", "security_groups", "user_data_format",
    ),
    VOLUME: ("availability_zone", "image", "multiattach", "scheduler_hints", "snapshot_id", "source_volid"),
}  # fmt: skip
"""The properties of which Heat changes none in place."""
_BY_POLICY: Final = (
    ("user_data", "user_data_update_policy", "REPLACE"),
    ("flavor", "flavor_update_policy", "RESIZE"),
    ("image", "image_update_policy", "REBUILD"),
)
"""Properties of a server that Heat changes in place or not, the property that says so, and its default."""

FormOf = Callable[[str], ReadDefinition]
"""Return the definition by which a server was made, by its id."""


@dataclass(frozen=True)
class _Place:
    """The template that holds a server, as a definition has it."""

    files: tuple[str, ...]
    """The nested templates on the way to it."""
    resources: Mapping[str, Template]
    """With the values of the parameters."""


@dataclass(frozen=True)
class _Drive:
    volume: object
    goes_with_server: bool


def leaving_first(stack: Stack, contents: StackContents, was: FormOf, new: ReadDefinition) -> Sequence[HeatResource]:
    """Return the servers that Heat would replace, or remove, while another server needs a volume in them.

    Those that are in ERROR after a change that failed are among them: their replacements need all that they hold.
    """
    tree = nesting(stack, contents.resources)
    volume_ids = {(r.stack_id, r.name): r.physical_id for r in contents.resources if r.type == VOLUME}
    found: list[HeatResource] = []
    for server in contents.resources:
        nova = contents.server_by_id.get(server.physical_id)
        if server.type != SERVER or nova is None:
            continue
        if server.status.endswith("_FAILED") and nova.status == "ERROR":
            found.append(server)
        elif nova.volume_ids:
            above = tree.above(server)[::-1]
            old, then = _place(was(server.physical_id), above), _place(new, above)
            if old is not None and then is not None and old.files == then.files:
                wanted = _wanted(server, old, then, volume_ids)
                found += [server] if wanted.intersection(nova.volume_ids) else []
    return found


def lost_with(stack: Stack, contents: StackContents, was: FormOf, servers: Collection[str]) -> set[str]:
    """Return the ids of the volumes that Nova deletes together with these servers (``delete_on_termination``)."""
    tree = nesting(stack, contents.resources)
    found: set[str] = set()
    for server in contents.resources:
        if server.type != SERVER or server.physical_id not in servers:
            continue
        place = _place(was(server.physical_id), tree.above(server)[::-1])
        drives = _drives(place.resources.get(server.name, {})) if place is not None else ()
        names = {_resource_of(drive.volume) for drive in drives if drive.goes_with_server}
        found |= {
            r.physical_id
            for r in contents.resources
            if r.type == VOLUME and r.stack_id == server.stack_id and r.name in names
        }
    return found - {""}


def _wanted(server: HeatResource, old: _Place, then: _Place, volume_ids: Mapping[tuple[str, str], str]) -> set[str]:
    """Return the ids of the present volumes that servers need which Heat makes in the change."""
    made = [
        name
        for name, one in then.resources.items()
        if one.get("type") == SERVER
        and (name not in old.resources or (name == server.name and _is_replaced(name, old, then)))
    ]
    # A server that stays keeps what it has.
    if server.name in then.resources and server.name not in made:
        return set()
    volumes = [drive.volume for name in made for drive in _drives(then.resources[name])]
    staying = {
        volume_ids[server.stack_id, name]
        for name in map(_resource_of, volumes)
        if name is not None and (server.stack_id, name) in volume_ids and not _is_replaced(name, old, then)
    }
    return staying | {volume for volume in volumes if isinstance(volume, str)}


def _is_replaced(name: str, old: _Place, then: _Place) -> bool:
    before, after = old.resources.get(name), then.resources.get(name)
    if before is None or after is None or before.get("type") != after.get("type"):
        return True
    had, has = properties_of(before), properties_of(after)
    names = [*_FIXED.get(str(after.get("type")), ())]
    if after.get("type") == SERVER:
        names += [one for one, policy, default in _BY_POLICY if has.get(policy, default) == "REPLACE"]
    if any(had.get(one) != has.get(one) for one in names):
        return True
    # A drive that is made again has another id.
    drives = [_resource_of(drive.volume) for drive in _drives(after)] if after.get("type") == SERVER else []
    return any(drive is not None and _is_replaced(drive, old, then) for drive in drives)


def _drives(server: Template) -> Iterator[_Drive]:
    for name in _DRIVES:
        entries = properties_of(server).get(name)
        listed = entries if isinstance(entries, list) else []
        for entry in listed:
            if isinstance(entry, Mapping) and entry.get("volume_id") is not None:
                yield _Drive(entry["volume_id"], str(entry.get("delete_on_termination")).lower() == "true")


def _resource_of(value: object) -> str | None:
    """Return the name of the resource that a value refers to."""
    name = value.get("get_resource") if isinstance(value, Mapping) else None
    return name if isinstance(name, str) else None


def _place(read: ReadDefinition, above: Sequence[HeatResource]) -> _Place | None:
    """Return the template below these resources, outermost first; None if the definition has no such place."""
    template = read.definition.template
    values: Parameters = {name: present_value(read.definition, name) for name in declared(template)}
    files: list[str] = []
    member: object = None
    for holder in above:
        part = member if member is not None else resources_of(template).get(holder.name)
        if not isinstance(part, Mapping):
            return None
        kind = str(part.get("type"))
        if kind in _MEMBER:
            member = properties_of(part).get(_MEMBER[kind])
            continue
        inner = read.nested.get(kind)
        given = _filled(properties_of(part), values, read.definition.files)
        if inner is None or not isinstance(given, Mapping):
            return None
        template, values, member = inner, bound(inner, given), None
        files.append(kind)
    texts = read.definition.files
    resources = {name: _filled(one, values, texts) for name, one in resources_of(template).items()}
    return _Place(tuple(files), {name: one for name, one in resources.items() if isinstance(one, Mapping)})


def _filled(node: object, values: Parameters, files: Mapping[str, str]) -> object:
    """Return a part of a template with its parameters and files; what only Heat knows stays as it is."""
    if isinstance(node, Mapping):
        if set(node) == {"get_param"}:
            value = resolve(node, values)
            return node if value is UNKNOWN else value
        if set(node) == {"get_file"}:
            return files.get(str(node["get_file"]), node)
        return {key: _filled(value, values, files) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, values, files) for value in node]
    return node
