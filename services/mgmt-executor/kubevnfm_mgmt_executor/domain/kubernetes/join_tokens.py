"""Bootstrap tokens for the joins of one phase: short-lived, never in the journal, revoked after the joins."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from kubevnfm_secrets import Mask

from kubevnfm_mgmt_executor.domain.kubernetes.answers import TokenAnswer
from kubevnfm_mgmt_executor.domain.node_session import NodeSession, ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, Recorder, TaskResult

# kubeadm's default is 24 hours. A token lets any machine that reaches the API join, so it lives no longer than the
# joins of a phase usually take; `token` replaces it if they take longer.
TOKEN_TTL_S: Final = 900


class JoinTokens:
    """Makes a token when the first join needs one, replaces it before it expires, and revokes all that it made."""

    def __init__(
        self, master: NodeSession, recorder: Recorder, mask: Mask, *, timeout_s: float, values: Mapping[str, str]
    ) -> None:
        """``values``: the parameters that every task of the script has."""
        self._master, self._recorder, self._mask = master, recorder, mask
        self._node = NodeId(master.address.vnfc_id, master.address.node)
        self._timeout_s, self._values = timeout_s, values
        self._making = asyncio.Lock()
        self._made: list[str] = []
        self._made_at = 0.0

    async def token(self) -> str:
        """Return a token with at least half of its life left."""
        # Workers join side by side: without the lock, each would make a token of its own.
        async with self._making:
            if not self._made or time.monotonic() - self._made_at > TOKEN_TTL_S / 2:
                # Not counted: the plan's total is published before it is known whether any node needs a token.
                await self._recorder.perform(self._node, "token", self._make, counted=False)
            return self._made[-1]

    async def _make(self, _: Earlier | None) -> TaskResult:
        answer = await self._master.run_script(
            "token",
            {**self._values, "TOKEN_TTL_S": str(TOKEN_TTL_S)},
            timeout_s=self._timeout_s,
            answer=TokenAnswer,
        )
        # Before the token is handed out: from then on, the output of joins may contain it.
        self._mask.add(answer.token)
        self._made.append(answer.token)
        self._made_at = time.monotonic()
        return TaskResult()

    async def revoke(self) -> None:
        """Delete the tokens that were made."""
        if self._made:
            await self._recorder.perform(self._node, "revoke", self._revoke, counted=False)

    async def _revoke(self, _: Earlier | None) -> TaskResult:
        while self._made:
            await self._master.run_script(
                "revoke",
                # The part before the dot is the token's public id, and kubeadm deletes by it: the secret part is not
                # sent again.
                {**self._values, "TOKEN_ID": self._made[-1].partition(".")[0]},
                timeout_s=self._timeout_s,
                answer=ScriptAnswer,
            )
            # One by one: if the session breaks, a second call continues with the tokens that are left.
            self._made.pop()
        return TaskResult()
