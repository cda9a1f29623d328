"""Bootstrap tokens for the joins of one phase: short-lived, never journaled, revoked when all have joined."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from kubevnfm_mgmt_executor.domain.driver import Tools
from kubevnfm_mgmt_executor.domain.kubernetes import values
from kubevnfm_mgmt_executor.domain.kubernetes.request import ClusterRequest
from kubevnfm_mgmt_executor.domain.node_session import NodeSession
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

TOKEN_TTL_S: Final = 900


class JoinTokens:
    """Makes a bootstrap token when the first join needs one, a new one before it gets old, and revokes them."""

    def __init__(self, master: NodeSession, cluster: ClusterRequest, tools: Tools) -> None:
        self._master, self._cluster, self._tools = master, cluster, tools
        self._node = NodeId(cluster.master.vnfc_id, cluster.name(cluster.master))
        self._making = asyncio.Lock()
        self._made: list[str] = []
        self._made_at = 0.0

    async def token(self) -> str:
        """Return a token with at least half of its life left."""
        async with self._making:
            if not self._made or time.monotonic() - self._made_at > TOKEN_TTL_S / 2:
                await self._tools.recorder.perform(self._node, "token", self._make, counted=False)
            return self._made[-1]

    async def _make(self, _: Earlier | None) -> TaskResult:
        told = {**values.common(self._cluster), "TOKEN_TTL_S": str(TOKEN_TTL_S)}
        answer = await self._master.run_script("token", told, timeout_s=self._cluster.parameters.x_timeouts.command)
        token = str(answer.get("token", ""))
        self._tools.mask.add(token)
        self._made.append(token)
        self._made_at = time.monotonic()
        return TaskResult()

    async def revoke(self) -> None:
        """Delete the tokens that were made."""
        if self._made:
            await self._tools.recorder.perform(self._node, "revoke", self._revoke, counted=False)

    async def _revoke(self, _: Earlier | None) -> TaskResult:
        while self._made:
            told = {**values.common(self._cluster), "TOKEN_ID": self._made[-1].partition(".")[0]}
            await self._master.run_script("revoke", told, timeout_s=self._cluster.parameters.x_timeouts.command)
            self._made.pop()
        return TaskResult()
