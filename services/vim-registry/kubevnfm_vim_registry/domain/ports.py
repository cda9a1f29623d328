"""What the registry needs of the VIMs, and how they fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError

from kubevnfm_vim_registry.domain.vim import Vim


class VimUnavailable(OutsideUnavailable):
    """The VIM does not answer."""

    code = "vim-unavailable"
    title = "VIM unavailable"


class VimRefused(VnfmError):
    """The VIM answers and does not let us in."""

    code = "vim-refused"
    title = "VIM refused"
    status = 400


class VimTooOld(VnfmError):
    """The cluster's Kubernetes is older than v1.25 (capi.md CR-001)."""

    code = "vim-too-old"
    title = "Kubernetes too old"
    status = 422


@dataclass(frozen=True)
class Found:
    """What a VIM told of itself."""

    regions: tuple[str, ...]
    """OpenStack: regions; Kubernetes: namespaces (``placement_attr.regions`` of existing clients)."""
    version: str = ""


class VimProbe(Protocol):
    """Connects to VIMs of one kind."""

    async def look(self, vim: Vim) -> Found:
        """Log in and read. Raises VimUnavailable, VimRefused, VimTooOld."""
        ...

    async def answers(self, vim: Vim) -> None:
        """Make one light call. Raises VimUnavailable, VimRefused."""
        ...
