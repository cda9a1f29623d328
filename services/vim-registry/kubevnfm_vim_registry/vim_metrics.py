"""VIMs in the metrics: whether each answers, and when its access data end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kubevnfm_events.vim import VimStatus
from kubevnfm_kit.metrics import Metrics

from kubevnfm_vim_registry.domain.record import VimRecord


class VimMetrics:
    """The VIMs as this process has checked them last; each replica checks all."""

    def __init__(self, metrics: Metrics) -> None:
        self._up = metrics.gauge(
            "kubevnfm_vim_up", "1 if the VIM answers and accepts its access data.", ["vim_id", "type"]
        )
        self._ends = metrics.gauge(
            "kubevnfm_vim_credentials_end_seconds", "When access data of a VIM end, since 1970.", ["vim_id"]
        )
        self._status: dict[str, VimStatus] = {}
        self._end_of: dict[str, datetime] = {}

    def checked(self, vim_id: str, status: VimStatus, ends: datetime | None) -> None:
        """Note the result of a check; ``ends``: of its access data, if that is known."""
        self._status[vim_id] = status
        if ends is None:
            self._end_of.pop(vim_id, None)
        else:
            self._end_of[vim_id] = ends

    def show(self, vims: Sequence[VimRecord]) -> None:
        """Show these VIMs, and no others."""
        ids = {vim.id for vim in vims}
        for known in (self._status, self._end_of):
            _keep(known, ids)
        self._up.show({(vim.id, vim.type): self._status[vim.id] == "ACTIVE" for vim in vims if vim.id in self._status})
        self._ends.show({(vim_id,): end.timestamp() for vim_id, end in self._end_of.items()})


def _keep(known: dict[str, VimStatus] | dict[str, datetime], ids: set[str]) -> None:
    for gone in known.keys() - ids:
        del known[gone]
