"""A VIM directory for commands that carry the complete connection."""

from __future__ import annotations

from kubevnfm_events import VimConnection


class GivenVims:
    """`kubevnfm_clients.ports.VimDirectory`: returns VIM connections unchanged."""

    async def connection(self, vim: VimConnection) -> VimConnection:
        """Return the connection itself."""
        return vim

    def forget(self, vim: VimConnection) -> None:
        """Nothing is kept."""
