"""The first program of a confined process: takes away everything that foreign code does not need, then starts ``runner``.

Started as ``python -I -S launcher.py <config JSON>`` with an empty environment and a session of its own. It uses only the
standard library, because it must start within milliseconds and must not see the service's packages. It alone has ctypes:
``execve`` to ``runner`` leaves no native call behind for foreign code.

There are two processes. The *guard* watches the deadline and the service's life, and kills the other. The *inner* process
has a root of its own with the views of the config, all read-only; it has no network device, sees no other process, and a
seccomp filter admits only the system calls that the config lists. Where the kernel refuses one of these, the launcher
ends, unless the config says that the code is trusted. Trusted code without a root of its own is confined by Landlock if the
kernel has it, and by limits.

The state of the confinement is reported on a descriptor that foreign code never has: ``report`` of the config, closed by
each ``execve``. It gets ``UNCONFINED`` and the reason, or from the guard ``OUT_OF_TIME``, or nothing.
"""

# ruff: noqa: PTH101, PTH103, PTH106, PTH110, PTH112, PTH116, PTH118, PTH120, PTH123, PTH208, S103, S108, S606
# os.path, because importing pathlib would add a tenth to the start. Modes and /tmp concern the process's own root.
from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 2 ms, and the whole start 30 ms
    from collections.abc import Callable, Mapping
    from typing import Any

GUARD_DEADLINE = 124
"""Exit status of the guard after the time limit, the same as that of timeout(1)."""
UNCONFINED, OUT_OF_TIME = b"unconfined:", b"out of time"
"""The reports."""
_HOST_NAME = b"sandbox"
_CLONE = {"NEWNS": 0x00020000, "NEWUTS": 0x04000000, "NEWIPC": 0x08000000, "NEWUSER": 0x10000000}
_CLONE |= {"NEWPID": 0x20000000, "NEWNET": 0x40000000}
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_SECCOMP_MODE_FILTER, _NEW_LISTENER = 2, 8
_UNPRIVILEGED = 65534
_LOCKED_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""mount(2)'s flag by statvfs(3)'s. A user namespace may not clear these, so a read-only remount must repeat them."""
_EMPTY = "/.empty"


class Libc:
    """The system calls that Python 3.11 does not offer."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)

    def call(self, name: str, *args: object) -> int:
        """Call the function; raise OSError if it returns -1."""
        wanted = [arg.encode() if isinstance(arg, str) else arg for arg in args]
        result = int(getattr(self._libc, name)(*wanted))
        if result == -1:
            number = ctypes.get_errno()
            raise OSError(number, f"{name}: {os.strerror(number)}")
        return result

    def prctl(self, option: int, value: int, pointer: object = 0) -> None:
        """Change an attribute of this process."""
        last = ctypes.c_ulong(pointer) if isinstance(pointer, int) else pointer
        self.call("prctl", option, ctypes.c_ulong(value), last, ctypes.c_ulong(0), ctypes.c_ulong(0))

    def drop_capabilities(self) -> None:
        """Drop the capabilities that a new user namespace grants (capset(2), version 3)."""
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        self.call("capset", header, (ctypes.c_uint32 * 6)())


class Unconfined(Exception):
    """The kernel refuses a part of the confinement; the text says which and why."""


# --- namespaces -------------------------------------------------------------------------------------------------------


def enter_namespaces(libc: Libc) -> None:
    """Leave the host's mounts, network, processes and IPC. Raises Unconfined."""
    uid, gid = os.getuid(), os.getgid()
    apart = _CLONE["NEWNS"] | _CLONE["NEWUTS"] | _CLONE["NEWIPC"] | _CLONE["NEWPID"] | _CLONE["NEWNET"]
    try:
        # Only root may create the other namespaces without a user namespace.
        libc.call("unshare", apart if uid == 0 else apart | _CLONE["NEWUSER"])
        if uid != 0:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                with open(f"/proc/self/{name}", "w") as file:
                    file.write(text)
    except OSError as error:
        raise Unconfined(f"the kernel refuses namespaces ({error.strerror or error})") from error
    # A new namespace begins with the host's name. A container's own filter may refuse to change it; that name is the container's.
    try:
        libc.call("sethostname", _HOST_NAME, ctypes.c_size_t(len(_HOST_NAME)))
    except OSError:
        return


def enter_own_root(libc: Libc, config: dict[str, Any]) -> None:
    """Make ``config["room"]``, an empty folder, the root. Raises Unconfined if a security module refuses mounts."""
    try:
        _build_root(libc, config["room"], config["views"], config["masked"])
    except PermissionError as error:
        raise Unconfined(f"a security module refuses mounts ({error.strerror or error})") from error


def _build_root(libc: Libc, room: str, views: list[list[str]], masked: list[str]) -> None:
    """Build a small file system with read-only views of the needed folders; ``masked`` files in them are empty."""
    # Private, so that no mount below becomes visible on the host.
    libc.call("mount", "none", "/", None, _MS_REC | _MS_PRIVATE, None)
    libc.call("mount", "tmpfs", room, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=16m,nr_inodes=1024,mode=755")
    for source, target in views:
        if os.path.exists(source):
            _view(libc, source, room + target)
    with open(room + _EMPTY, "w"):
        pass
    for path in masked:
        if os.path.exists(room + path):
            libc.call("mount", room + _EMPTY, room + path, None, _MS_BIND, None)
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
        if not os.path.exists(target):
            with open(target, "a"):
                pass
    # A bind mount ignores the read-only flag; it takes a second call to set it.
    libc.call("mount", source, target, None, _MS_BIND | _MS_REC, None)
    present = os.statvfs(target).f_flag
    locked = sum(flag for shown, flag in _LOCKED_FLAGS.items() if present & shown)
    libc.call("mount", None, target, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | locked, None)


# --- Landlock, for trusted code without a root of its own -------------------------------------------------------------

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446  # the same numbers on every architecture
_LANDLOCK_READ, _LANDLOCK_LIST = 0b1101, 0b1000  # execute, read a file, list a folder
_LANDLOCK_FILE_ONLY = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
_LANDLOCK_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""Number of file rights by version of Landlock; later versions have no more than version 5."""


def _landlock(libc: Libc, readable: list[str], *, listed: str, writable: str) -> None:
    """Let this process open only files below these folders, and use no TCP port; do nothing if the kernel lacks Landlock.

    ``listed``: only the names in it may be read, because the importer does so. Raises OSError. Source: landlock(7).
    """
    try:
        version = libc.call("syscall", _LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)
    except OSError:
        return
    all_fs = (1 << _LANDLOCK_FS_BITS[min(version, 5)]) - 1
    wanted = (ctypes.c_uint64 * 3)(all_fs, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    rules = libc.call("syscall", _LANDLOCK_CREATE, wanted, ctypes.c_size_t(size), 0)
    granted = [*((path, _LANDLOCK_READ) for path in readable), (listed, _LANDLOCK_LIST), (writable, all_fs)]
    for path, rights in granted:
        if not os.path.exists(path):
            continue
        below = os.open(path, os.O_PATH)
        allowed = rights if os.path.isdir(path) else rights & _LANDLOCK_FILE_ONLY
        rule = allowed.to_bytes(8, sys.byteorder) + below.to_bytes(4, sys.byteorder)
        libc.call("syscall", _LANDLOCK_ADD, rules, 1, rule, 0)
        os.close(below)
    libc.call("syscall", _LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


# --- the guard --------------------------------------------------------------------------------------------------------


def guard(inner: int, deadline: float, report: int) -> int:
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
        if events:
            return 1
        # Not by the status alone: foreign code may end with any.
        os.write(report, OUT_OF_TIME)
        return GUARD_DEADLINE
    status = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
    return status if status >= 0 else 128 - status


# --- the inner process ------------------------------------------------------------------------------------------------


def private_copy(folder: str, room: str, without: str = "Files") -> str:
    """Copy a folder without this one of its folders to a place that all users can read; return the path."""
    import shutil

    copy = os.path.join(room, f"copy-{len(os.listdir(room))}")
    shutil.copytree(folder, copy, ignore=lambda where, names: {without} & set(names) if where == folder else set())
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


def drop_privileges() -> None:
    """Give up root without a way to regain it."""
    os.setgroups([])
    os.setresgid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)
    os.setresuid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)


def limit(config: dict[str, Any]) -> None:
    """Limit memory, processor time, files and processes; the limits cannot be raised again."""
    memory = config["memory_mib"] * 1024 * 1024
    seconds = int(config["timeout_s"]) + 1
    for which, amount in (
        # A runtime such as that of Go reserves far more addresses than it uses; what it writes to counts here.
        (resource.RLIMIT_DATA if config.get("program") else resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, config["file_mib"] * 1024 * 1024),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, config["threads"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        resource.setrlimit(which, (amount, amount))


class Channel:
    """Delivers the listener of the filter to ``connector``, which decides about each connect of the confined process."""

    def __init__(self) -> None:
        import socket  # it takes 5 ms, and few runs need it

        self._send_fds = socket.send_fds
        self._here, self.there = socket.socketpair()

    def send(self, listener: int) -> None:
        """Hand the listener over, and keep nothing of it."""
        self._send_fds(self._here, [b"l"], [listener])
        os.close(listener)
        self._here.close()
        self.there.close()

    def connect_for(self, guard: int, config: dict[str, Any]) -> None:
        """Become the connector of the guard's child; never returns."""
        self._here.close()
        nothing = os.open("/dev/null", os.O_RDWR)
        # The service reads until all writers have closed, and writes until all readers have.
        for fd in (0, 1, 2):
            os.dup2(nothing, fd)
        self.there.set_inheritable(True)
        given = {"channel": self.there.fileno(), "guard": guard, "reach": config["reach"]}
        os.execve(
            config["python"],
            [config["python"], "-I", "-S", config["connector"], json.dumps(given)],
            _environment(config),
        )


def _environment(config: dict[str, Any]) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": config["python_library"]} if config["python_library"] else {}


def load_filter(libc: Libc, config: dict[str, Any], channel: Channel | None) -> None:
    """Admit only the system calls of the filter, for this process and all that come of it. Raises Unconfined.

    With a channel the filter asks its listener about each connect.
    """
    if config["filter"] is None:
        raise Unconfined(config["no_filter"])
    program = base64.b64decode(config["filter"])
    held = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):  # struct sock_fprog of linux/filter.h
        _fields_ = (("count", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    wanted = ctypes.byref(Program(len(program) // 8, ctypes.addressof(held)))
    try:
        if channel is None:
            libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, wanted)
        else:
            listener = libc.call("syscall", config["seccomp_number"], 1, ctypes.c_ulong(_NEW_LISTENER), wanted)
            channel.send(listener)
    except OSError as error:
        raise Unconfined(f"the kernel refuses the seccomp filter ({error.strerror or error})") from error


def take_input() -> None:
    """Put the input, without the line with its length, in the place of stdin, where a program reads it to its end.

    The service keeps its end of stdin open, because the guard ends with it.
    """
    length = b""
    while not length.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            os._exit(1)
        length += byte
    held = os.memfd_create("input")
    left = int(length)
    while left and (part := os.read(0, min(left, 1 << 20))):
        left -= os.write(held, part)
    os.lseek(held, 0, os.SEEK_SET)
    os.dup2(held, 0)
    os.close(held)


def become(program: dict[str, Any], handed: dict[str, Any]) -> None:
    """Execute the program of `foreign`; never returns. Arguments may begin with the name of a place: ``{package}``."""
    os.dup2(program["output"], 1)
    for fd in (program["output"], handed["answers"]):
        os.close(fd)
    names = {f"{{{name}}}": path for name, path in (*handed["places"].items(), ("room", handed["room"]))}

    def placed(text: str) -> str:
        found = next((name for name in names if text.startswith(name)), None)
        return text if found is None else names[found] + text.removeprefix(found)

    environment = {name: placed(text) for name, text in program["environment"].items()}
    try:
        os.execve(handed["places"]["program"], [placed(text) for text in program["arguments"]], environment)
    except OSError as error:
        os.write(2, f"the program cannot be executed: {error.strerror}\n".encode())
        os._exit(126)


class Confinement:
    """Takes the rights away one after the other; a refusal of the kernel ends it, unless the code is trusted."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.libc = Libc()
        self.channel: Channel | None = None

    def has(self, part: str, *args: Any) -> bool:
        """Take the step; return False if the kernel refuses it and the code is trusted. Otherwise a refusal ends the process."""
        try:
            if part in self.config["without"]:
                raise Unconfined(f"the kernel refuses {part}")
            _STEPS[part](self.libc, *args)
        except Unconfined as refusal:
            if not self.config["trusted"]:
                os.write(self.config["report"], UNCONFINED + str(refusal).encode())
                os._exit(0)
            return False
        return True

    def enter(self, apart: bool) -> None:
        """Confine this process, and go on as the runner; never returns."""
        config = self.config
        is_root = os.getuid() == 0
        spare = config["spare_room"]
        places = {name: pair[0] for name, pair in config["places"].items()}
        copied = self._copies(places, spare) if is_root else {}
        config["views"] = [[copied.get(source, source), target] for source, target in config["views"]]
        own_root = apart and self.has("mounts", config)
        if own_root:
            places = {name: pair[1] for name, pair in config["places"].items()}
        else:
            places = {name: copied.get(path, path) for name, path in places.items()}
            if is_root:
                os.chmod(spare, 0o755)
                os.chown(config["room"], _UNPRIVILEGED, _UNPRIVILEGED)
        room = "/tmp" if own_root else config["room"]
        os.chdir(room)
        # Without a root of its own the runner gives up root itself, because only root may be able to read Python's folder.
        late = is_root and not own_root and not config.get("program")
        if is_root and not late:
            drop_privileges()
        elif apart and not is_root:
            self.libc.drop_capabilities()
        self.libc.prctl(_PR_SET_NO_NEW_PRIVS, 1)
        self.libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        readable = [source for source, _ in config["views"]]
        if not own_root:
            _landlock(self.libc, readable, listed=places["modules"], writable=room)
        handed = {
            "places": places,
            "readable": None if own_root else readable,
            "room": room,
            "drop_to": _UNPRIVILEGED if late else None,
            **{name: config[name] for name in ("entry", "native", "native_folder", "modules", "watched", "library")},
        }
        limit(config)
        # stdout is for the answer alone: what the code prints goes to stderr.
        handed["answers"] = os.dup(1)
        os.set_inheritable(handed["answers"], True)
        os.dup2(2, 1)
        self._start(handed)

    def _copies(self, places: dict[str, str], spare: str) -> dict[str, str]:
        """Copy the folders that an unprivileged user could not read; return the copies by original."""
        return {
            path: private_copy(path, spare, "" if self.config.get("program") else "Files")
            for name, path in places.items()
            if os.path.isdir(path) and name != "modules" and not open_to_all(path)
        }

    def _start(self, handed: dict[str, Any]) -> None:
        config = self.config
        argv = [config["python"], "-I", "-S", "-B", handed["places"]["runner"], json.dumps(handed)]
        if config.get("program"):
            take_input()
        self.has("seccomp", config, self.channel)
        if config.get("program"):
            become(config["program"], handed)
        os.execve(config["python"], argv, _environment(config))


_STEPS: Mapping[str, Callable[..., None]] = {
    "namespaces": enter_namespaces,
    "mounts": enter_own_root,
    "seccomp": load_filter,
}


def main() -> None:
    """Split into guard and inner process; trusted code whose namespaces are refused has no guard."""
    config = json.loads(sys.argv[1])
    deadline = time.monotonic() + config["timeout_s"]
    os.umask(0o022)
    # Every execve below closes it, so that neither the runner nor the connector has it.
    os.set_inheritable(config["report"], False)
    confinement = Confinement(config)
    if config["reach"]:
        confinement.channel = Channel()
        # The parent stays in the host's network, and may read the memory of its descendants.
        child = os.fork()
        if child:
            confinement.channel.connect_for(child, config)
    if confinement.has("namespaces"):
        inner = os.fork()
        if inner:
            os._exit(guard(inner, deadline, config["report"]))
        confinement.enter(apart=True)
    signal.setitimer(signal.ITIMER_REAL, config["timeout_s"])  # SIGALRM ends it; the service would kill it later
    confinement.enter(apart=False)


if __name__ == "__main__":
    main()
