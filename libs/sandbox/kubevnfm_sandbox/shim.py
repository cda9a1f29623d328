"""The modules that code written for OpenStack Tacker can import in the sandbox: our own, and a few libraries."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

TACKER_SHIM: Final = Path(__file__).parent / "tacker_shim"
"""The modules of Tacker's and OpenStack's names, for ``Program.imports`` and ``Script.shim``."""
SCRIPT_MODULES: Final = ("yaml", "_yaml", "paramiko", "bcrypt", "nacl", "cryptography", "_cffi_backend")
"""The libraries that scripts for Tacker import: YAML, and SSH with what it needs."""
USER_DATA_MODULES: Final = ("yaml", "_yaml")
"""The libraries that LCM operation user data import: they have no network."""
ANSIBLE_RUNNER: Final = "kubevnfm_ansible"
"""The module of the shim that runs Ansible playbooks, for ``Script.via``."""
ANSIBLE_MODULES: Final = ("ansible", "jinja2", "markupsafe", "packaging")
"""The libraries of ansible-core, an optional dependency, beside those of scripts."""
ANSIBLE_NATIVE: Final = frozenset({"_ctypes", "_multiprocessing"})
"""Modules of Python in native code that ansible-core imports. The kernel confines them."""
DRIVER_RUNNER: Final = "kubevnfm_v1_driver"
"""The module of the shim that runs a driver class of Tacker's v1, for ``Script.via``."""


def missing_imports(
    tree: ast.Module, beside: Collection[str], libraries: Collection[str] = SCRIPT_MODULES
) -> Iterator[str]:
    """Yield what a module imports when it is loaded and will not find: ``tacker.common.rpc``.

    ``beside``: names of the modules in its own folder. Imports in a function or a ``try`` may be meant to fail.
    """
    known = {*sys.stdlib_module_names, *beside, *libraries}
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if not _is_module(one.name, known))
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module is not None:
            if not _is_module(node.module, known):
                yield node.module
                continue
            for one in node.names:
                name = f"{node.module}.{one.name}"
                if _file_of(node.module) and not _is_module(name, known) and one.name not in _names_in(node.module):
                    yield name


def _is_module(name: str, known: Collection[str]) -> bool:
    return name.partition(".")[0] in known or _file_of(name) is not None


def _file_of(name: str) -> Path | None:
    # A name is an identifier or several with dots: no path can leave the folder.
    place = TACKER_SHIM.joinpath(*name.split("."))
    return next((one for one in (place / "__init__.py", place.with_suffix(".py")) if one.is_file()), None)


def _names_in(module: str) -> frozenset[str]:
    """Return what a module of ours defines or imports at its top."""
    file = _file_of(module)
    assert file is not None
    found: set[str] = {"*"}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Assign():
                found.update(one.id for one in node.targets if isinstance(one, ast.Name))
            case ast.Import() | ast.ImportFrom():
                found.update((one.asname or one.name).partition(".")[0] for one in node.names)
    return frozenset(found)
