"""Repairs auto-scaling groups: has Heat give their members the group's definition after an update that failed.

Heat gives the members of an OS::Heat::AutoScalingGroup a new definition only if the group's property ``resource`` differs
from what it was after the last update that succeeded. After an update that failed, the members can hold the definition that
failed, so an update back to the earlier values, or with unchanged ones, repeats the failure. A difference in the metadata of
``resource``, which Heat keeps for itself, makes it pass the definition on; it replaces no machine.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from kubevnfm_infra_openstack.domain.hot import Template, Templates, is_function, properties_of, resources_of
from kubevnfm_infra_openstack.domain.stack import StackChange, StackDefinition

_MARK: Final = "kubevnfm_repaired_by"
TOP: Final = ""
"""Stands for the top template where others are known by their file's name."""


def repairing(
    change: StackChange,
    definition: StackDefinition,
    nested: Templates,
    groups: Mapping[str, Collection[str]],
    mark: str,
) -> StackChange:
    """Return the change such that Heat gives the groups' members the definition that their group has after it.

    ``definition`` and ``nested``: what the stack would have after the change. ``groups``: names by the file of their
    template. ``mark``: a text that differs from that of each earlier change.
    """
    top = _marked(definition.template, groups.get(TOP, ()), mark)
    files = {
        # JSON is YAML.
        file: json.dumps(_marked(nested[file], names, mark))
        for file, names in groups.items()
        if file in nested
    }
    return replace(change, template=top, files={**change.files, **files})


def _marked(template: Template, names: Collection[str], mark: str) -> Template:
    resources = {
        name: _with_mark(resource, mark) if name in names else resource
        for name, resource in resources_of(template).items()
    }
    return {**template, "resources": resources}


def _with_mark(group: Template, mark: str) -> Template:
    member = properties_of(group).get("resource")
    metadata = member.get("metadata", {}) if isinstance(member, Mapping) else None
    # A function in place of either leaves no room for a mark.
    if not isinstance(member, Mapping) or not isinstance(metadata, Mapping):
        return group
    if is_function(member) or is_function(metadata):
        return group
    marked = {**member, "metadata": {**metadata, _MARK: mark}}
    return {**group, "properties": {**properties_of(group), "resource": marked}}
