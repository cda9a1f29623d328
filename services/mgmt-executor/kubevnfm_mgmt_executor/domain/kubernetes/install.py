"""``instantiate_end`` of a cluster: the plan, and what each of its tasks does (sequences.md 1.10)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.clock import Clock
from kubevnfm_kit.errors import VnfmError
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.certificates import public_key_hash
from kubevnfm_mgmt_executor.domain.driver import PhaseResult, Tools
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.graph import Task, run_graph
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.join_tokens import JoinTokens
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles
from kubevnfm_mgmt_executor.domain.kubernetes.request import ClusterRequest
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptFiles
from kubevnfm_mgmt_executor.domain.ports import Address, Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

NodeWork = Callable[[ManagedNode, Earlier | None], Awaitable[TaskResult]]


class ClusterInstall:
    """One run of the plan. Nothing of it outlives the run: what a repeat needs, it asks the machines."""

    def __init__(self, cluster: ClusterRequest, files: InstallFiles, tools: Tools, *, clock: Clock) -> None:
        self._cluster, self._files, self._tools = cluster, files, tools
        self._timeouts = cluster.parameters.x_timeouts
        self._labels = values.labels(cluster)
        self._sessions = {node.vnfc_id: self._session(node, clock) for node in cluster.nodes}
        self._master = self._sessions[cluster.master.vnfc_id]
        self._tokens = JoinTokens(self._master, cluster, tools)
        self._ca_pem = ""
        self._ca_cert_hash = ""
        self._admin_token = ""
        self._certificate_key = ""
        self._version = ""

    def _session(self, node: ManagedNode, clock: Clock) -> NodeSession:
        instance = self._cluster.vnf_instance_id
        return NodeSession(
            Address(self._cluster.name(node), instance, node.vnfc_id, node.ssh_address),
            self._cluster.parameters.login(node.role),
            ScriptFiles(f".kubevnfm/{instance[:8]}", values.SCRIPT_FILE),
            machines=self._tools.machines,
            output_log=self._tools.output_log,
            mask=self._tools.mask,
            clock=clock,
            operation_id=self._tools.operation_id,
            ready_within_s=self._timeouts.ssh_ready,
        )

    def plan(self) -> Sequence[Task]:
        """Return the tasks: all machines at once, the master's init waiting for the master alone."""
        master, workers = self._cluster.master, self._cluster.workers
        m = self._cluster.name(master)
        joined = [("join", self._cluster.name(node)) for node in workers]
        tasks: list[Task] = []
        for node in self._cluster.nodes:
            tasks += [
                self._task("reach", node, self._reach),
                self._task("copy", node, self._copy, after=[("reach", self._cluster.name(node))]),
                self._task(
                    "prepare",
                    node,
                    self._prepare,
                    after=[("copy", self._cluster.name(node))],
                    takes_slot=node is not master,  # all the others wait for the master
                ),
            ]
        tasks += [
            self._task("init", master, self._init, after=[("prepare", m)]),
            self._task("network", master, self._network, after=[("init", m)]),
            self._task("admin", master, self._admin, after=[("init", m)]),
        ]
        for node in workers:
            after = [("prepare", self._cluster.name(node)), ("init", m)]
            tasks.append(self._task("join", node, self._join, after=after, takes_slot=True))
        tasks += [
            self._task("label", master, self._label, after=[("init", m), *joined]),
            self._task("verify", master, self._verify, after=[("network", m), ("label", m)]),
        ]
        return tasks

    def _task(
        self,
        name: str,
        node: ManagedNode,
        work: NodeWork,
        *,
        after: Sequence[tuple[str, str]] = (),
        takes_slot: bool = False,
    ) -> Task:
        node_id = NodeId(node.vnfc_id, self._cluster.name(node))

        async def perform() -> None:
            async def on_node(earlier: Earlier | None) -> TaskResult:
                return await work(node, earlier)

            await self._tools.recorder.perform(node_id, name, on_node)

        return Task(name, node_id.name, perform, after, takes_slot)

    async def run(self) -> PhaseResult:
        """Run the plan; return how to reach the cluster."""
        tasks = self.plan()
        self._tools.recorder.total = len(tasks)
        try:
            await run_graph(tasks, slots=self._cluster.parameters.x_max_parallel_nodes)
            await self._tokens.revoke()
        except asyncio.CancelledError:
            # Another worker may be at it already: the folders are its own now.
            await self._close(clean=False)
            raise
        except BaseException:
            await self._tools.recorder.tell_cancelled()
            with suppress(VnfmError):  # they end by themselves soon, and the first error is the one to tell
                await self._tokens.revoke()
            await self._close(clean=True)
            raise
        await self._close(clean=True)
        return PhaseResult(cluster=self._access(), node_names=self._cluster.name_by_vnfc)

    async def _close(self, *, clean: bool) -> None:
        sessions = self._sessions.values()
        if clean:
            await asyncio.gather(*(session.clean() for session in sessions))
        await asyncio.gather(*(session.close() for session in sessions))

    def _access(self) -> ClusterAccess:
        return ClusterAccess(
            server=self._cluster.server,
            bearer_token=Secret(self._admin_token),
            ssl_ca_cert=self._ca_pem,
            ssl_ca_cert_hash=self._ca_cert_hash,
            certificate_key=Secret(self._certificate_key),
            kubernetes_version=self._version,
        )

    # ---- the tasks: each may find its work done already

    async def _reach(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        await self._sessions[node.vnfc_id].reach()
        return TaskResult()

    async def _copy(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        files = {values.SCRIPT_FILE: self._files.script}
        if node is self._cluster.master:
            files[values.CNI_FILE] = self._files.network_manifest
        await self._sessions[node.vnfc_id].copy(files)
        return TaskResult()

    async def _prepare(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        answer = await self._sessions[node.vnfc_id].run_script(
            "prepare", values.prepare(self._cluster, node), timeout_s=self._timeouts.node_install
        )
        return _result(answer, "kubernetes_version")

    async def _init(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        answer = await self._master.run_script(
            "init", values.init(self._cluster), timeout_s=self._timeouts.node_install
        )
        self._ca_pem = str(answer.get("ca_cert", "")).strip() + "\n"
        try:
            self._ca_cert_hash = public_key_hash(self._ca_pem)
        except ValueError as error:
            raise NodeFailure("ca.crt is no certificate in PEM form", node=self._cluster.name(node)) from error
        return TaskResult(changed=bool(answer.get("changed")), facts={"ca_cert_hash": self._ca_cert_hash})

    async def _network(self, _: ManagedNode, __: Earlier | None) -> TaskResult:
        rollouts = len(self._files.network_workloads) * self._timeouts.node_ready
        answer = await self._master.run_script(
            "network", values.network(self._cluster, self._files), timeout_s=self._timeouts.command + rollouts
        )
        return _result(answer)

    async def _admin(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        self._certificate_key = secrets.token_hex(32)
        self._tools.mask.add(self._certificate_key)
        answer = await self._master.run_script(
            "admin",
            {**values.init(self._cluster), "CERTIFICATE_KEY": self._certificate_key},
            timeout_s=2 * self._timeouts.command + self._timeouts.node_ready,
        )
        try:
            self._admin_token = base64.b64decode(str(answer.get("token_base64", "")), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise NodeFailure("the admin token is no base64 text", node=self._cluster.name(node)) from error
        if not self._admin_token:
            raise NodeFailure("the install script gave no admin token", node=self._cluster.name(node))
        self._tools.mask.add(self._admin_token)
        return _result(answer)

    async def _join(self, node: ManagedNode, earlier: Earlier | None) -> TaskResult:
        session = self._sessions[node.vnfc_id]
        if earlier is not None:  # begun before: look first, a node that has joined needs no token
            answer = await session.run_script(
                "join",
                values.join(self._cluster, node, ca_cert_hash=self._ca_cert_hash, token=""),
                timeout_s=self._timeouts.command,
            )
            if answer.get("joined") is True:
                return _result(answer)
        token = await self._tokens.token()
        answer = await session.run_script(
            "join",
            values.join(self._cluster, node, ca_cert_hash=self._ca_cert_hash, token=token),
            timeout_s=self._timeouts.node_install,
        )
        return _result(answer)

    async def _label(self, _: ManagedNode, __: Earlier | None) -> TaskResult:
        if not self._labels["LABELS"]:
            return TaskResult(changed=False)
        timeout_s = self._timeouts.command + self._timeouts.node_ready
        return _result(await self._master.run_script("label", self._labels, timeout_s=timeout_s))

    async def _verify(self, node: ManagedNode, _: Earlier | None) -> TaskResult:
        answer = await self._master.run_script(
            "verify", values.verify(self._cluster), timeout_s=self._timeouts.command + 3 * self._timeouts.node_ready
        )
        items = answer.get("nodes", {}).get("items", [])
        found = {item["metadata"]["name"]: item for item in items}
        unready = [name for name in self._cluster.name_by_vnfc.values() if not _is_ready(found.get(name))]
        if unready:
            raise NodeFailure(f"not Ready: {', '.join(sorted(unready))}", node=self._cluster.name(node))
        self._version = found[self._cluster.name(node)]["status"].get("nodeInfo", {}).get("kubeletVersion", "")
        uids = {vnfc_id: found[name]["metadata"].get("uid", "") for vnfc_id, name in self._cluster.name_by_vnfc.items()}
        return TaskResult(facts={"node_uids": uids, "kubernetes_version": self._version})


def _result(answer: Mapping[str, Any], *facts: str) -> TaskResult:
    return TaskResult(
        changed=bool(answer.get("changed")), facts={name: answer[name] for name in facts if name in answer}
    )


def _is_ready(node: Mapping[str, Any] | None) -> bool:
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
