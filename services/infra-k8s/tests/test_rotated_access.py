"""Access data of a VIM that an operator changes after a failure."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events import VimConnection
from kubevnfm_infra_k8s.domain.errors import AccessRefused
from kubevnfm_secrets import Secret


class Rotating:
    """A VIM directory that keeps the token it has read until it is asked to forget it."""

    def __init__(self, vim: VimConnection) -> None:
        self.stored = self._kept = vim

    async def connection(self, vim: VimConnection) -> VimConnection:
        return self._kept

    def forget(self, vim: VimConnection) -> None:
        """Read the registry at the next call."""
        self._kept = self.stored


async def test_a_retry_after_refused_access_data_uses_the_new_ones(site: Any, make: Any) -> None:
    vims = Rotating(site.vim.model_copy(update={"access_info": {"bearer_token": Secret("revoked")}}))
    rotated = site.with_changes(vims=vims)
    files = {"Files/a.yaml": make("ConfigMap", "pages")}
    # As an operator does after the refusal, and before the retry.
    vims.stored = site.vim
    with pytest.raises(AccessRefused):
        await rotated.apply(files)
    assert (await rotated.apply(files, attempt=2)).objects
