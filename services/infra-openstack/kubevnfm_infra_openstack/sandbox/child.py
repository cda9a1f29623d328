"""The program of the user data process: confines itself, then calls one class of a VNF package.

Started as ``python -I -S child.py <config JSON>`` with an empty environment and a session of its own. It uses only the
standard library, because it must start within milliseconds and must not see the service's packages.

Protocol: stdin carries the length of the input in bytes, a newline, and the input (JSON). It stays open as long as the
service lives. stdout carries the answer (JSON) at the end; the output of the class goes to stderr.

With namespaces there are two processes. The *guard* watches the deadline and the service's life, and kills the other.
The *inner* process has a root of its own with the package, the standard library and the shim, all read-only; it has no
network device and sees no other process. Without namespaces there is one process, confined by limits and an audit hook.
"""

# ruff: noqa: PTH101, PTH103, PTH106, PTH110, PTH112, PTH116, PTH118, PTH120, PTH123, S103, S108
# os.path, because importing pathlib would add a tenth to the start. Modes and /tmp concern the process's own root.
from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 2 ms, and the whole start 30 ms
    from typing import Any

GUARD_DEADLINE = 124
"""Exit status of the guard after the time limit, the same as that of timeout(1)."""
NO_INPUT = 3
_CLONE = {"NEWNS": 0x00020000, "NEWUTS": 0x04000000, "NEWIPC": 0x08000000, "NEWUSER": 0x10000000}
_CLONE |= {"NEWPID": 0x20000000, "NEWNET": 0x40000000}
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38
_UNPRIVILEGED = 65534
_LOCKED_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""mount(2)'s flag by statvfs(3)'s. A user namespace may not clear these, so a read-only remount must repeat them."""


class Libc:
    """The system calls that Python 3.11 does not offer."""

    def __init__(self) -> None:
        import ctypes

        self._ctypes = ctypes
        self._libc = ctypes.CDLL(None, use_errno=True)

    def call(self, name: str, *args: object) -> None:
        """Call the function; raise OSError if it fails."""
        wanted = [arg.encode() if isinstance(arg, str) else arg for arg in args]
        if getattr(self._libc, name)(*wanted) != 0:
            number = self._ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")

    def prctl(self, option: int, value: int) -> None:
        self.call("prctl", option, *(self._ctypes.c_ulong(n) for n in (value, 0, 0, 0)))

    def drop_capabilities(self) -> None:
        """Drop the capabilities that a new user namespace grants (capset(2), version 3)."""
        header = (self._ctypes.c_uint32 * 2)(0x20080522, 0)
        self.call("capset", header, (self._ctypes.c_uint32 * 6)())


# --- namespaces -------------------------------------------------------------------------------------------------------


def enter_namespaces(libc: Libc) -> bool:
    """Leave the host's mounts, network, processes and IPC; return False if the kernel refuses."""
    uid, gid = os.getuid(), os.getgid()
    apart = _CLONE["NEWNS"] | _CLONE["NEWUTS"] | _CLONE["NEWIPC"] | _CLONE["NEWPID"] | _CLONE["NEWNET"]
    try:
        # Only root may create the other namespaces without a user namespace.
        libc.call("unshare", apart if uid == 0 else apart | _CLONE["NEWUSER"])
        if uid != 0:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
    except OSError:
        return False
    return True


def enter_own_root(libc: Libc, config: dict[str, Any]) -> bool:
    """Make ``config["room"]``, an empty folder, the root; return False if a security module refuses mounts."""
    try:
        _build_root(libc, config["room"], config["views"])
    except PermissionError:
        return False
    return True


def _build_root(libc: Libc, room: str, views: list[list[str]]) -> None:
    """Build a small file system with read-only views of the needed folders."""
    # Private, so that no mount below becomes visible on the host.
    libc.call("mount", "none", "/", None, _MS_REC | _MS_PRIVATE, None)
    libc.call("mount", "tmpfs", room, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,nr_inodes=1024,mode=755")
    for source, target in views:
        if os.path.exists(source):
            _view(libc, source, room + target)
    os.makedirs(room + "/tmp", exist_ok=True)  # it exists if the Python environment is below /tmp
    os.chmod(room + "/tmp", 0o777)
    os.makedirs(room + "/.old")
    os.chdir(room)
    libc.call("pivot_root", ".", ".old")
    os.chdir("/")
    libc.call("umount2", "/.old", _MNT_DETACH)
    os.rmdir("/.old")


def _view(libc: Libc, source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "a"):
            pass
    # A bind mount ignores the read-only flag; it takes a second call to set it.
    libc.call("mount", source, target, None, _MS_BIND | _MS_REC, None)
    present = os.statvfs(target).f_flag
    locked = sum(flag for shown, flag in _LOCKED_FLAGS.items() if present & shown)
    libc.call("mount", None, target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | locked, None)


# --- the guard --------------------------------------------------------------------------------------------------------


def guard(inner: int, deadline: float) -> int:
    """Wait for the inner process; kill it after the deadline or the service's end. Return the exit status."""
    poll = select.poll()
    pidfd = os.pidfd_open(inner)
    poll.register(pidfd, select.POLLIN)
    poll.register(0, 0)  # reports only the hang-up; the data are for the inner process
    # The service reads until all writers have closed, so the guard must not hold these open.
    for fd in (1, 2):
        os.close(fd)
    events = dict(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))
    if pidfd not in events:
        os.kill(inner, signal.SIGKILL)
        os.waitpid(inner, 0)
        return GUARD_DEADLINE if not events else 1
    status = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
    return status if status >= 0 else 128 - status


# --- the inner process ------------------------------------------------------------------------------------------------


def drop_privileges(libc: Libc, own_root: bool) -> None:
    """Give up root, or the capabilities of a user namespace, without a way to regain them."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)
        os.setresuid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)
    elif own_root:
        libc.drop_capabilities()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def limit(config: dict[str, Any]) -> None:
    """Limit memory, processor time, files and processes; the limits cannot be raised again."""
    memory = config["memory_mib"] * 1024 * 1024
    seconds = int(config["timeout_s"]) + 1
    for which, amount in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, config["file_mib"] * 1024 * 1024),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(which, (amount, amount))


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
}


def watch_over(
    readable: tuple[str, ...] | None, writable: str, native: tuple[str, ...], listed: tuple[str, ...] = ()
) -> None:
    """Refuse every action that user data does not need, with a text that names the action.

    An audit hook (PEP 578) cannot be removed. ``readable``: the only folders that may be read; None if the process has
    a root of its own. ``native``: the only folders from which extension modules may be loaded. ``listed``: folders
    whose names may be listed, because the importer does so.
    """

    def allowed(path: Any, folders: tuple[str, ...]) -> bool:
        if isinstance(path, int) or path is None:
            return True
        full = os.path.realpath(os.fsdecode(path))
        return any(full == folder or full.startswith(folder + "/") for folder in folders)

    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    touching = ("os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink")
    looking = ("os.listdir", "os.scandir", "os.chdir", "glob.glob")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        for prefix, deed in _REFUSED.items():
            if event.startswith(prefix):
                raise PermissionError(f"user data must not {deed} ({event})")
        if event == "import" and args[1] is not None and not allowed(args[1], native):
            raise PermissionError(f"user data must not load native code ({args[1]!r})")
        if readable is None:
            return
        if event == "open" and not allowed(args[0], (writable,) if (args[2] or 0) & writes else (*readable, writable)):
            raise PermissionError(f"user data must not open {args[0]!r}")
        if event in touching and not allowed(args[0], (writable,)):
            raise PermissionError(f"user data must not change {args[0]!r}")
        if event in looking and args[0] not in listed and not allowed(args[0], (*readable, writable)):
            raise PermissionError(f"user data must not read {args[0]!r}")

    sys.addaudithook(hook)


_COMMON = [
    "abc",
    "base64",
    "collections",
    "copy",
    "datetime",
    "enum",
    "functools",
    "hashlib",
    "ipaddress",
    "itertools",
    "logging",
    "math",
    "operator",
    "re",
    "string",
    "textwrap",
    "traceback",
    "typing",
    "uuid",
    "yaml",
    "tacker_request",
    "tacker.vnfm.lcm_user_data.utils",
    "tacker.vnfm.lcm_user_data.abstract_user_data",
    "tacker.sol_refactored.infra_drivers.openstack.userdata_standard",
]


class _OnlyThese:
    """Finds the few third-party modules that user data may import; the others in their folder are not found."""

    def __init__(self, names: tuple[str, ...], folder: str) -> None:
        self._names, self._folder = names, folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        from importlib.machinery import PathFinder

        if name.partition(".")[0] not in self._names:
            return None
        return PathFinder.find_spec(name, path or [self._folder], target)


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


def answer(fd: int, document: dict[str, Any]) -> None:
    """Write the answer and exit without clean-up, so that no code of the class runs afterwards."""
    try:
        raw = json.dumps(document, default=_as_text).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raw = json.dumps({"error": f"the result is not JSON: {error}"}).encode()
    view = memoryview(raw)
    while view:
        view = view[os.write(fd, view) :]
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def private_copy(folder: str, room: str) -> str:
    """Copy the package without its folder ``Files`` to a place that all users can read; return the path."""
    import shutil

    copy = os.path.join(room, "package")
    shutil.copytree(folder, copy, ignore=lambda where, names: {"Files"} & set(names) if where == folder else set())
    for where, _, names in os.walk(copy):
        os.chmod(where, 0o755)
        for name in names:
            os.chmod(os.path.join(where, name), 0o644)
    return copy


def open_to_all(folder: str) -> bool:
    """Return whether all users can reach and read the folder."""
    if os.stat(folder).st_mode & 0o005 != 0o005:
        return False
    while folder != "/":
        folder = os.path.dirname(folder)
        if not os.stat(folder).st_mode & 0o001:
            return False
    return True


def preload() -> None:
    """Import common modules while this process is still root; later Python's folder may be unreadable."""
    for name in _COMMON:
        importlib.import_module(name)


def work(config: dict[str, Any], libc: Libc, apart: bool) -> None:
    """Confine this process, call the class, and write the answer."""
    # From here on print() goes to stderr, so that it cannot disturb the answer.
    result_fd = os.dup(1)
    os.dup2(2, 1)
    given = read_input()
    room, package = config["room"], config["places"]["package"][0]
    copied = None
    if os.getuid() == 0 and not open_to_all(package):
        copied = private_copy(package, config["spare_room"])
        config["views"] = [view for view in config["views"] if view[0] != package]
        config["views"].append([copied, config["places"]["package"][1]])
    own_root = apart and enter_own_root(libc, config)
    places = {name: pair[1 if own_root else 0] for name, pair in config["places"].items()}
    if copied and not own_root:
        places["package"] = copied
        os.chmod(config["spare_room"], 0o755)
    sys.path.insert(0, places["shim"])
    sys.meta_path.append(_OnlyThese(tuple(config["modules"]), places["modules"]))
    if not own_root and os.getuid() == 0:
        os.chown(room, _UNPRIVILEGED, _UNPRIVILEGED)
        preload()
    os.chdir("/tmp" if own_root else room)
    import tacker_user_data  # type: ignore[import-not-found]  # only on this process's own path

    drop_privileges(libc, own_root)
    del libc
    limit(config)
    sys.dont_write_bytecode = True
    readable = None
    if not own_root:
        readable = tuple(os.path.realpath(path) for path in [source for source, _ in config["views"]])
    library = os.path.dirname(os.path.realpath(os.__file__))
    modules = places["modules"]
    native = (library, *(f"{modules}/{name}" for name in config["modules"]))
    watch_over(readable, os.path.realpath(room), native, listed=(modules,))
    try:
        answer(result_fd, tacker_user_data.run(given, places["package"]))
    except tacker_user_data.Refused as error:
        answer(result_fd, {"error": str(error)})
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything; its author gets the text
        import traceback

        traceback.print_exc()
        answer(result_fd, {"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Split into guard and inner process, or continue as the inner process alone."""
    config = json.loads(sys.argv[1])
    deadline = time.monotonic() + config["timeout_s"]
    libc = Libc()
    if config["namespaces"] and enter_namespaces(libc):
        inner = os.fork()
        if inner:
            os._exit(guard(inner, deadline))
        work(config, libc, apart=True)
    signal.setitimer(signal.ITIMER_REAL, config["timeout_s"])  # SIGALRM ends it; the service would kill it later
    work(config, libc, apart=False)


if __name__ == "__main__":
    main()
