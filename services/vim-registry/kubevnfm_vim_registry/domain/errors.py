"""The errors of VIMs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, PlacedError, TimedOut, Unprocessable

_MOST_NAMED: Final = 100


def named(users: Sequence[str]) -> str:
    """Return the ids of the first users: a VIM can have thousands."""
    more = f" and {len(users) - _MOST_NAMED} more" if len(users) > _MOST_NAMED else ""
    return f"{', '.join(users[:_MOST_NAMED])}{more}"


class VimUnknown(NotFound, code="vim-unknown", title="VIM not found"):
    """No VIM has this id."""


class VimUnauthorized(
    PlacedError,
    code="vim-unauthorized",
    title="Unauthorized for VIM",
    status=400,
    template="unauthorized for VIM {place}: {reason}",
):
    """The VIM rejects the access data."""


class VimRefused(PlacedError, code="vim-refused", title="VIM refused", status=400, template="VIM {place}: {reason}"):
    """The VIM answers, but is not usable: it lacks the API, or its certificate is not trusted."""


class VimTokenRefused(VimRefused, code="vim-token-refused", title="VIM refused a token"):
    """The VIM gives no token of the ServiceAccount that is named."""


class VimUnreachable(
    PlacedError,
    OutsideUnavailable,
    code="vim-unreachable",
    title="VIM unavailable",
    template="VIM {place} does not answer: {reason}",
):
    """The VIM does not answer."""


class VimBehindProxy(VimUnreachable, template="VIM {place} is not reached: {reason}"):
    """The proxy to the VIM does not answer, or does not connect to it."""


class VimTooSlow(TimedOut, code="vim-too-slow", title="VIM unavailable", retryable=True):
    """The VIM did not answer within the time limit for a registration."""


class VimForbids(PlacedError, code="vim-forbids", title="VIM refused", status=422, template="VIM {place}: {reason}"):
    """The user of the access data lacks a permission."""


class NotOpenstack(Unprocessable, code="vim-not-openstack", title="OpenStack expected"):
    """The VIM is no OpenStack."""


class KubernetesTooOld(Unprocessable, code="kubernetes-too-old", title="Kubernetes version not supported"):
    """The cluster's version is not supported."""


class NameTaken(Conflict, code="vim-name-taken", title="VIM name taken"):
    """The tenant has another VIM with this name."""


class SecondDefault(Conflict, code="second-default-vim", title="Second default VIM"):
    """The tenant has a default VIM already."""


class VimInUse(Conflict, code="vim-in-use", title="VIM in use"):
    """VNF instances use the VIM."""

    def __init__(self, vim_id: str, users: Sequence[str]) -> None:
        super().__init__(f"VIM {vim_id} is used by the VNF instances {named(users)}")
        self.vim_id, self.users = vim_id, tuple(users)


class CredentialsMissing(NotFound, code="credentials-missing", title="Credentials missing"):
    """The receiver of kubevnfm has no credentials of the cluster."""

    def __init__(self, cluster: str) -> None:
        super().__init__(
            f"credentials-receiver has no credentials of cluster {cluster}: they were erased, or they were sent to another "
            "receiver, from which no VIM can be registered (set capi.register_vim to false)"
        )
        self.cluster = cluster


class InventoryRefused(Unprocessable):
    """The inventory answers, but with no kubeconfig, or rejects the login; ``field`` is a member of the request."""


class InventoryLost(InventoryRefused):
    """The inventory does not have the region."""


class InventoryAway(InventoryRefused):
    """The inventory does not answer now."""
