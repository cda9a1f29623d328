"""Errors that scripts raise or catch."""


class TackerException(Exception):
    """An error whose text has places for the facts that it is raised with."""

    message = "An unknown exception occurred."

    def __init__(self, message=None, **facts):
        text = message or self.message
        try:
            text %= facts
        except (KeyError, TypeError, ValueError):
            text = " ".join([str(text), *("%s=%s" % fact for fact in facts.items())])
        self.msg = text
        super().__init__(text)


class NotAuthorized(TackerException):
    message = "Not authorized."


class MgmtDriverException(TackerException):
    message = "VNF configuration error"


class MgmtDriverParamInvalid(MgmtDriverException):
    message = "The parameter %(param)s is invalid."


class MgmtDriverNotFound(MgmtDriverException):
    message = "The %(param)s is not found."


class MgmtDriverRemoteCommandError(MgmtDriverException):
    message = "Failed to execute remote command."


class MgmtDriverOtherError(MgmtDriverException):
    message = "An error occurred in the management driver: %(error_message)s"
