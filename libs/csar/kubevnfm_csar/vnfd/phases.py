"""The drivers of the phases of the life cycle: ``interfaces.Vnflcm`` and the artifacts that it names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, locate
from kubevnfm_csar.vnfd import types
from kubevnfm_csar.vnfd.model import PhaseDriver
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.types import mapping, sequence
from kubevnfm_csar.vnfd.values import text

_NOT_PHASES: Final = frozenset({"type", "inputs", "operations", "notifications", "description"})


def phase_drivers(topology: Topology, vnf: Node | None) -> dict[str, PhaseDriver]:
    """Return the driver of each phase that has one.

    Raises: PackageRefused when an implementation names no artifact, its file is missing, or it is not a Python script.
    """
    if vnf is None:
        return {}
    found = {}
    for phase, operation in _operations(vnf):
        # `[]`, `{}`, null and an empty implementation all mean that the phase has no implementation
        implementation = operation.get("implementation") if isinstance(operation, dict) else operation
        primary, dependencies = _parts(implementation)
        if primary:
            found[phase] = _driver(topology, vnf, phase=phase, primary=primary, dependencies=dependencies)
    return found


def _operations(vnf: Node) -> Iterator[tuple[str, Any]]:
    interface = mapping(mapping(vnf.body.get("interfaces")).get("Vnflcm"))
    for name, operation in {**interface, **mapping(interface.get("operations"))}.items():
        if name not in _NOT_PHASES:
            yield name, operation


def _parts(implementation: Any) -> tuple[str, list[Any]]:
    if isinstance(implementation, dict):
        primary = implementation.get("primary")
        name = mapping(primary).get("file") if isinstance(primary, dict) else primary
        return text(name), sequence(implementation.get("dependencies"))
    return text(implementation), []


def _driver(topology: Topology, vnf: Node, *, phase: str, primary: str, dependencies: list[Any]) -> PhaseDriver:
    artifacts = mapping(vnf.body.get("artifacts"))
    file = _artifact(topology, artifacts, primary, phase=phase)
    return PhaseDriver(
        phase=phase,
        name=primary,
        file=file,
        sha256=_sha256(topology.files, file),
        dependencies=tuple(_artifact(topology, artifacts, text(item), phase=phase) for item in dependencies),
    )


def _artifact(topology: Topology, artifacts: JsonMapping, name: str, *, phase: str) -> str:
    """Return the file of an artifact; a name that is not an artifact may be the file itself (TOSCA, operation definition)."""
    where = f"Vnflcm.{phase}: {name}"
    artifact = artifacts.get(name)
    if artifact is None:
        place = locate(topology.files, name, beside=topology.file)
        if place is None:
            raise PackageRefused(f"{where} is neither an artifact of the VNF node nor a file", file=topology.file)
        return place
    reference = text(artifact if isinstance(artifact, str) else mapping(artifact).get("file"))
    # TOSCA's short notation of an artifact is its file alone, without a type.
    kind = types.PYTHON if isinstance(artifact, str) else mapping(artifact).get("type")
    if not topology.tree.is_a(kind, types.PYTHON):
        raise PackageRefused(f"{where} is of type {kind}; {types.PYTHON} is supported", file=topology.file)
    place = locate(topology.files, reference, beside=topology.file)
    if place is None:
        raise PackageRefused(f"{where} is in {reference}, which the package does not contain", file=topology.file)
    return place


def _sha256(files: PackageFiles, name: str) -> str:
    with files.open(name) as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
