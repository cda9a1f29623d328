"""Executes a Python file as ``python <file>`` would, with given bytes on stdin; collects its stdout and exit status."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
import traceback
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing takes 2 ms
    from collections.abc import Callable
    from typing import Any, NoReturn

PRELOADED = ("asyncio", "pickle", "subprocess", "threading", "time")
"""Modules that scripts import, which the sandbox imports while it can certainly read their folder."""


answer: Callable[[dict[str, object]], NoReturn] | None = None
"""Ends the process with an answer; the runner sets it."""


class Refused(Exception):
    """The file cannot be executed; the text is for its author."""


def run(given: Mapping[str, Any], package: str) -> dict[str, object]:
    """Return ``{"status", "stdout"}`` and ``{"value"}`` or ``{"unreadable"}``; stdout in base64.

    ``value``: the object whose pickle stdout is. It is read here, because reading a pickle executes what its author wants.

    ``given``: ``file`` (a path in the package), ``stdin`` (base64), ``pickled`` (an object whose pickle takes the place of
    ``stdin``), ``folders`` (entries of that object that only this process knows). The file finds the package's folder in
    the environment variable ``KUBEVNFM_PACKAGE``.
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
    sys.argv, sys.path[0:0] = [path], [path.rpartition("/")[0]]

    def end(status: int) -> NoReturn:
        """Answer in place of the process's end: what the file has said is read here. Buffers are lost, as with os._exit."""
        assert answer is not None
        answer(_ended(status & 0xFF, stdout))

    os._exit = end
    status = _status_of(path)
    sys.stdout.flush()
    return _ended(status, stdout)


def _ended(status: int, stdout: int) -> dict[str, object]:
    os.lseek(stdout, 0, os.SEEK_SET)
    with os.fdopen(stdout, "rb", closefd=False) as said:
        raw = said.read()
    return {"status": status, "stdout": base64.b64encode(raw).decode(), **_unpickled(raw)}


def _unpickled(raw: bytes) -> dict[str, object]:
    if not raw:
        return {}
    try:
        value = pickle.loads(raw)  # noqa: S301 - inside the sandbox
        json.dumps(value)
    except Exception as error:  # noqa: BLE001 - foreign data may raise anything
        return {"unreadable": f"{type(error).__name__}: {error}"}
    return {"value": value}


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
    except BaseException:  # noqa: BLE001 - foreign code may raise anything; its author gets the text
        traceback.print_exc()
        return 1
    return 0
