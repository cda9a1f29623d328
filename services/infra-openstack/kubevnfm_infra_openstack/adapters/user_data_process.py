"""UserDataProcess: calls a package's user data class in a confined process (sandbox/child.py)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import sysconfig
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog
from kubevnfm_csar import BaseHot, inside
from kubevnfm_events.infra import UserData
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import MASK

from kubevnfm_infra_openstack.domain.errors import UserDataFailed, UserDataTimedOut
from kubevnfm_infra_openstack.domain.ports import HeatInput, HeatPatch, UserDataInput

log = structlog.get_logger()

_SANDBOX: Final = Path(__file__).parent.parent / "sandbox"
_ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Largest accepted result. Heat accepts templates of up to 512 KiB (max_template_size)."""
_STDERR_BYTES: Final = 64 * 1024
_STDERR_SHOWN: Final = 2_000
_FILE_MIB: Final = 16
_GRACE_S: Final = 1.0
"""Time between closing stdin, on which the guard kills its child, and killing the guard."""
_GUARD_DEADLINE: Final = 124
_ALARM: Final = 14
_MODULES: Final = ("yaml", "_yaml")
_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64")
_DEVICES: Final = ("/dev/null", "/dev/urandom")


@dataclass(frozen=True)
class Limits:
    """The limits of one run."""

    timeout_s: float = 60.0
    memory_mib: int = 512
    parallel: int = 4
    namespaces: bool = True
    """False behaves like a kernel that refuses namespaces: only limits and the audit hook confine the process."""


class UserDataProcess:
    """Starts one process for each call, at most ``limits.parallel`` at the same time."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._places = asyncio.Semaphore(limits.parallel)

    async def instantiate(self, user_data: UserData, folder: Path, hot: BaseHot, given: UserDataInput) -> HeatInput:
        """See UserDataPort."""
        answer = await self._call("instantiate", user_data, folder, hot, given)
        result = answer["result"]
        if answer["style"] == "v1":
            return HeatInput(result, hot.top_text, hot.file_texts)
        return HeatInput(
            result["parameters"], result.get("template", hot.top_text), result.get("files", hot.file_texts)
        )

    async def change(
        self, user_data: UserData, method: str, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> HeatPatch | None:
        """See UserDataPort."""
        result = (await self._call(method, user_data, folder, hot, given))["result"]
        if result is None:
            return None
        return HeatPatch(
            parameters=result.get("parameters", {}),
            template=result.get("template"),
            files=result.get("files", {}),
            is_whole=result.get("existing") is False,
        )

    async def _call(
        self, method: str, user_data: UserData, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> Mapping[str, Any]:  # the class's result, in whatever form it was written
        file = inside(user_data.path.removeprefix("./"))
        if file is None or not (folder / file).is_file():
            raise Unprocessable(
                "additionalParams.lcm-operation-user-data", f"{user_data.path}: no such file in the package"
            )
        document = {
            "file": file,
            "class": user_data.class_name,
            "method": method,
            "api_version": given.api_version,
            "base_hot": hot.user_data_form(),
            "vnfd": given.service_template,
            "images": given.image_by_vdu,
            "request": given.request,
            "instance": given.instance,
            "grant_request": given.grant_request,
            "grant": given.grant,
        }
        async with self._places:
            return await self._run(json.dumps(document).encode(), folder, file, given.secrets)

    async def _run(self, document: bytes, package: Path, file: str, secrets: frozenset[str]) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory(prefix="kubevnfm-room-") as room, tempfile.TemporaryDirectory() as spare:
            config = json.dumps(self._config(package, room, spare))
            async with _child(config) as process:
                try:
                    async with asyncio.timeout(self._limits.timeout_s + _GRACE_S):
                        raw, said, status = await _converse(process, document)
                except TimeoutError:
                    raise self._timed_out(file) from None
        # The guard's own status, or that of SIGALRM if there is no guard.
        if status in (_GUARD_DEADLINE, -_ALARM, 128 + _ALARM):
            raise self._timed_out(file)
        last_words = _masked(said.decode(errors="replace"), secrets)[-_STDERR_SHOWN:].strip()
        if last_words:
            log.info("user_data_output", file=file, text=last_words)
        if len(raw) > _ANSWER_BYTES:
            raise UserDataFailed(f"{file}: returned more than {_ANSWER_BYTES} bytes")
        try:
            answer = json.loads(raw)
        except ValueError:
            raise UserDataFailed(f"{file}: ended with status {status} without a result; {last_words}") from None
        if "error" in answer:
            reason = _masked(str(answer["error"]), secrets)[:_STDERR_SHOWN]
            raise UserDataFailed(f"{file}: {reason}" + (f"\n{last_words}" if last_words else ""))
        return dict(answer)

    def _timed_out(self, file: str) -> UserDataTimedOut:
        return UserDataTimedOut(f"{file}: killed after {self._limits.timeout_s:g} s")

    def _config(self, package: Path, room: str, spare: str) -> Mapping[str, object]:
        modules = _modules_folder()
        shim = str(_SANDBOX / "tacker_shim")
        # The base installation's standard library; the virtual environment also contains the service's packages.
        base = {"installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
        library = dict.fromkeys(sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib"))
        views = [[path, path] for path in (*_LIBRARIES, *library, *_DEVICES)]
        views += [[str(modules / name), f"/modules/{name}"] for name in _MODULES]
        views += [[shim, "/shim"], [str(package), "/package"]]
        return {
            "timeout_s": self._limits.timeout_s,
            "memory_mib": self._limits.memory_mib,
            "file_mib": _FILE_MIB,
            "namespaces": self._limits.namespaces,
            "room": room,
            "spare_room": spare,
            "views": views,
            "modules": _MODULES,
            "places": {
                "package": [str(package), "/package"],
                "shim": [shim, "/shim"],
                "modules": [str(modules), "/modules"],
            },
        }


def _modules_folder() -> Path:
    spec = importlib.util.find_spec("yaml")
    assert spec is not None, "PyYAML is a dependency of this package"
    assert spec.origin is not None
    return Path(spec.origin).parent.parent


@asynccontextmanager
async def _child(config: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the process without environment and open files, in a session of its own; leaving ends it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(_SANDBOX / "child.py"),
        config,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.stdin is not None:
            process.stdin.close()  # on this the guard kills its child
        try:
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _converse(process: asyncio.subprocess.Process, document: bytes) -> tuple[bytes, bytes, int]:
    """Send the input; return the answer, the end of stderr, and the exit status.

    An answer that is too long is cut after the first byte above the limit.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    async def send(stdin: asyncio.StreamWriter) -> None:
        stdin.write(f"{len(document)}\n".encode() + document)
        try:
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            return  # the process ended before it had read everything; status and stderr contain the reason

    _, raw, said = await asyncio.gather(
        send(process.stdin),
        _read(process.stdout, first=_ANSWER_BYTES + 1),
        _read(process.stderr, last=_STDERR_BYTES),
    )
    return raw, said, await process.wait()


async def _read(stream: asyncio.StreamReader, *, first: int = 0, last: int = 0) -> bytes:
    """Read to the end; return the first or the last bytes, as many as given."""
    # All is read even if it is dropped, because a process that cannot write never ends.
    content = bytearray()
    while chunk := await stream.read(1 << 16):
        if last:
            content = (content + chunk)[-last:]
        else:
            content += chunk[: first - len(content)]
    return bytes(content)


def _masked(text: str, secrets: frozenset[str]) -> str:
    """Replace the input's secrets in a text."""
    # Longest first: a secret that contains another one would otherwise be masked only in part.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
