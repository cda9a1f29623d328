"""UserDataProcess: calls a package's user data class in the sandbox."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final, Literal

import structlog
from kubevnfm_csar.files import inside
from kubevnfm_csar.hot import BaseHot
from kubevnfm_events.stacks import UserData
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.printable import printable, quoted_end, quoted_start
from kubevnfm_sandbox.answers import Answer, AnswerRefused, FailedAnswer, judged, read_answer
from kubevnfm_sandbox.process import Sandbox
from kubevnfm_sandbox.runs import Limits, Program, SandboxState
from kubevnfm_sandbox.shim import TACKER_SHIM, USER_DATA_MODULES
from kubevnfm_secrets import Mask
from pydantic import Field

from kubevnfm_infra_openstack.domain.errors import UserDataFailed, UserDataTimedOut
from kubevnfm_infra_openstack.domain.ports import HeatInput, HeatPatch, UserDataInput

log = structlog.get_logger()

_SHIM: Final = Path(__file__).parent.parent / "sandbox/tacker_shim"
_READY: Final = "StandardUserData"
_OUTPUT_SHOWN: Final = 2_000
_ERROR_SHOWN: Final = 1_000
_Text = Annotated[str, Field(max_length=4 * 1024 * 1024)]
"""A template. Heat's own limit is 512 KiB; an operator may raise it."""
_FileName = Annotated[str, Field(min_length=1, max_length=1024)]


class _V2Result(Answer):
    """The dictionary that a class of v2 returns."""

    template: _Text | None = None
    parameters: JsonObject | None = None
    files: dict[_FileName, _Text] = Field(default_factory=dict)
    existing: bool | None = None


class _Result(Answer):
    """The answer of ``tacker_user_data``."""

    style: Literal["v1", "v2"]
    result: JsonObject | None
    """The parameters (v1), or judged as _V2Result (v2). None: the class has no such method for the request."""


class UserDataProcess:
    """Runs one process of the sandbox for each call."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sandbox = Sandbox(limits)

    async def state(self) -> SandboxState:
        """Try the sandbox; log and return whether classes of packages are run. A trial takes some 60 ms."""
        return await self._sandbox.reported_state("user data")

    async def instantiate(self, user_data: UserData, folder: Path, hot: BaseHot, given: UserDataInput) -> HeatInput:
        answer = await self._call("instantiate", user_data, folder, hot, given)
        if answer.result is None:
            raise AnswerRefused(f"{user_data.path}: result: the parameters of the stack expected")
        if answer.style == "v1":
            return HeatInput(answer.result, hot.top.text, hot.file_texts)
        found = judged(answer.result, _V2Result)
        if found.parameters is None:
            raise AnswerRefused(f"{user_data.path}: parameters: an object expected")
        return HeatInput(
            found.parameters,
            hot.top.text if found.template is None else found.template,
            {**hot.attached, **found.files} if "files" in found.model_fields_set else hot.file_texts,
        )

    async def change(
        self, user_data: UserData | None, method: str, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> HeatPatch | None:
        answer = await self._call(method, user_data, folder, hot, given)
        if answer.result is None:
            return None
        if answer.style == "v1":
            return HeatPatch(parameters=answer.result, has_whole_values=True)
        found = judged(answer.result, _V2Result)
        return HeatPatch(
            parameters=found.parameters or {},
            template=found.template,
            files=found.files,
            attached=hot.attached,
            is_whole=found.existing is False,
        )

    async def _call(
        self, method: str, user_data: UserData | None, folder: Path, hot: BaseHot, given: UserDataInput
    ) -> _Result:
        file = inside(user_data.path.removeprefix("./")) if user_data is not None else None
        if user_data is not None and (file is None or not (folder / file).is_file()):
            raise Unprocessable(
                "additionalParams.lcm-operation-user-data", f"{user_data.path}: no such file in the package"
            )
        class_name = user_data.class_name if user_data is not None else _READY
        document = {
            "file": file,
            "class": class_name,
            "method": method,
            "api_version": given.api_version,
            "base_hot": hot.user_data_form(),
            "vnfd": given.service_template,
            "images": given.image_by_vdu,
            "request": given.request,
            "instance": given.instance,
            "grant_request": given.grant_request,
            "grant": given.grant,
            "parameters": given.parameters,
            "servers": list(given.servers),
            "group_size": given.group_size,
        }
        return await self._run(json.dumps(document).encode(), folder, file or class_name, given.secrets)

    async def _run(self, document: bytes, package: Path, file: str, secrets: frozenset[str]) -> _Result:
        program = Program(
            entry="tacker_user_data", shim=_SHIM, package=package, modules=USER_DATA_MODULES, imports=TACKER_SHIM
        )
        ended = await self._sandbox.run(program, document)
        mask = Mask(secrets)
        # Printable first: a control character within a secret would hide it from the mask.
        output = mask(printable(ended.said.decode(errors="replace")))
        last_words = f"; its last output:{quoted_end(output, _OUTPUT_SHOWN)}" if output.strip() else ""
        if last_words:
            log.info("user_data_output", file=file, text=quoted_end(output, _OUTPUT_SHOWN))
        if ended.timed_out:
            raise UserDataTimedOut(f"{file}: killed after {self._limits.timeout_s:g} s{last_words}")
        if not ended.answer and ended.status != 0:
            raise UserDataFailed(f"{file}: ended with status {ended.status} without a result{last_words}")
        try:
            answer = read_answer(ended.answer, _Result)
        except AnswerRefused as refusal:
            raise AnswerRefused(f"{file}: {refusal}{last_words}") from None
        if isinstance(answer, FailedAnswer):
            reason = mask(printable(answer.error))
            raise UserDataFailed(f"{file}: the class failed:{quoted_start(reason, _ERROR_SHOWN)}{last_words}")
        return answer
