"""The output of machines in the store's collection ``node_logs``: one document a command, masked and shortened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from kubevnfm_kit.ids import new_id
from kubevnfm_store.port import DocumentStore
from kubevnfm_store.query import Index, Query, Sort, by

from kubevnfm_mgmt_executor.domain.ports import CommandOutput

NODE_LOGS: Final = "node_logs"
INDEXES: Final = (Index(["operationId", "startedAt"]), Index(["vnfInstanceId"]))
PAGE: Final = 20
"""Documents in one read; each may have 256 kB."""


class StoredOutputLog:
    """Stores output and returns it as text."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    async def keep(self, output: CommandOutput) -> None:
        body = {
            "vnfInstanceId": output.vnf_instance_id,
            "operationId": output.operation_id,
            "node": output.node,
            "task": output.task,
            "startedAt": output.started_at,
            "durationS": output.duration_s,
            "exitCode": output.exit_code,
            "text": output.text,
        }
        # A new id for each run: the output of a failed try explains the repeat, so the repeat does not replace it.
        await self._store.insert(NODE_LOGS, new_id(), body)

    async def log(self, operation_id: str, *, node: str | None = None) -> AsyncIterator[bytes]:
        """The commands are in the order in which they were started."""
        wanted = by(operationId=operation_id) if node is None else by(operationId=operation_id, node=node)
        after: tuple[str, str] | None = None
        while True:
            page = await self._store.find(NODE_LOGS, Query(wanted, sort=Sort("startedAt"), after=after, limit=PAGE))
            for stored in page:
                body = stored.body
                how = "killed" if body["exitCode"] is None else f"exit code {body['exitCode']}"
                head = f"== {body['startedAt']} {body['node']} {body['task']}: {how}, {body['durationS']} s\n"
                yield f"{head}{body['text']}\n".encode()
            if len(page) < PAGE:
                return
            # By value, not by offset: commands still running add documents while the log is read. Commands on several
            # nodes can start in the same moment, so the id is a part of the position.
            after = (str(page[-1].body["startedAt"]), page[-1].id)

    async def forget(self, vnf_instance_id: str) -> None:
        await self._store.delete_many(NODE_LOGS, by(vnfInstanceId=vnf_instance_id))
