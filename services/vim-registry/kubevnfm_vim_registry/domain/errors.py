"""The errors of VIMs."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, PlacedError, TimedOut, Unprocessable


class VimUnknown(NotFound):
    """No VIM has this id."""

    code = "vim-unknown"
    title = "VIM not found"


class VimUnauthorized(PlacedError):
    """The VIM rejects the access data."""

    code = "vim-unauthorized"
    title = "Unauthorized for VIM"
    status = 400
    template = "unauthorized for VIM {place}: {reason}"


class VimRefused(PlacedError):
    """The VIM answers, but is not usable: it lacks the API, or its certificate is not trusted."""

    code = "vim-refused"
    title = "VIM refused"
    status = 400
    template = "VIM {place}: {reason}"


class VimUnreachable(PlacedError, OutsideUnavailable):
    """The VIM does not answer."""

    code = "vim-unreachable"
    title = "VIM unavailable"
    template = "VIM {place} does not answer: {reason}"


class VimTooSlow(TimedOut):
    """The VIM did not answer within the time limit for a registration."""

    code = "vim-too-slow"
    title = "VIM unavailable"
    retryable = True


class NotOpenstack(Unprocessable):
    """The VIM is no OpenStack."""

    code = "vim-not-openstack"
    title = "OpenStack expected"


class KubernetesTooOld(Unprocessable):
    """The cluster's version is not supported."""

    code = "kubernetes-too-old"
    title = "Kubernetes version not supported"


class NameTaken(Conflict):
    """The tenant has another VIM with this name."""

    code = "vim-name-taken"
    title = "VIM name taken"


class SecondDefault(Conflict):
    """The tenant has a default VIM already."""

    code = "second-default-vim"
    title = "Second default VIM"


class VimInUse(Conflict):
    """VNF instances use the VIM."""

    code = "vim-in-use"
    title = "VIM in use"

    def __init__(self, vim_id: str, users: Sequence[str]) -> None:
        super().__init__(f"VIM {vim_id} is used by the VNF instances {', '.join(users)}")
        self.vim_id, self.users = vim_id, tuple(users)


class CredentialsMissing(NotFound):
    """The receiver of kubevnfm has no credentials of the cluster."""

    code = "credentials-missing"
    title = "Credentials missing"

    def __init__(self, cluster: str) -> None:
        super().__init__(
            f"credentials-receiver has no credentials of cluster {cluster}: they were erased, or they were sent to another "
            "receiver, from which no VIM can be registered (set capi.register_vim to false)"
        )
        self.cluster = cluster
