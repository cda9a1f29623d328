"""Executes a Python file as ``python <file>`` would, with given bytes on stdin; collects its stdout and exit status."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import os
import pickle
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 2 ms
    from collections.abc import Callable
    from typing import Any, NoReturn

LONGEST_HEAD = 64 * 1024
"""Bytes of a stdout that is too long which are kept, so that a text among it is not lost."""
LONGEST_REASON = 4096
"""Characters of an exception's text that are answered."""
LONGEST_LINE = 4096
"""Characters of a printed line that are copied before its end."""
PRELOADED = ("asyncio", "hmac", "pickle", "secrets", "ssl", "subprocess", "threading", "time", "urllib.request")
"""Modules that scripts import, which the sandbox imports while it can certainly read their folder."""


answer: Callable[[dict[str, object]], NoReturn] | None = None
"""Ends the process with an answer; the runner sets it."""


class Refused(Exception):
    """The file cannot be executed; the text is for its author."""


def run(given: Mapping[str, Any], package: str) -> dict[str, object]:
    """Return ``{"status", "stdout"}`` and ``{"value"}`` or ``{"unreadable"}``; stdout and value in base64.

    ``value``: the object whose pickle stdout is, as JSON. It is read here, because reading a pickle executes what its
    author wants. In base64, so that nothing in it makes the status unreadable.

    ``given``: ``file`` (a path in the package), ``stdin`` (base64), ``pickled`` (an object whose pickle takes the place of
    ``stdin``), ``folders`` (entries of that object that only this process knows), ``longest`` (of stdout and value together,
    in characters), ``printed`` (a descriptor for a copy of what the file prints), ``via`` (a module of ours that is executed
    in place of the file, and finds it in ``sys.argv[0]``), ``files`` (descriptors of private files, by the environment
    variable in which the file finds their paths), ``names`` (addresses by name). The file finds the package's folder in the
    environment variable ``KUBEVNFM_PACKAGE``.
    """
    path = f"{package}/{given['file']}"
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib would have to be loaded
        raise Refused(f"{given['file']}: no such file in the package")
    stdin = base64.b64decode(given["stdin"])
    if given.get("pickled") is not None:
        stdin = pickle.dumps({**given["pickled"], **given.get("folders", {})})
    _become(0, stdin)
    stdout = _become(1, b"")
    os.environ["KUBEVNFM_PACKAGE"] = package
    for variable, fd in given["files"].items():
        os.environ[variable] = _private_file(variable, fd)
    if given["names"]:
        _look_up(given["names"])
    sys.argv, sys.path[0:0] = [path], [path.rpartition("/")[0]]

    def end(status: int) -> NoReturn:
        """Answer in place of the process's end: what the file has said is read here. Buffers are lost, as with os._exit."""
        assert answer is not None
        answer(_ended(status & 0xFF, stdout, given["longest"]))

    os._exit = end
    _copy_prints(given["printed"])
    status = _status_of(_place_of(given["via"]) if given["via"] else path)
    sys.stdout.flush()
    return _ended(status, stdout, given["longest"])


def _place_of(module: str) -> str:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin


def _ended(status: int, stdout: int, longest: int) -> dict[str, object]:
    os.lseek(stdout, 0, os.SEEK_SET)
    with os.fdopen(stdout, "rb", closefd=False) as said:
        raw = said.read()
    found = {"stdout": base64.b64encode(raw).decode(), **_unpickled(raw)}
    if sum(map(len, found.values())) > longest:
        reason = f"it is too long: in base64, with the object that was read from it, {longest} bytes are allowed"
        found = {"stdout": base64.b64encode(raw[:LONGEST_HEAD]).decode(), "unreadable": reason}
    return {"status": status, **found}


def _unpickled(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    try:
        value = json.dumps(pickle.loads(raw))  # noqa: S301 - inside the sandbox
    except Exception as error:  # noqa: BLE001 - foreign data may raise anything
        return {"unreadable": f"{type(error).__name__}: {error}"[:LONGEST_REASON]}
    return {"value": base64.b64encode(value.encode()).decode()}


def _copy_prints(to: int) -> None:
    """Have each printed line copied at once, and what is flushed: the scratch file and Python's buffer are lost if the process is killed.

    The buffer stays, because a text that the file never flushes must not come before the pickle that it writes.
    """

    class Copied(io.TextIOWrapper):
        _line = ""

        def write(self, text: str, /) -> int:
            written = super().write(text)
            self._line += text
            # At the end of a line: `print` writes that apart, and a system call before it would let other threads print there.
            if "\n" in text or len(self._line) > LONGEST_LINE:
                self._copy()
            return written

        def flush(self) -> None:
            super().flush()
            self._copy()

        def _copy(self) -> None:
            line, self._line = self._line, ""
            with suppress(OSError):  # no room is left; the output itself reports that
                os.write(to, line.encode(errors="backslashreplace"))

    plain = sys.stdout
    assert isinstance(plain, io.TextIOWrapper)
    encoding, errors = plain.encoding, plain.errors
    sys.stdout = sys.__stdout__ = Copied(plain.detach(), encoding=encoding, errors=errors)  # type: ignore[misc] # of a module


def _private_file(name: str, fd: int) -> str:
    """Return a path of the file, which only this user may open, and which does not outlive the process."""
    place = f"/proc/self/fd/{fd}"
    if os.path.exists(place):  # noqa: PTH110 - pathlib would have to be loaded
        return place
    # A root of its own has no /proc; it is in memory, and vanishes with its processes.
    place = f"{os.getcwd()}/.{name.lower()}"  # noqa: PTH109
    with os.fdopen(fd, "rb") as file:
        file.seek(0)
        content = file.read()
    with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:  # noqa: PTH123
        copy.write(content)
    return place


def _look_up(addresses: Mapping[str, list[str]]) -> None:
    """Answer Python's look-ups of these names: no name server is in reach."""
    import socket  # it takes 5 ms, and few scripts need it

    original = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        known = addresses.get(name.lower().rstrip(".")) if isinstance(name, str) else None
        if known is None:
            return original(host, port, family, type, proto, flags)
        found: list[Any] = []
        for address in known:
            with suppress(socket.gaierror):  # an address of the other family
                found += original(address, port, family, type, proto, flags)
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, f"{name}: no address of this family")
        return found

    socket.getaddrinfo = getaddrinfo


def _become(fd: int, content: bytes) -> int:
    """Put a scratch file with the content in the place of a descriptor; return another descriptor of it."""
    name = f".std{fd}"
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(name)  # noqa: PTH108 - pathlib would have to be loaded
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, fd)
    return file


def _status_of(path: str) -> int:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib would have to be loaded
            code = compile(file.read(), path, "exec", dont_inherit=True)
        main = sys.modules["__main__"]
        main.__file__ = path
        exec(code, vars(main))  # noqa: S102 - this is what the sandbox is for
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    # Not Exception alone: a class of the script's own may derive from BaseException, and this process runs nothing else that a
    # KeyboardInterrupt or GeneratorExit could be meant for.
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything; its author gets the text
        # Without the line of this file.
        outer = error.__traceback__
        traceback.print_exception(type(error), error, outer and outer.tb_next)
        return 1
    return 0
