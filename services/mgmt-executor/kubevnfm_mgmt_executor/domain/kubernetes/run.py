"""Runs a plan on a cluster's machines: each task under the journal, then the machines are cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from kubevnfm_events.common import ClusterAccess
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.driver import PhaseResult
from kubevnfm_mgmt_executor.domain.graph import Task, run_graph
from kubevnfm_mgmt_executor.domain.kubernetes.plans import Plan, PlannedTask
from kubevnfm_mgmt_executor.domain.kubernetes.state import ClusterRun
from kubevnfm_mgmt_executor.domain.kubernetes.tasks import TASKS
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

ResultFunction = Callable[[ClusterRun], PhaseResult]


async def run_plan(plan: Plan, run: ClusterRun) -> None:
    """Run every task of the plan in its order. Raises the first task's error; the other tasks are then cancelled."""
    tasks = [_bound(planned, run) for planned in plan.tasks]
    run.tools.recorder.total = len(tasks)
    try:
        await run_graph(tasks, slots=run.cluster.parameters.x_max_parallel_nodes)
        await run.tokens.revoke()
    except asyncio.CancelledError:
        # Another worker may have taken the command over. The folders on the machines are then in its use.
        await run.close(clean=False)
        raise
    except BaseException:
        # Published before the cleaning up, which may wait for machines that no longer answer.
        await run.tools.recorder.report_cancelled()
        with suppress(VnfmError):  # tokens expire within minutes, and the error to report is that of the task
            await run.tokens.revoke()
        await run.close(clean=True)
        raise
    await run.close(clean=True)


def _bound(planned: PlannedTask, run: ClusterRun) -> Task:
    node, work = planned.node, TASKS[planned.name]
    node_id = NodeId(node.vnfc_id, run.cluster.name(node))

    async def perform() -> None:
        async def on_node(earlier: Earlier | None) -> TaskResult:
            return await work(run, node, earlier)

        await run.tools.recorder.perform(node_id, planned.name, on_node)

    return Task(planned.name, node_id.name, perform, planned.after, planned.takes_slot)


def cluster_access(run: ClusterRun) -> PhaseResult:
    """Return how to reach the cluster, once ``init``, ``admin`` and ``verify`` are done."""
    learned = run.learned
    access = ClusterAccess(
        server=run.cluster.server,
        bearer_token=Secret(learned.admin_token),
        ssl_ca_cert=learned.ca_pem,
        ssl_ca_cert_hash=learned.ca_cert_hash,
        certificate_key=Secret(learned.certificate_key),
        kubernetes_version=learned.version,
    )
    return PhaseResult(cluster=access, node_names=run.cluster.name_by_vnfc)
