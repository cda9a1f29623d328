"""The drivers of the phases of the life cycle: ``interfaces.Vnflcm`` and the artifacts that it names."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from kubevnfm_events.mgmt import ANSIBLE
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_kit.printable import printable
from kubevnfm_kit.python_source import syntax_tree
from kubevnfm_sandbox.shim import USER_DATA_MODULES

from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import PackageFiles, locate
from kubevnfm_csar.vnfd import ansible, types
from kubevnfm_csar.vnfd.driver_classes import driver_class, unanswered_import
from kubevnfm_csar.vnfd.model import PhaseDriver
from kubevnfm_csar.vnfd.topology import Node, Topology
from kubevnfm_csar.vnfd.values import mapping, sequence, text

LONGEST_SCRIPT: Final = 1024 * 1024
"""Bytes."""
_KUBESPRAY: Final = "kubespray"
_NO_KUBESPRAY: Final = "clusters are not built by Kubespray, which runs on an Ansible server of the operator; mgmt-drivers-kubernetes builds them"
_NOT_PHASES: Final = frozenset({"type", "inputs", "operations", "notifications", "description"})


def phase_drivers(topology: Topology, vnf: Node | None, vdus: Collection[str]) -> dict[str, PhaseDriver]:
    """Return the driver of each phase that has one; ``vdus``: the names of those of all flavours.

    A file that is missing is a problem of its driver alone: operations that do not need it can be carried out.
    Raises: PackageRefused when an artifact is not a Python script, or longer than a script ever is.
    """
    if vnf is None:
        return {}
    found = {}
    for phase, operation in _operations(vnf):
        # `[]`, `{}`, null and an empty implementation all mean that the phase has no implementation
        implementation = operation.get("implementation") if isinstance(operation, dict) else operation
        primary, dependencies = _parts(implementation)
        if primary:
            found[phase] = _driver(topology, vnf, vdus, phase=phase, primary=primary, dependencies=dependencies)
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


def _driver(
    topology: Topology, vnf: Node, vdus: Collection[str], *, phase: str, primary: str, dependencies: list[Any]
) -> PhaseDriver:
    artifacts = mapping(vnf.body.get("artifacts"))
    named, file = _artifact(topology, artifacts, primary)
    artifact = artifacts.get(primary)
    kind = artifact.get("type") if isinstance(artifact, dict) else types.PYTHON
    # A dependency may be of any type: the script reads it.
    if not topology.tree.is_a(kind, types.PYTHON):
        raise topology.refused(f"Vnflcm.{phase}: {primary} is of type {kind}; {types.PYTHON} is supported")
    if file is None and primary in ansible.DRIVERS:
        raw, fault = ansible.ansible_config(topology.files, vdus)
        digest = hashlib.sha256(raw).hexdigest() if raw else ""
        return PhaseDriver(
            phase=phase, name=primary, file=ansible.CONFIG, sha256=digest, driver_class=ANSIBLE, problem=fault
        )
    others = [_artifact(topology, artifacts, text(item)) for item in dependencies]
    missing = next((name for name, place in ((named, file), *others) if place is None), None)
    raw = _content(topology.files, file) if file is not None else b""
    class_name, problem = "", f"the package has no file {missing}"
    if missing is None:
        class_name, problem = _judged(topology.files, raw, file or named, phase=phase)
    if any(_KUBESPRAY in name.lower() for name in (primary, class_name)):
        raise topology.refused(f"Vnflcm.{phase}: {primary}: {_NO_KUBESPRAY}")
    return PhaseDriver(
        phase=phase,
        name=primary,
        file=file or named,
        sha256=hashlib.sha256(raw).hexdigest() if file is not None else "",
        dependencies=tuple(place for _, place in others if place is not None),
        driver_class=class_name,
        problem=problem,
    )


def _artifact(topology: Topology, artifacts: JsonMapping, name: str) -> tuple[str, str | None]:
    """Return the file that an artifact names, and its path in the package, None if the package does not have it.

    A name that is not an artifact may be the file itself (TOSCA, operation definition).
    """
    artifact = artifacts.get(name)
    if artifact is None:
        return name, locate(topology.files, name, beside=topology.file)
    # TOSCA's short notation of an artifact is its file alone, without a type.
    reference = text(artifact if isinstance(artifact, str) else mapping(artifact).get("file"))
    return reference, locate(topology.files, reference, beside=topology.file)


def script_problem(raw: bytes, file: str, names: Iterable[str]) -> str:
    """Return why a script of the package, which is no driver of a phase, cannot be run; empty if nothing is known.

    ``names``: the files of the package.
    """
    tree = _parsed(raw, file)
    return tree if isinstance(tree, str) else unanswered_import(tree, _beside(file, names))


def user_data_problem(raw: bytes, file: str, names: Iterable[str]) -> str:
    """Return why LCM operation user data cannot be loaded; empty if nothing is known. ``names``: as `script_problem`."""
    tree, names = _parsed(raw, file), tuple(names)
    if isinstance(tree, str):
        return tree
    beside = _beside(file, names) | _beside("", names)
    return unanswered_import(tree, beside, libraries=USER_DATA_MODULES, kind="user data")


def _judged(files: PackageFiles, raw: bytes, file: str, *, phase: str) -> tuple[str, str]:
    """Return the driver class of Tacker's v1 that the file defines, if any, and why the file cannot be run."""
    tree = _parsed(raw, file)
    if isinstance(tree, str):
        return "", tree
    folder = file.rpartition("/")[0]
    return driver_class(tree, phase, _beside(file, files.below(f"{folder}/") if folder else files.names()))


def _parsed(raw: bytes, file: str) -> ast.Module | str:
    """Return the module, or why Python cannot read it."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = syntax_tree(raw)
            compile(tree, file, "exec", dont_inherit=True)  # finds what the grammar allows, such as `return` at the top
    except SyntaxError as error:
        # The kind too: of `print "text"` the message alone is a question.
        place = f"{file}, line {error.lineno}" if error.lineno else file
        return f"{place}: {type(error).__name__}: {printable(error.msg)}; a script for Python 3 expected"
    except ValueError as error:  # null bytes, which are a SyntaxError since Python 3.11.4
        return f"{file}: {SyntaxError.__name__}: {printable(str(error))}; a script for Python 3 expected"
    except (RecursionError, MemoryError):
        return ast.Module([], [])  # Python reports it, when the script is run
    return tree


def _beside(file: str, names: Iterable[str]) -> frozenset[str]:
    """Return the modules in the folder of a file."""
    folder = file.rpartition("/")[0]
    near = (name[len(folder) :].lstrip("/") for name in names if not folder or name.startswith(f"{folder}/"))
    return frozenset(name.partition("/")[0].partition(".")[0] for name in near)


def _content(files: PackageFiles, name: str) -> bytes:
    with files.open(name) as stream:
        raw = stream.read(LONGEST_SCRIPT + 1)
    if len(raw) > LONGEST_SCRIPT:
        raise PackageRefused(f"a script of more than {LONGEST_SCRIPT} bytes", file=name)
    return raw
