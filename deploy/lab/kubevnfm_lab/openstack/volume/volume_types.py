"""Cinder's volume types: what kind of storage a volume asks for, and which projects may use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_lab.openstack.errors import bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_uuid

DEFAULT_TYPE: Final = "__DEFAULT__"
"""The type that Cinder creates on its first start and gives to every volume that names none."""
_TRUE_SPEC: Final = "<is> True"


@dataclass(eq=False, kw_only=True, slots=True)
class VolumeType:
    """A kind of storage, with the extra specs that a back end matches."""

    type_id: str = field(default_factory=new_uuid)
    name: str
    description: str | None = None
    is_public: bool = True
    extra_specs: dict[str, str] = field(default_factory=dict)
    project_ids: list[str] = field(default_factory=list)
    """The projects that may use a type that is not public."""

    @property
    def multiattach(self) -> bool:
        """Whether a volume of the type can be in several servers at once."""
        return self.extra_specs.get("multiattach") == _TRUE_SPEC

    def view(self) -> dict[str, object]:
        """Return it as the API shows it to an administrator."""
        return {
            "id": self.type_id,
            "name": self.name,
            "is_public": self.is_public,
            "description": self.description,
            "extra_specs": self.extra_specs,
            "os-volume-type-access:is_public": self.is_public,
        }


class VolumeTypes:
    """All volume types of the cloud.

    Every caller is treated as an administrator: OS::Cinder::VolumeType needs one in a real cloud, and the lab has only
    ordinary users. Access of projects is recorded and shown, but not enforced.
    """

    def __init__(self, in_use: Callable[[VolumeType], bool]) -> None:
        """``in_use``: whether any volume has the type."""
        self._in_use = in_use
        self.default = VolumeType(name=DEFAULT_TYPE, description="Default Volume Type")
        self.by_id: dict[str, VolumeType] = {self.default.type_id: self.default}

    def get(self, type_id: str) -> VolumeType:
        """Return a type by its id; raise Cinder's 404."""
        found = self.by_id.get(type_id)
        if found is None:
            raise not_found("cinder", "VolumeTypeNotFound", f"Volume type {type_id} could not be found.")
        return found

    def find(self, name_or_id: str) -> VolumeType | None:
        """Return a type by its id or name, None if there is none."""
        by_name = (one for one in self.by_id.values() if one.name == name_or_id)
        return self.by_id.get(name_or_id) or next(by_name, None)

    def for_volume(self, name_or_id: object) -> VolumeType:
        """Return the type that a new volume asks for, the default if it names none; raise Cinder's 404."""
        if not name_or_id:
            return self.default
        found = self.find(str(name_or_id))
        if found is None:
            message = f"Volume type with name {name_or_id} could not be found."
            raise not_found("cinder", "VolumeTypeNotFoundByName", message)
        return found

    def create(
        self, *, name: str, description: str | None, is_public: bool, extra_specs: Mapping[str, object]
    ) -> VolumeType:
        """Create a type; raise Cinder's 400 for a bad name or spec, its 409 if the name is taken."""
        self._check_name(name)
        made = VolumeType(name=name, description=description, is_public=is_public, extra_specs=_checked(extra_specs))
        self.by_id[made.type_id] = made
        return made

    def update(self, changed: VolumeType, *, name: str | None, description: str | None, is_public: bool | None) -> None:
        """Change what is not None; raise Cinder's 400 if all is None, its 409 if the name is taken."""
        if name is None and description is None and is_public is None:
            raise bad_request("cinder", "Specify volume type name, description, is_public or a combination thereof.")
        # A type may keep its name in an update.
        if name is not None and name != changed.name:
            self._check_name(name)
            changed.name = name
        if description is not None:
            changed.description = description
        if is_public is not None:
            changed.is_public = is_public

    def delete(self, unwanted: VolumeType) -> None:
        """Delete a type; raise Cinder's 400 for the default type and for one that volumes have."""
        # Volumes without a type always need it.
        if unwanted is self.default:
            message = f"The volume type {unwanted.type_id} is a default volume type and cannot be deleted."
            raise bad_request("cinder", message)
        if self._in_use(unwanted):
            raise bad_request("cinder", "Target volume type is still in use.")
        del self.by_id[unwanted.type_id]

    def set_specs(self, changed: VolumeType, specs: Mapping[str, object]) -> None:
        """Set the named extra specs and keep the others; raise Cinder's 400 while volumes have the type."""
        checked = _checked(specs)
        self._check_unused(changed)
        changed.extra_specs.update(checked)

    def remove_spec(self, changed: VolumeType, key: str) -> None:
        """Remove one extra spec; raise Cinder's 404 if there is none, its 400 while volumes have the type."""
        self._check_unused(changed)
        if key not in changed.extra_specs:
            message = f"Volume Type {changed.type_id} has no extra specs with key {key}."
            raise not_found("cinder", "VolumeTypeExtraSpecsNotFound", message)
        del changed.extra_specs[key]

    def add_project(self, changed: VolumeType, project_id: str) -> None:
        """Give a project access; raise Cinder's 400 for a public type, its 409 for access that exists."""
        self._check_private(changed)
        if project_id in changed.project_ids:
            message = f"Volume type access for {changed.type_id} / {project_id} combination already exists."
            raise conflict("cinder", "VolumeTypeAccessExists", message)
        changed.project_ids.append(project_id)

    def remove_project(self, changed: VolumeType, project_id: str) -> None:
        """Take access from a project; raise Cinder's 400 for a public type, its 404 if there is no access."""
        self._check_private(changed)
        if project_id not in changed.project_ids:
            message = f"Volume type access not found for {changed.type_id} / {project_id} combination."
            raise not_found("cinder", "VolumeTypeAccessNotFound", message)
        changed.project_ids.remove(project_id)

    def _check_name(self, name: str) -> None:
        if not 0 < len(name.strip()) <= 255:
            message = f"Invalid input for field/attribute name. Value: {name}. 1 to 255 characters are expected"
            raise bad_request("cinder", message)
        if any(one.name == name for one in self.by_id.values()):
            raise conflict("cinder", "VolumeTypeExists", f"Volume Type {name} already exists.")

    def _check_unused(self, changed: VolumeType) -> None:
        # A volume's back end was chosen by the specs, so Cinder freezes them as long as there is one.
        if self._in_use(changed):
            raise bad_request("cinder", "Volume Type is currently in use.")

    def _check_private(self, changed: VolumeType) -> None:
        if changed.is_public:
            message = "Invalid volume type: Type access modification is not applicable to public volume type."
            raise bad_request("cinder", message)


def _checked(specs: Mapping[str, object]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for key, value in specs.items():
        if not isinstance(value, str):
            message = f"Invalid input for field/attribute {key}. Value: {value}. {value!r} is not of type 'string'"
            raise bad_request("cinder", message)
        checked[key] = value
    return checked
