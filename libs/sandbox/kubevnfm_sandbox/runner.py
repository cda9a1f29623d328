"""The program that executes foreign code, inside the confinement that ``launcher`` has made.

Started as ``python -I -S -B runner.py <JSON>``. It uses only the standard library, and no ctypes.

Protocol: stdin carries the length of the input in bytes, a newline, and the input (JSON). It stays open as long as the
service lives. The answer (JSON) goes to the descriptor that the launcher names; the output of the code goes to stderr.

The kernel confines the code. The audit hook (PEP 578) adds error texts that name the refused action. If the operator
trusts the code and the kernel has neither namespaces nor Landlock, only the hook and the limits confine it.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 2 ms, and the whole start 30 ms
    from collections.abc import Callable
    from typing import Any, NoReturn

NO_INPUT = 3
LONGEST_ERROR = 64 * 1024
"""Characters of an exception's text that are answered."""
_end = os._exit
"""The entry module may put another function in its place, for the code that it calls."""

_REFUSED = {
    "subprocess.": "start a process",
    "os.system": "start a process",
    "os.exec": "start a process",
    "os.fork": "start a process",
    "os.posix_spawn": "start a process",
    "os.spawn": "start a process",
    "pty.": "start a process",
    "socket.": "use the network",
    "ctypes.": "call native code",
    "os.kill": "send a signal",
    "os.killpg": "send a signal",
    "signal.pthread_kill": "send a signal",
    "sys.setprofile": "trace",
    "sys.settrace": "trace",
    "sys._current_frames": "trace",
    "gc.get_": "trace",
    "code.__new__": "make code by hand",
}


def watch_over(
    readable: tuple[str, ...] | None,
    writable: str,
    may_load: Callable[[str], bool],
    listed: tuple[str, ...],
) -> None:
    """Refuse every action that user data do not need, with a text that names the action.

    An audit hook cannot be removed. ``readable``: the only folders that may be read; None if the process has a root of
    its own. ``may_load``: whether the extension module of that file may be loaded. ``listed``: folders whose names may be
    listed, because the importer does so.
    """
    # Names of its own: foreign code can replace what a module contains.
    refused, realpath, fsdecode = tuple(_REFUSED.items()), os.path.realpath, os.fsdecode

    def allowed(path: Any, folders: tuple[str, ...]) -> bool:
        if isinstance(path, int) or path is None:
            return True
        full = realpath(fsdecode(path))
        return any(full == folder or full.startswith(folder + "/") for folder in folders)

    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    touching = ("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink")
    looking = ("os.listdir", "os.scandir", "os.chdir", "glob.glob")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        for prefix, deed in refused:
            if event.startswith(prefix):
                raise PermissionError(f"code of a package must not {deed} ({event})")
        if event == "import" and args[1] is not None and not may_load(fsdecode(args[1])):
            raise PermissionError(f"code of a package must not load native code ({args[1]!r})")
        if readable is None:
            return
        if event == "open" and not allowed(args[0], (writable,) if (args[2] or 0) & writes else (*readable, writable)):
            raise PermissionError(f"code of a package must not open {args[0]!r}")
        if event in touching and not allowed(args[0], (writable,)):
            raise PermissionError(f"code of a package must not change {args[0]!r}")
        if event in looking and args[0] not in listed and not allowed(args[0], (*readable, writable)):
            raise PermissionError(f"code of a package must not read {args[0]!r}")

    sys.addaudithook(hook)


_COMMON = [
    "abc",
    "base64",
    "collections",
    "copy",
    "datetime",
    "encodings.idna",
    "enum",
    "functools",
    "hashlib",
    "ipaddress",
    "itertools",
    "logging",
    "math",
    "operator",
    "random",
    "re",
    "signal",
    "socket",
    "string",
    "textwrap",
    "traceback",
    "typing",
    "uuid",
]


class _NoNativeCode:
    """Refuses the modules in native code that could do more than compute, before any finder looks for them.

    Their functions raise no audit events: ``_sqlite3``, ``readline``, ``_dbm`` and ``_ssl`` open files, ``_ctypes`` and
    ``mmap`` reach memory, ``_posixsubprocess`` starts processes.
    """

    def __init__(self, native: frozenset[str], library: str) -> None:
        self._native, self._library = native, library

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for a module of native code that is not on the list; find nothing."""
        if name in self._native or path is not None:
            return
        finder = importlib.machinery.PathFinder
        if name not in sys.builtin_module_names:
            spec = finder.find_spec(name, [self._library])
            if spec is None or not isinstance(spec.loader, importlib.machinery.ExtensionFileLoader):
                return
        raise ImportError(f"code of a package must not import {name}: its native code is not confined", name=name)


class _OnlyThese:
    """Finds the few third-party modules that foreign code may import; the others in their folder are not found."""

    def __init__(self, names: tuple[str, ...], folder: str) -> None:
        self._names, self._folder = names, folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the module's spec, or None."""
        if name.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.PathFinder.find_spec(name, path or [self._folder], target)

    def find_distributions(self, context: Any) -> Any:
        """Return the metadata of a module, which some ask for their own version."""
        import importlib.metadata  # it takes 20 ms, and few runs need it

        if context.name not in self._names:
            return ()
        wanted = importlib.metadata.DistributionFinder.Context(name=context.name, path=[self._folder])
        return importlib.metadata.MetadataPathFinder.find_distributions(wanted)


def read_input() -> dict[str, Any]:
    """Read the length line and the input from stdin."""
    head = b""
    while not head.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            sys.exit(NO_INPUT)
        head += byte
    left, parts = int(head), []
    while left:
        part = os.read(0, min(left, 1 << 20))
        if not part:
            sys.exit(NO_INPUT)
        parts.append(part)
        left -= len(part)
    given: dict[str, Any] = json.loads(b"".join(parts))
    return given


def _as_text(value: object) -> str:
    """Return YAML's dates (``heat_template_version: 2013-05-23``) as texts, because JSON has no dates."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"a value of type {type(value).__name__}")


def answer(fd: int, document: dict[str, Any]) -> NoReturn:
    """Write the answer and exit without clean-up, so that no code of the package runs afterwards."""
    try:
        raw = json.dumps(document, default=_as_text).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raw = json.dumps({"error": f"the result is not JSON: {error}"}).encode()
    view = memoryview(raw)
    while view:
        view = view[os.write(fd, view) :]
    sys.stdout.flush()
    sys.stderr.flush()
    _end(0)


def _loadable(native: frozenset[str], library: str, places: dict[str, str], modules: tuple[str, ...]) -> Any:
    """Return the rule by which extension modules are loaded: those listed of Python's own, and all of ``modules``."""
    folders = tuple(f"{os.path.realpath(places['modules'])}/{name}/" for name in modules)
    realpath = os.path.realpath

    def may_load(path: str) -> bool:
        full = realpath(path)
        if full.startswith(folders):
            return True
        name = full.rpartition("/")[2].partition(".")[0]
        return full.startswith(library + "/") and name in native

    return may_load


def main() -> None:
    """Finish the confinement, call ``run(given, package)`` of the entry module, and write the answer."""
    handed = json.loads(sys.argv[1])
    places, modules = handed["places"], tuple(handed["modules"])
    native, library = frozenset(handed["native"]), os.path.realpath(handed["library"])
    del sys.argv[1:], sys.path[0:1]  # the folder of this file
    os.set_inheritable(handed["answers"], False)
    given = read_input()
    sys.path.insert(0, places["shim"])
    if "imports" in places:
        sys.path.append(places["imports"])
    sys.meta_path.insert(0, _NoNativeCode(native, handed["native_folder"]))
    sys.meta_path.append(_OnlyThese(modules, places["modules"]))
    # The output of a program that is killed is wanted too, and a buffer would be lost.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    entry = importlib.import_module(handed["entry"])
    if hasattr(entry, "answer"):
        vars(entry)["answer"] = functools.partial(answer, handed["answers"])
    if handed["drop_to"] is not None:
        # The last moment at which Python's folder is certainly readable.
        for name in (*_COMMON, *getattr(entry, "PRELOADED", ())):
            importlib.import_module(name)
        os.setgroups([])
        os.setresgid(*[handed["drop_to"]] * 3)
        os.setresuid(*[handed["drop_to"]] * 3)
    if handed["watched"]:
        readable = None
        if handed["readable"] is not None:
            readable = tuple(os.path.realpath(path) for path in handed["readable"])
        may_load = _loadable(native, library, places, modules)
        watch_over(readable, os.path.realpath(handed["room"]), may_load, listed=(places["modules"],))
    # Foreign code finds nothing of this program under the name by which it would look for it.
    sys.modules["__main__"] = type(sys)("__main__")
    folders = {name.partition(":")[2]: place for name, place in places.items() if name.startswith("folder:")}
    if folders:
        given["folders"] = folders
    try:
        result = entry.run(given, places["package"])
    except entry.Refused as error:
        answer(handed["answers"], {"error": str(error)[:LONGEST_ERROR]})
    # Not Exception alone: a class of the script's own may derive from BaseException, and this process runs nothing else that a
    # KeyboardInterrupt or GeneratorExit could be meant for.
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything; its author gets the text
        import traceback

        traceback.print_exc()
        answer(handed["answers"], {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]})
    answer(handed["answers"], result)


if __name__ == "__main__":
    main()
