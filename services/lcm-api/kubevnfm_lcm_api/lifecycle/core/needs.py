"""Protocols: what steps need of an operation's draft, and how they add to it. mypy checks each plan against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from kubevnfm_events import PackageRef, VimConnection
from kubevnfm_events.infra import StackResources, UserData, Variables, VduTarget
from kubevnfm_secrets import SecretParams

from kubevnfm_lcm_api.lifecycle.core.draft import Draft


class NeedsInstance(Protocol):
    """Any operation."""

    @property
    def vnf_instance_id(self) -> str: ...


class NeedsVim(NeedsInstance, Protocol):
    """An operation with resources on a VIM."""

    @property
    def vim(self) -> VimConnection: ...


class NeedsObjects(NeedsVim, Protocol):
    """An operation on Kubernetes objects that exist and that manifests of a package describe."""

    @property
    def package(self) -> PackageRef: ...

    @property
    def def_files(self) -> tuple[str, ...]: ...

    @property
    def namespace(self) -> str: ...

    @property
    def multi_namespace(self) -> bool: ...

    @property
    def vdus(self) -> tuple[VduTarget, ...]: ...

    @property
    def variables(self) -> Variables | None: ...


class NeedsStackName(NeedsVim, Protocol):
    """An operation on one Heat stack."""

    @property
    def stack_name(self) -> str: ...


class NeedsStack(NeedsStackName, Protocol):
    """An operation that creates or changes a stack, with all facts that user data receive."""

    @property
    def package(self) -> PackageRef: ...

    @property
    def flavour_id(self) -> str: ...

    @property
    def instantiation_level_id(self) -> str | None: ...

    @property
    def api_version(self) -> Literal["v1", "v2"]: ...

    @property
    def request(self) -> SecretParams: ...

    @property
    def grant(self) -> SecretParams: ...

    @property
    def grant_request(self) -> SecretParams: ...

    @property
    def instance(self) -> SecretParams: ...

    @property
    def user_data(self) -> UserData | None: ...

    def with_resources(self, resources: StackResources | None) -> Draft:
        """Return the draft with what the stack holds now; None: it holds nothing."""
        ...


class NeedsStackBefore(NeedsStack, Protocol):
    """An operation on a stack that exists."""

    @property
    def counts(self) -> Mapping[str, int]: ...

    @property
    def connections(self) -> SecretParams: ...

    @property
    def staying(self) -> tuple[str, ...]: ...

    def restored(self, resources: StackResources) -> Draft:
        """Return the draft after the stack was restored."""
        ...
