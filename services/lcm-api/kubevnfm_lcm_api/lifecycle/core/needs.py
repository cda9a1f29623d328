"""Protocols: what steps need of an operation's draft, and how they add to it. mypy checks each plan against them."""

from __future__ import annotations

from typing import Protocol

from kubevnfm_events import VimConnection


class NeedsInstance(Protocol):
    """Any operation."""

    @property
    def vnf_instance_id(self) -> str: ...


class NeedsVim(NeedsInstance, Protocol):
    """An operation with resources on a VIM."""

    @property
    def vim(self) -> VimConnection: ...


class NeedsStackName(NeedsVim, Protocol):
    """An operation on one Heat stack."""

    @property
    def stack_name(self) -> str: ...
