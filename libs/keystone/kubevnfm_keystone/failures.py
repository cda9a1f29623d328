"""Explains why a call to Keystone, or to a service of its catalogue, failed: one sentence without a secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from keystoneauth1 import exceptions
from keystoneauth1.exceptions import connection
from kubevnfm_kit.tls import tls_failure

from kubevnfm_keystone.access_rules import RulesForbid
from kubevnfm_keystone.catalogue import CatalogueLacks
from kubevnfm_keystone.guard import CAUSES, AnswerRefused, ProxyFailed
from kubevnfm_keystone.identity import OtherIdentity

_GONE: Final = "Could not find Application Credential"
"""Keystone answers a log-in with one that was deleted by 404 and this text."""

UNREADABLE: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""Raised by code that reads an answer whose members are missing or have other types: here, and in keystoneauth."""


class NotKeystone(Exception):
    """The server at the address is not Keystone v3; the text says what it is like."""


@dataclass(frozen=True)
class Failure:
    """A failure in the form in which a caller can act on it."""

    kind: Literal["unauthorized", "refused", "unavailable"]
    """``refused``: an operator must change the access data or the cloud; ``unavailable``: later it may work."""
    reason: str
    is_of_proxy: bool = False
    """Whether it is the proxy that has failed: nothing is known of the cloud."""


def failure_of(error: Exception) -> Failure:
    """Explain an error of keystoneauth, one of this package's own, or one of `UNREADABLE`."""
    # The texts of keystoneauth can quote a whole request with its password, so they are searched and never shown.
    text = str(error)
    match error:
        case NotKeystone() | CatalogueLacks() | RulesForbid() | OtherIdentity():
            return Failure("refused", text)
        case exceptions.NotFound() if _GONE in text:
            return Failure("unauthorized", "Keystone has no such application credential: it was deleted")
        case exceptions.Unauthorized() | exceptions.Forbidden():
            return Failure("unauthorized", "Keystone rejects the user, password, application credential or project")
        case connection.UnknownConnectionError() if isinstance(error.original, AnswerRefused):
            return Failure("refused", str(error.original))
        case connection.UnknownConnectionError() if isinstance(error.original, ProxyFailed):
            return Failure("unavailable", str(error.original), is_of_proxy=True)
        case connection.SSLError():
            return Failure("refused", tls_failure(text))
        case connection.ConnectFailure() if "BadStatusLine" in text:
            return Failure("refused", "no Keystone answers at this address: the server does not speak HTTP")
        case connection.ConnectTimeout():
            return Failure("unavailable", "no answer in time")
        case connection.ConnectFailure():
            cause = next((cause for part, cause in CAUSES.items() if part in text), "the connection failed")
            return Failure("unavailable", cause)
        case exceptions.HttpError() if error.http_status >= 500 or error.http_status == 429:
            return Failure("unavailable", f"answered {error.http_status}")
        case exceptions.EndpointNotFound() | exceptions.CatalogException():
            return Failure("refused", "its catalogue has no such service in this region")
        case exceptions.HttpError():
            return Failure("refused", f"answered {error.http_status}")
        case AttributeError() | IndexError() | KeyError() | TypeError() | ValueError():
            # The text of such an error may quote the answer.
            return Failure("refused", "its answers are not those of an OpenStack")
        case _:
            return Failure("refused", f"not usable ({type(error).__name__})")
