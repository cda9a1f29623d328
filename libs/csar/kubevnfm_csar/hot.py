"""Base HOT: the Heat templates of a flavour and the names of their resources.

``BaseHOT/<flavourId>/<one>.yaml`` and ``BaseHOT/<flavourId>/nested/*.yaml`` (sequences.md 6.1, 6.3).
"""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_csar.documents import parse_heat_yaml
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import IMAGES, PackageFiles, locate, read_text
from kubevnfm_csar.vnfd.marks import hidden_parameters

PORT: Final = "OS::Neutron::Port"
FLOATING_IP: Final = "OS::Neutron::FloatingIP"
SERVER: Final = "OS::Nova::Server"
VOLUME: Final = "OS::Cinder::Volume"
NETWORK: Final = "OS::Neutron::Net"
_VERSION: Final = re.compile(r"^[{ ]?[\"']?heat_template_version[\"']?\s*:", re.MULTILINE)
_GROUPS: Final = frozenset({"OS::Heat::AutoScalingGroup", "OS::Heat::ResourceGroup", "OS::Heat::InstanceGroup"})


def parameter_paths(node: object) -> Iterator[Sequence[object]]:
    """Yield the argument of every ``get_param`` below the node that is a list."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            if key == "get_param":
                if isinstance(value, list):
                    yield value
            else:
                yield from parameter_paths(value)
    elif isinstance(node, list):
        for value in node:
            yield from parameter_paths(value)


class Template(BaseModel):
    """One Heat template."""

    model_config = ConfigDict(frozen=True)

    name: str
    """The file's last name, by which ``type:`` of another template refers to it."""
    path: str
    text: str
    body: JsonObject

    @property
    def declared(self) -> JsonObject:
        """Each parameter by name, as the template declares it."""
        found = self.body.get("parameters")
        return found if isinstance(found, dict) else {}

    @property
    def parameters(self) -> frozenset[str]:
        """The declared parameters."""
        return frozenset(self.declared)

    def is_needed_text(self, parameter: str) -> bool:
        """Whether a declared parameter is a text that the stack cannot be created without."""
        about = self.declared.get(parameter)
        return isinstance(about, dict) and about.get("type") == "string" and "default" not in about

    @property
    def needed_parameters(self) -> frozenset[str]:
        """The declared parameters without a default."""
        given = self.declared.items()
        return frozenset(name for name, about in given if not (isinstance(about, dict) and "default" in about))

    @property
    def read_networks(self) -> tuple[str, ...]:
        """The connection points whose network a resource without a condition reads (``get_param: [nfv, CP, VDU1_CP1, network]``)."""
        found: list[str] = []
        resources = self.body.get("resources")
        nodes: list[Any] = [
            one for one in (resources or {}).values() if isinstance(one, dict) and "condition" not in one
        ]
        for node in nodes:
            if isinstance(node, list):
                nodes.extend(node)
            elif isinstance(node, dict):
                match node.get("get_param"):
                    case ["nfv", "CP", str(name), "network"]:
                        found.append(name)
                nodes.extend(value for key, value in node.items() if key not in ("if", "get_param"))
        return tuple(dict.fromkeys(found))

    @property
    def hidden_parameters(self) -> frozenset[str]:
        """The parameters whose values are secret."""
        return hidden_parameters(self.body)

    @cached_property
    def resource_types(self) -> dict[str, str]:
        """Type by resource name."""
        resources: JsonMapping = self.body.get("resources") or {}
        return {name: str(resource.get("type", "")) for name, resource in resources.items()}

    def resource(self, name: str) -> JsonMapping:
        """Return a resource's body; empty when there is none."""
        found = (self.body.get("resources") or {}).get(name)
        return found if isinstance(found, dict) else {}


class BaseHot(BaseModel):
    """The templates of one flavour."""

    model_config = ConfigDict(frozen=True)

    flavour_id: str
    top: Template
    nested: dict[str, Template]
    """By the file's last name."""
    attached: dict[str, str] = Field(default_factory=dict)
    """Content by name, as ``get_file`` of a template has it; base64 for a file that is no UTF-8."""

    @property
    def hidden_parameters(self) -> frozenset[str]:
        """The parameters of all templates whose values are secret."""
        return self.top.hidden_parameters.union(*(template.hidden_parameters for template in self.nested.values()))

    def is_group(self, name: str) -> bool:
        """Whether a resource of the top template is a group of members."""
        return self.top.resource_types.get(name) in _GROUPS

    def member(self, name: str) -> Template | None:
        """Return the template of a group's members, or of a resource whose type is a nested file; None if no such."""
        properties = self.top.resource(name).get("properties")
        inner = properties.get("resource") if isinstance(properties, dict) and self.is_group(name) else None
        kind = inner.get("type") if isinstance(inner, dict) else self.top.resource_types.get(name)
        return self.nested.get(posixpath.basename(str(kind))) if kind else None

    def user_data_form(self) -> JsonObject:
        """Return the ``base_hot_dict`` of Tacker's v1 user data: nested bodies by file name and ``heat_template``."""
        return {**{name: one.body for name, one in self.nested.items()}, "heat_template": self.top.body}

    @property
    def file_texts(self) -> dict[str, str]:
        """All files that go to Heat with the top template, by the names that the templates have for them."""
        named = {
            kind: self.nested[posixpath.basename(kind)].text for one in self.templates for _, kind in _file_types(one)
        }
        return {**{name: one.text for name, one in self.nested.items()}, **named, **self.attached}

    @property
    def templates(self) -> tuple[Template, ...]:
        """The top template and the nested ones."""
        return (self.top, *self.nested.values())


def read_base_hot(files: PackageFiles, flavour_id: str) -> BaseHot | None:
    """Return the flavour's templates; None if the package has none for it (a CNF, or a VNF described by TOSCA only).

    Raises: PackageRefused unless there is exactly one top template, each is a Heat template, and every file that one names
    is there.
    """
    folder = f"BaseHOT/{flavour_id}/"
    here = [name for name in files.below(folder) if name.endswith((".yaml", ".yml"))]
    if not here:
        return None
    # YAML for `get_file` may be beside the templates: it has no version of Heat's.
    others = {path for path in here if not _VERSION.search(read_text(files, path))}
    if others:
        others &= _attached_paths(files, here)
    tops = [name for name in here if "/" not in name.removeprefix(folder) and name not in others]
    if len(tops) != 1:
        raise PackageRefused(f"there must be exactly one template beside nested/, found {len(tops)}", file=folder)
    nested: dict[str, Template] = {}
    for path in here:
        if path.startswith(f"{folder}nested/") and path not in others:
            one = _template(files, path)
            nested[one.name] = one
    hot = BaseHot(flavour_id=flavour_id, top=_template(files, tops[0]), nested=nested)
    for one in hot.templates:
        _check_nested(hot, one)
    return hot.model_copy(update={"attached": _attached(files, hot)})


def nested_templates(files: Mapping[str, str], known: Mapping[str, JsonObject] = {}) -> dict[str, JsonObject]:
    """Return the parsed templates among the files of a stack, by name; ``known``: parsed ones by their text."""
    found = {}
    for name, text in files.items():
        if text in known:
            found[name] = known[text]
        elif name.endswith((".yaml", ".yml")) and _VERSION.search(text):
            found[name] = parse_heat_yaml(text, name=name)
    return found


def _attached_paths(files: PackageFiles, paths: Iterable[str]) -> set[str]:
    """Return the files that ``get_file`` of those of the files names that are templates."""
    found = set[str]()
    for path in paths:
        if _VERSION.search(text := read_text(files, path)):
            body = parse_heat_yaml(text, name=path, is_package=True)
            found |= {place for name in _get_files(body, path) if (place := _place(files, name, path)) is not None}
    return found


def _attached(files: PackageFiles, hot: BaseHot) -> dict[str, str]:
    """Return the content of the files that ``get_file`` names, as the openstack client sends them. Raises PackageRefused."""
    paths: dict[str, str] = {name: one.path for name, one in hot.nested.items()}
    found: dict[str, str] = {}
    left = files.limits.text_bytes
    for template in hot.templates:
        for name in _get_files(template.body, template.path):
            place = _place(files, name, template.path)
            if place is None:
                raise PackageRefused(
                    f"get_file: {name}: the path of a file in the package expected; it has no such file",
                    file=template.path,
                )
            # Services that create stacks get packages without them.
            if place.startswith(IMAGES):
                raise PackageRefused(
                    f"get_file: {name}: a file that is not below {IMAGES} expected", file=template.path
                )
            # Heat has one list of files for all templates of a stack.
            if paths.setdefault(name, place) != place:
                raise PackageRefused(
                    f"get_file: {name} is {place} here and {paths[name]} in another template: different names expected",
                    file=template.path,
                )
            if name in found:
                continue
            left -= files.size(place)
            if left < 0:
                raise PackageRefused(
                    f"get_file: {name}: more than the {files.limits.text_bytes} bytes allowed for all files",
                    file=template.path,
                )
            with files.open(place) as stream:
                found[name] = _sent(stream.read(files.size(place)))
    return found


def _place(files: PackageFiles, name: str, template: str) -> str | None:
    return None if "://" in name else locate(files, name, beside=template)


def _sent(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.encodebytes(raw).decode()


def _get_files(body: object, path: str) -> Iterator[str]:
    """Yield each argument of ``get_file``. Raises PackageRefused for one that is no text, which Heat does not take."""
    nodes = [body]
    for node in nodes:
        if isinstance(node, dict):
            if set(node) == {"get_file"}:
                if not isinstance(node["get_file"], str):
                    raise PackageRefused("get_file: the name of a file expected", file=path)
                yield node["get_file"]
            else:
                nodes.extend(node.values())
        elif isinstance(node, list):
            nodes.extend(node)


def _template(files: PackageFiles, path: str) -> Template:
    text = read_text(files, path)
    body = parse_heat_yaml(text, name=path, is_package=True)
    # Heat refuses such a file only when the stack is created; a package is checked at onboarding.
    if "heat_template_version" not in body:
        raise PackageRefused("heat_template_version is missing: not a Heat template", file=path)
    resources = body.get("resources")
    if resources is not None and (
        not isinstance(resources, dict) or not all(isinstance(resource, dict) for resource in resources.values())
    ):
        raise PackageRefused("resources: must be a mapping of name to resource", file=path)
    return Template(name=posixpath.basename(path), path=path, text=text, body=body)


def _check_nested(hot: BaseHot, template: Template) -> None:
    for name, kind in _file_types(template):
        if posixpath.basename(kind) not in hot.nested:
            raise PackageRefused(
                f"resource {name} is made of {kind}, which BaseHOT/{hot.flavour_id}/nested/ does not hold",
                file=template.path,
            )


def _file_types(template: Template) -> list[tuple[str, str]]:
    """Return (resource, type) wherever a type is a file, of resources and of the members of groups."""
    found: list[tuple[str, str]] = []
    for name, kind in template.resource_types.items():
        properties = template.resource(name).get("properties")
        inner = properties.get("resource") if isinstance(properties, dict) and kind in _GROUPS else None
        kinds = (kind, inner.get("type") if isinstance(inner, dict) else None)
        found += [(name, one) for one in kinds if isinstance(one, str) and one.endswith((".yaml", ".yml"))]
    return found
