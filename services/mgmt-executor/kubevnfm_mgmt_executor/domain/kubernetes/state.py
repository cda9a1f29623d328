"""One run of a phase on a cluster: its sessions, and the facts that its tasks learn from the machines."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_events.mgmt import ManagedNode

from kubevnfm_mgmt_executor.domain.certificates import public_key_hash
from kubevnfm_mgmt_executor.domain.driver import Tools
from kubevnfm_mgmt_executor.domain.errors import NodeFailure
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.built import BuiltCluster
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.join_tokens import JoinTokens
from kubevnfm_mgmt_executor.domain.kubernetes.package import InstallFiles
from kubevnfm_mgmt_executor.domain.node_session import NodeSession

HEAD_START_S: Final = 5.0
"""How long a master is waited for while another one answers already: the first that answers is used also by a retry."""


def _succeeded(one: asyncio.Future[None]) -> bool:
    return one.done() and not one.cancelled() and one.exception() is None


@dataclass
class Learned:
    """The facts that later tasks and the phase's result need. Each is empty until its task is done."""

    ca_pem: str = ""
    ca_cert_hash: str = ""
    admin_token: str = field(default="", repr=False)
    certificate_key: str = field(default="", repr=False)
    version: str = ""
    built: BuiltCluster | None = None
    """The cluster's own configuration; None: it is being built."""
    not_ready: frozenset[str] = frozenset()
    """The names of the Nodes that were not Ready."""
    is_cordoned: bool = False
    """Whether nodes may have been cordoned."""


class ClusterRun:
    """The state that node tasks share. Nothing of it outlives the run: a repeat asks the machines instead."""

    def __init__(self, cluster: Cluster, files: InstallFiles, tools: Tools) -> None:
        self.cluster, self.files, self.tools = cluster, files, tools
        self.timeouts = cluster.parameters.x_timeouts
        self.labels = values.labels(cluster)
        self.learned = Learned()
        self.silent: Sequence[ManagedNode] = ()
        """The masters that had not answered when one was chosen."""
        self._answering: Sequence[ManagedNode] = ()
        """Those that had, in the order in which they are used."""
        self._sessions = {node.vnfc_id: self._new_session(node) for node in cluster.machines}
        self._work_through(cluster.master)

    def _work_through(self, master: ManagedNode) -> None:
        self.cluster = self.cluster.through(master)
        self.master = self.session(master)
        self.tokens = JoinTokens(
            self.master,
            self.tools.recorder,
            self.tools.mask,
            timeout_s=self.timeouts.command,
            values=values.common(self.cluster),
        )

    async def find_master(self, masters: Sequence[ManagedNode]) -> None:
        """Work through the first of these masters that can be logged in to. Raises as the first one does if none can.

        All are asked at the same time; one that is down does not hold the others up for longer than ``HEAD_START_S``.
        """
        if len(masters) == 1:
            self._work_through(masters[0])
            return
        tries = {one.vnfc_id: asyncio.ensure_future(self.session(one).reach()) for one in masters}
        try:
            _, waiting = await asyncio.wait(tries.values(), timeout=HEAD_START_S)
            while waiting and not any(_succeeded(one) for one in tries.values()):
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in tries.values():
                one.cancel()
            await asyncio.gather(*tries.values(), return_exceptions=True)
        answering = [one for one in masters if _succeeded(tries[one.vnfc_id])]
        if not answering:
            tries[masters[0].vnfc_id].result()
        self.silent = [one for one in masters if one not in answering]
        self._answering = answering
        self._work_through(answering[0])

    def take_out(self, master: ManagedNode) -> None:
        """Work on the cluster as this master leaves it, through another one. Raises NodeFailure if no other answers."""
        through = next((one for one in self._answering if one is not master), None)
        if through is None:
            name = self.cluster.name(master)
            raise NodeFailure(f"no other master answers, through which {name} could be taken out", node=name)
        self.cluster = self.cluster.without(master)
        self._work_through(through)

    def session(self, node: ManagedNode) -> NodeSession:
        """Return the session of a node; it is opened when a task first uses it."""
        return self._sessions[node.vnfc_id]

    def certificate_key(self) -> str:
        """Return the key that the control plane's certificates are encrypted with whenever this run uploads them.

        32 bytes in hexadecimal (AES-256). One for the run, because uploads side by side overwrite one another.
        """
        if not self.learned.certificate_key:
            self.learned.certificate_key = secrets.token_hex(32)
            self.tools.mask.add(self.learned.certificate_key)
        return self.learned.certificate_key

    def learn_ca(self, pem: str) -> None:
        """Keep the cluster's CA. Raises NodeFailure."""
        # The script reads the file with $(<file), which drops the line end that a PEM file ends with.
        self.learned.ca_pem = pem.strip() + "\n"
        try:
            self.learned.ca_cert_hash = public_key_hash(self.learned.ca_pem)
        except ValueError as error:
            raise NodeFailure("ca.crt is not a certificate in PEM form", node=self.master.address.node) from error

    def as_built(self, given: Mapping[str, str]) -> Mapping[str, str]:
        """Return a task's parameters with the facts of a cluster that exists in place of those of the request."""
        built = self.learned.built
        if built is None:
            return given
        facts = {"KUBERNETES_VERSION": built.version, "ENDPOINT": built.endpoint}
        return {**given, **{name: value for name, value in facts.items() if name in given}}

    def _new_session(self, node: ManagedNode) -> NodeSession:
        return self.tools.session(
            self.cluster.ssh_address(node),
            self.cluster.login(node),
            values.SCRIPT_FILE,
            # A worker that the phase only informs has booted long ago.
            ready_within_s=min(self.timeouts.ssh_ready, self.timeouts.command)
            if node in self.cluster.others
            else self.timeouts.ssh_ready,
        )

    async def close(self, *, clean: bool) -> None:
        """Close the sessions; ``clean``: remove the folders on the machines first."""
        sessions = self._sessions.values()
        if clean:
            await asyncio.gather(*(session.clean() for session in sessions))
        await asyncio.gather(*(session.close() for session in sessions))
