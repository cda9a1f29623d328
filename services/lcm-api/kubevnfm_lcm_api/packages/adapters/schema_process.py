"""Compares values with schemas of packages in processes that can be killed.

The library keeps the interpreter's lock, so that a schema which takes minutes would stop the whole service, and one that is
nested without end would end it. A process that is idle takes the next question: its start takes 0.2 s.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

import structlog
from kubevnfm_kit.child_process import ChildProcesses

from kubevnfm_lcm_api.packages.domain.ports import SchemaUnusable, Violation

log = structlog.get_logger()

_CHILD: Final = "kubevnfm_lcm_api.packages.adapters.schema_child"
_MEMORY_MIB: Final = 1024
_PARALLEL: Final = 2
_WALL_S: Final = 60.0
"""The machine may be busy."""
_ANSWER_BYTES: Final = 2**20
_OUT_OF_ROOM: Final = (-signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS, -signal.SIGKILL)
"""How native code ends that gets no memory, or no more stack; the last by the kernel, if the container has less memory."""
_UNEXPECTED: Final = "the comparison failed with an error that is not expected; the log has its class"


class SchemaProcesses:
    """`domain.ports.Schemas`, for at most two questions at the same time."""

    def __init__(self, cpu_s: int = 5) -> None:
        """``cpu_s``: processor time for one question; values and schemas of ordinary size take a hundredth of a second."""
        self._cpu_s = cpu_s
        self._places = asyncio.Semaphore(_PARALLEL)
        self._processes = ChildProcesses(_CHILD, memory_mib=_MEMORY_MIB, most_idle=1)

    async def violations(self, schema: Mapping[str, Any], values: Mapping[str, Any], most: int) -> Sequence[Violation]:
        question = {"schema": schema, "values": values, "most": most, "cpu_s": self._cpu_s}
        raw = await asyncio.to_thread(lambda: json.dumps(question).encode())
        async with self._places:
            answer = json.loads(await self._asked(raw))
        if "refused" in answer:
            raise SchemaUnusable(answer["refused"])
        if "failed" in answer:
            log.error("schema_comparison_failed", error=answer["failed"])
            raise SchemaUnusable(_UNEXPECTED)
        return [Violation(tuple(path), rule) for path, rule in answer["violations"]]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._processes.end_idle()

    async def _asked(self, question: bytes) -> bytes:
        async with self._processes.lent() as lent:
            try:
                async with asyncio.timeout(_WALL_S):
                    answer = await lent.process.ask(question, limit_bytes=_ANSWER_BYTES)
            except TimeoutError as error:
                raise SchemaUnusable(f"values are not compared with it within {_WALL_S:.0f} s") from error
            except (EOFError, OSError) as error:
                raise SchemaUnusable(self._reason(await asyncio.to_thread(lent.process.end))) from error
            lent.is_reusable = True
            return answer

    def _reason(self, status: int) -> str:
        if status == -signal.SIGXCPU:
            return f"the comparison needs more than the {self._cpu_s} s of processor time allowed"
        if status in _OUT_OF_ROOM:
            return f"the comparison needs more than the {_MEMORY_MIB} MiB of memory or the depth allowed"
        log.error("schema_comparison_failed", status=status)
        return _UNEXPECTED
