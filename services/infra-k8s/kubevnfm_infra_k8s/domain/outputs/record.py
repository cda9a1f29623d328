"""The stored outputs of an instance: which values of which objects, and whether they have changed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubevnfm_events.outputs import WantedOutput
from kubevnfm_kit.errors import Unprocessable
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from kubevnfm_infra_k8s.domain.objects import ObjectKey, Wanted

_PLACE = "additionalParams/outputs"


@dataclass(frozen=True)
class Output:
    """A named value of an object."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    name: str
    key: ObjectKey
    jsonpath: str


@dataclass(frozen=True)
class InstanceOutputs:
    """The outputs of one VNF instance."""

    __pydantic_config__ = ConfigDict(alias_generator=to_camel)

    vnf_instance_id: str
    vim_id: str
    """"" if the region is not registered: then no watch sees its objects."""
    outputs: tuple[Output, ...]
    digest: str = ""
    """That of the values that were read last; "" if none were. The values themselves are not stored here."""
    number: int = 0
    """That of the reading that had them first."""
    revision: int = 0
    """0: not stored yet."""


def outputs_of(wanted: Sequence[WantedOutput], objects: Sequence[Wanted], *, namespace: str) -> tuple[Output, ...]:
    """Return outputs with the objects of a set that they name; ``namespace``: that of the instance.

    Raises Unprocessable for an object that the set does not have, or has in several versions.
    """
    if not wanted:
        return ()
    by_name: dict[tuple[str, str], list[ObjectKey]] = {}
    for each in objects:
        for name in {each.key.name, each.manifest_name or each.key.name}:
            by_name.setdefault((each.key.kind, name), []).append(each.key)
    found: list[Output] = []
    for one in wanted:
        places = {one.namespace} if one.namespace is not None else {namespace, ""}
        keys = [
            key
            for key in by_name.get((one.kind, one.object_name), ())
            if key.namespace in places and one.api_version in (None, key.api_version)
        ]
        if len(keys) != 1:
            reason = f"one {one.kind} {one.object_name} among the objects expected, they have {len(keys)}"
            raise Unprocessable(f"{_PLACE}/{one.name}", reason)
        found.append(Output(one.name, keys[0], one.jsonpath))
    return tuple(found)
