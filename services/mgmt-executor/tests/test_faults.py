"""Faults of machines: each is reported with node and task, and a retry goes on at that node alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from clusters.running_clusters import of_phase
from kubevnfm_mgmt_executor.domain.errors import LoginRefused, NodeFailure, NodeUnreachable
from worlds.mgmt_lab import MgmtLab

LIMITS = {"ssh_ready": 3, "node_install": 60, "command": 3, "node_ready": 20}
FULL = "cannot copy extracted data for './usr/bin/kubelet': failed to write (No space left on device)"


@pytest.mark.slow
async def test_what_is_wrong_with_a_node_is_named_and_a_retry_goes_on_there(lab: MgmtLab) -> None:
    """SEQ-045: a wrong login, a full disk, a machine that vanishes in its join, a node that hangs in its drain."""
    nodes = await lab.boot_cluster(workers=1)
    master, worker = nodes
    right: dict[str, Any] = {"x_timeouts": LIMITS}
    command = lab.command(nodes, changes=right)

    with pytest.raises(LoginRefused) as refused:
        await lab.run(lab.command(nodes, changes={**right, "worker_node": {"password": "other"}}))
    assert (refused.value.node, refused.value.task) == ("worker20", "reach")

    name = lab.machine(worker).name
    lab.faults.add(part="program", verb="apt-get install", node=name, status=100, message=FULL, times=1)
    with pytest.raises(NodeFailure) as full:
        await lab.run(command, message="m-2")
    assert (full.value.node, full.value.task) == ("worker20", "prepare")
    assert "No space left on device" in str(full.value)

    held = lab.faults.add(part="program", verb="kubeadm join", effect="hang")
    work = asyncio.create_task(lab.run(command, message="m-3"))
    await lab.running(worker, "kubeadm join")
    await lab.machines.stop(worker.server_id)
    with pytest.raises(NodeUnreachable) as gone:
        await work
    assert (gone.value.node, gone.value.task) == ("worker20", "join")
    lab.faults.remove(held.fault_id)
    await lab.machines.start(worker.server_id)

    done = await lab.run(command, message="m-4")
    assert done.cluster is not None
    await lab.assert_ready(done.cluster, ["master10", "worker20"])
    assert (lab.calls(master, "kubeadm init"), lab.calls(master, "apt-get install")) == (1, 1)

    named = [node.model_copy(update={"name": done.node_names[node.vnfc_id]}) for node in nodes]
    held = lab.faults.add(part="program", verb="kubectl drain", effect="hang")
    leaving = of_phase(lab, "scale_start", named, named[1:], **right)
    with pytest.raises(NodeFailure) as hangs:
        await lab.run(leaving, operation="op-2")
    assert (hangs.value.node, hangs.value.task) == ("worker20", "drain")
    lab.faults.remove(held.fault_id)
    await lab.run(leaving, operation="op-2", message="m-6")
    await lab.assert_ready(done.cluster, ["master10"])
