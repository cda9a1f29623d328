"""UserDataProcess: calls a package's user data class in the sandbox."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import structlog
from kubevnfm_csar import BaseHot, inside
from kubevnfm_events.infra import UserData
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_sandbox.process import ANSWER_BYTES, Limits, Program, Sandbox, SandboxState
from kubevnfm_sandbox.shim import TACKER_SHIM
from kubevnfm_secrets import MASK

from kubevnfm_infra_openstack.domain.errors import UserDataFailed, UserDataTimedOut
from kubevnfm_infra_openstack.domain.ports import HeatInput, HeatPatch, UserDataInput

log = structlog.get_logger()

_SHIM: Final = Path(__file__).parent.parent / "sandbox/tacker_shim"
_STDERR_SHOWN: Final = 2_000
_MODULES: Final = ("yaml", "_yaml")


class UserDataProcess:
    """Runs one process of the sandbox for each call."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sandbox = Sandbox(limits)

    async def state(self) -> SandboxState:
        """Try the sandbox; log and return whether classes of packages are run. A trial takes some 60 ms."""
        return await self._sandbox.reported_state("user data")

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
        return await self._run(json.dumps(document).encode(), folder, file, given.secrets)

    async def _run(self, document: bytes, package: Path, file: str, secrets: frozenset[str]) -> Mapping[str, Any]:
        program = Program(entry="tacker_user_data", shim=_SHIM, package=package, modules=_MODULES, imports=TACKER_SHIM)
        ended = await self._sandbox.run(program, document)
        last_words = _masked(ended.said.decode(errors="replace"), secrets)[-_STDERR_SHOWN:].strip()
        if last_words:
            log.info("user_data_output", file=file, text=last_words)
        if ended.timed_out:
            said = f"; its last output: {last_words}" if last_words else ""
            raise UserDataTimedOut(f"{file}: killed after {self._limits.timeout_s:g} s{said}")
        if len(ended.answer) > ANSWER_BYTES:
            raise UserDataFailed(f"{file}: returned more than {ANSWER_BYTES} bytes")
        try:
            answer = read_foreign(ended.answer)
        except ValueError:
            raise UserDataFailed(
                f"{file}: ended with status {ended.status} without a result that can be read; {last_words}"
            ) from None
        if "error" in answer:
            reason = _masked(str(answer["error"]), secrets)[:_STDERR_SHOWN]
            raise UserDataFailed(f"{file}: {reason}" + (f"\n{last_words}" if last_words else ""))
        return dict(answer)


def _masked(text: str, secrets: frozenset[str]) -> str:
    """Replace the input's secrets in a text."""
    # Longest first: a secret that contains another one would otherwise be masked only in part.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
