"""The argument of the launcher: what a confined process finds, and what it may do."""

from __future__ import annotations

import base64
import importlib.util
import sys
import sysconfig
from pathlib import Path
from typing import Final

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_sandbox.runs import Limits, Program
from kubevnfm_sandbox.seccomp import FilterUnavailable, compiled, number_of

_HERE: Final = Path(__file__).parent
_FILE_MIB: Final = 16
THREADS: Final = 256
"""Limit of RLIMIT_NPROC for code that may connect. The kernel counts all processes of the user."""
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_DEVICES: Final = ("/dev/null", "/dev/urandom")
_NATIVE: Final = frozenset(
    """
    _abc _ast _bisect _blake2 _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw
    _collections _contextvars _csv _datetime _decimal _elementtree _functools _hashlib _heapq _imp _io _json _locale _lzma
    _md5 _multibytecodec _opcode _operator _pickle _queue _random _sha1 _sha256 _sha3 _sha512 _signal _socket _sre _stat
    _statistics _string _struct _symtable _thread _tokenize _typing _uuid _warnings _weakref _zoneinfo array atexit binascii
    builtins cmath errno gc itertools marshal math posix pwd pyexpat select sys time unicodedata zlib
    """.split()  # noqa: SIM905 - a list of names is read as a text
)
"""Python's own modules in native code that foreign code may import: they compute, or raise audit events for what they do.
Any other one (``_ctypes``, ``_sqlite3``, ``readline``, ``_dbm``, ``mmap``, ``_posixsubprocess``, ``_ssl`` ...) is not there."""


def launcher_config(
    program: Program, limits: Limits, *, room: str, spare: str, limit_s: float, report: int
) -> JsonObject:
    """Return the launcher's argument for a run of the program; ``report``: the descriptor that it reports to."""
    # The base installation's standard library; the virtual environment also contains the service's packages.
    base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    library = sysconfig.get_path("stdlib", vars=base)
    native_folder = Path(str(sysconfig.get_config_var("DESTSHARED") or f"{library}/lib-dynload"))
    python = str(Path(getattr(sys, "_base_executable", sys.executable)).resolve())
    shared = Path(str(sysconfig.get_config_var("LIBDIR")), str(sysconfig.get_config_var("INSTSONAME")))
    native = _NATIVE | program.native
    masked = [path for path in native_folder.glob("*.so") if path.name.partition(".")[0] not in native]
    folders = dict.fromkeys([library, sysconfig.get_path("platstdlib", vars=base), python])
    views = [[path, path] for path in (*_LIBRARIES, *folders, *([str(shared)] if shared.is_file() else []), *_DEVICES)]
    modules = {name: _folder_of(name) for name in program.modules}
    views += [
        [str(folder / part), f"/modules/{part}"] for name, folder in modules.items() for part in _parts_of(name, folder)
    ]
    runner = str(_HERE / "runner.py")
    places = {
        # The process starts in another folder, where relative paths lead elsewhere.
        "package": [str(program.package.absolute()), "/package"],
        "shim": [str(program.shim.absolute()), "/shim"],
        "runner": [runner, "/runner.py"],
    }
    if program.imports is not None:
        places["imports"] = [str(program.imports.absolute()), "/imports"]
    for name, folder in program.folders.items():
        places[f"folder:{name}"] = [str(folder.absolute()), f"/folders/{name}"]
    try:
        filter_ = base64.b64encode(compiled(network=bool(program.reach))).decode()
        number, no_filter = number_of("seccomp"), ""
    except FilterUnavailable as error:
        filter_, number, no_filter = None, -1, str(error)
    return {
        "timeout_s": limit_s,
        "memory_mib": limits.memory_mib,
        "file_mib": _FILE_MIB,
        "trusted": limits.trust_packages,
        "without": sorted(limits.without),
        "filter": filter_,
        "no_filter": no_filter,
        "room": room,
        "spare_room": spare,
        "views": [*views, *places.values()],
        "masked": [str(path) for path in masked],
        "report": report,
        "modules": program.modules,
        "entry": program.entry,
        "watched": program.watched,
        "native": sorted(native),
        "library": library,
        "native_folder": str(native_folder),
        "python": python,
        "python_library": str(shared.parent) if shared.is_file() else "",
        "reach": list(program.reach),
        "threads": THREADS if program.reach else 0,
        "connector": str(_HERE / "connector.py"),
        "seccomp_number": number,
        "places": {**places, "modules": [str(next(iter(modules.values()), _HERE)), "/modules"]},
    }


def _folder_of(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"{module} is a dependency of the package that names it"
    assert spec.origin is not None
    is_package = spec.submodule_search_locations is not None
    return Path(spec.origin).parent.parent if is_package else Path(spec.origin).parent


def _parts_of(module: str, folder: Path) -> list[str]:
    """Return the names in the folder that make up a module: its own folder or its one file, and its metadata."""
    found = [module] if (folder / module).is_dir() else [path.name for path in folder.glob(f"{module}.*.so")]
    return [*found, *(path.name for path in folder.glob(f"{module}-*.dist-info"))]
