"""Deletes servers before a change of their stack, and waits until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

import structlog

from kubevnfm_infra_openstack.domain.ports import POLL_PAUSES_S, ServerPort

log = structlog.get_logger()

STOPS_WITHIN_S: Final = 120.0
"""How long a server may take to stop before it is deleted; Nova gives its system 60 s by default. The host of a machine that
is broken may not answer at all."""


async def are_removed(servers: ServerPort, ids: Collection[str], *, stopped_first: Collection[str]) -> bool:
    """Delete the servers; return whether all are gone, after two seconds at most.

    ``stopped_first``: those that write to volumes which stay, so that all data are written. Raises ServerNotOperable.
    """
    begun: set[tuple[str, str]] = set()
    for pause_s in POLL_PAUSES_S:
        await asyncio.sleep(pause_s)
        statuses = await servers.statuses(list(ids))
        if not statuses:
            return True
        for server_id, status in statuses.items():
            is_running = status == "ACTIVE" and server_id in stopped_first
            # Once in a call: Nova needs a moment to show the new state, and rejects an action until then.
            if (server_id, status) in begun:
                continue
            begun.add((server_id, status))
            if is_running:
                await servers.stop(server_id)
            elif status == "SOFT_DELETED":
                await servers.delete_finally(server_id)
            else:
                await servers.delete(server_id)
                log.info("server_deleted_first", server_id=server_id)
    return False
