"""Errors that scripts raise or catch."""


class SolException(Exception):
    """An error with the words for the caller in ``sol_detail``."""

    def __init__(self, sol_title=None, sol_detail=None, **facts):
        self.title, self.detail = sol_title, sol_detail
        super().__init__(sol_detail or sol_title or ", ".join("%s=%s" % item for item in facts.items()))


class SolHttpError400(SolException):
    status = 400


class SolHttpError404(SolException):
    status = 404


class SolHttpError409(SolException):
    status = 409


class SolHttpError422(SolException):
    status = 422


class MgmtDriverExecutionFailed(SolHttpError422):
    """A script cannot do its work."""


class CoordinateVNFExecutionFailed(SolHttpError422):
    """A machine is not as the coordination expects it."""


class VMRunningFailed(SolHttpError422):
    """A machine does not run."""


class SshIpNotFoundException(SolHttpError422):
    """A machine has no address."""


class DeltaMissingInVnfd(SolHttpError400):
    """A scaling aspect names a delta that the VNFD does not have."""


class InvalidVnfdFormat(SolHttpError400):
    """The package cannot be read."""
