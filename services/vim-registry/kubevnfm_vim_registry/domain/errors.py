"""What can be wrong with a VIM."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_kit.errors import Conflict, NotFound, OutsideUnavailable, TimedOut, Unprocessable, VnfmError


class VimUnknown(NotFound):
    """No VIM has that id."""

    code = "vim-unknown"
    title = "VIM not found"


class VimUnauthorized(VnfmError):
    """The VIM answers, but not to these access data."""

    code = "vim-unauthorized"
    title = "Unauthorized for VIM"
    status = 400

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"unauthorized for VIM {endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class VimRefused(VnfmError):
    """The VIM answers, but is not what it must be: no such API, a certificate of somebody else."""

    code = "vim-refused"
    title = "VIM refused"
    status = 400

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"VIM {endpoint}: {reason}")
        self.endpoint, self.reason = endpoint, reason


class VimUnreachable(OutsideUnavailable):
    """The VIM does not answer."""

    code = "vim-unreachable"
    title = "VIM unavailable"

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"VIM {endpoint} does not answer: {reason}")
        self.endpoint, self.reason = endpoint, reason


class VimTooSlow(TimedOut):
    """The VIM did not answer within the time that a registration may take."""

    code = "vim-too-slow"
    title = "VIM unavailable"
    retryable = True


class KubernetesTooOld(Unprocessable):
    """The cluster's version is not supported."""

    code = "kubernetes-too-old"
    title = "Kubernetes version not supported"


class NameTaken(Conflict):
    """Another VIM of the tenant has the name."""

    code = "vim-name-taken"
    title = "VIM name taken"


class SecondDefault(Conflict):
    """The tenant has a default VIM already."""

    code = "second-default-vim"
    title = "Second default VIM"


class VimInUse(Conflict):
    """VNF instances live on the VIM."""

    code = "vim-in-use"
    title = "VIM in use"

    def __init__(self, vim_id: str, users: Sequence[str]) -> None:
        super().__init__(f"VIM {vim_id} is used by the VNF instances {', '.join(users)}")
        self.vim_id, self.users = vim_id, tuple(users)
