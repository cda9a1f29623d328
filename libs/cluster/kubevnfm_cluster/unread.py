"""Finds attributes of the parameters of a cluster, or of a private registry, that nothing reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from kubevnfm_secrets import SECRET_NAMES

from kubevnfm_cluster.forms import Part
from kubevnfm_cluster.parameters import CLUSTER
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF, RegistryInstallation
from kubevnfm_cluster.request import RequestedCluster

Found = tuple[tuple[str | int, ...], tuple[str, ...], Collection[str]]
"""The path of an object, those of its names that are not known, and those that are."""


def unread_parameters(additional_params: Mapping[str, object]) -> Iterator[Found]:
    """Yield each object of a request's cluster that has attributes which nothing reads."""
    yield from _unread(additional_params.get(CLUSTER), RequestedCluster, (CLUSTER,))


def unread_registry(additional_params: Mapping[str, object]) -> Iterator[Found]:
    """Yield each object of a request's private registry that has attributes which nothing reads."""
    yield from _unread(additional_params.get(REGISTRY_VNF), RegistryInstallation, (REGISTRY_VNF,))


def _unread(given: object, model: type[Part], path: tuple[str | int, ...]) -> Iterator[Found]:
    if not isinstance(given, Mapping):
        return
    names = tuple(name for name in given if name not in model.model_fields and name != SECRET_NAMES)
    if names:
        yield path, names, tuple(model.model_fields)
    for name, field in model.model_fields.items():
        inner, value = part_in(field.annotation), given.get(name)
        if inner is None:
            continue
        if isinstance(value, list | tuple):
            for index, one in enumerate(value):
                yield from _unread(one, inner, (*path, name, index))
        else:
            yield from _unread(value, inner, (*path, name))


def part_in(annotation: Any) -> type[Part] | None:
    """Return the type of the objects that an attribute has: alone, or in a list; None if it has none."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    return next((found for one in get_args(annotation) if (found := part_in(one)) is not None), None)
