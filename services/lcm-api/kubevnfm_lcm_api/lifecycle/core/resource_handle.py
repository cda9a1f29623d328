"""How SOL003 refers to a resource of a VIM."""

from __future__ import annotations

from kubevnfm_sol.resources import ResourceHandle


def handle(resource_id: str, vim_key: str, level_type: str) -> ResourceHandle:
    """Return the reference; ``level_type``: the type by which the VIM knows it."""
    return ResourceHandle(resource_id=resource_id, vim_connection_id=vim_key, vim_level_resource_type=level_type)
