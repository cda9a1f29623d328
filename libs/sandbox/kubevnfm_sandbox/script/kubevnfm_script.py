"""Executes a Python file as ``python <file>`` would, with given bytes on stdin; collects its stdout and exit status."""

import base64
import json
import os
import pickle
import sys
import traceback
from collections.abc import Mapping

PRELOADED = ("asyncio", "pickle", "subprocess", "threading", "time")
"""Modules that scripts import, which the sandbox imports while it can certainly read their folder."""


class Refused(Exception):
    """The file cannot be executed; the text is for its author."""


def run(given: Mapping[str, str], package: str) -> dict[str, object]:
    """Return ``{"status", "stdout"}`` and ``{"value"}`` or ``{"unreadable"}``; stdout in base64.

    ``value``: the object whose pickle stdout is. It is read here, because reading a pickle executes what its author wants.

    ``given``: ``file`` (a path in the package), ``stdin`` (base64). The file finds the package's folder in the environment
    variable ``KUBEVNFM_PACKAGE``.
    """
    path = f"{package}/{given['file']}"
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib would have to be loaded
        raise Refused(f"{given['file']}: no such file in the package")
    _become(0, base64.b64decode(given["stdin"]))
    stdout = _become(1, b"")
    os.environ["KUBEVNFM_PACKAGE"] = package
    sys.argv, sys.path[0:0] = [path], [path.rpartition("/")[0]]
    status = _status_of(path)
    sys.stdout.flush()
    os.lseek(stdout, 0, os.SEEK_SET)
    with os.fdopen(stdout, "rb") as said:
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
            code = compile(file.read(), path, "exec")
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
