"""The lines about tasks on nodes: one line at the begin of each, one at its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kubevnfm_events.mgmt import TaskProgressed
from kubevnfm_kit.clock import SystemClock
from kubevnfm_mgmt_executor.adapters.journal import StoredJournal
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.ports import Claim, Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, Recorder, TaskResult
from kubevnfm_store.sqlite.store import SqliteStore
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs

NODE = NodeId("vnfc-1", "worker-1")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (TaskResult(), {"outcome": "done"}),
        (TaskResult(changed=False), {"outcome": "skipped"}),
        (
            NodeFailure("kubeadm join ended with 1", node="worker-1"),
            {"outcome": "failed", "code": "mgmt-driver-failed", "reason": "node worker-1: kubeadm join ended with 1"},
        ),
        (ZeroDivisionError(), {"outcome": "failed", "code": "internal-error"}),
        (asyncio.CancelledError(), {"outcome": "cancelled"}),
    ],
    ids=["done", "skipped", "failed", "broke", "cancelled"],
)
async def test_a_task_is_two_lines_in_the_context_of_its_request(
    answer: TaskResult | BaseException, expected: dict[str, str], tmp_path: Path
) -> None:
    async def work(_: Earlier | None) -> TaskResult:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def publish(_: TaskProgressed) -> None:
        """No one watches."""

    async with SqliteStore.open(tmp_path / "journal.db") as store:
        recorder = Recorder(
            StoredJournal(store, SystemClock()), Claim("op-1", "m-1", 1), vnf_instance_id="vnf-1", publish=publish
        )
        with capture_logs([merge_contextvars]) as lines, bound_contextvars(request_id="r-1", operation_id="op-1"):
            if isinstance(answer, BaseException):
                with pytest.raises(type(answer)):
                    await recorder.perform(NODE, "join", work)
            else:
                await recorder.perform(NODE, "join", work)
    facts = {
        "log_level": "info", "request_id": "r-1", "operation_id": "op-1", "node": "worker-1", "task": "join",
    }  # fmt: skip
    begun, ended = lines
    assert begun == {"event": "task_begun", **facts}
    assert ended.pop("duration_s") >= 0
    assert ended == {"event": "task_ended", **facts, **expected}
