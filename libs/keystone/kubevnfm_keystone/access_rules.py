"""The access rules of an application credential, which limit the calls that its tokens may make.

keystonemiddleware compares them in each service, and answers 401 where none allows a call. It also answers 401 to every call with
such a token if the service has no ``service_type`` in its ``[keystone_authtoken]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from keystoneauth1.access import AccessInfo, AccessInfoV3

from kubevnfm_keystone.catalogue import OPTIONAL, REQUIRED, TITLES

_METHODS: Final[Mapping[str, Sequence[str]]] = {
    "orchestration": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    # Heat calls the others in the name of the credential.
    "compute": ("GET", "POST", "DELETE"),
    "network": ("GET", "POST", "PUT", "DELETE"),
    "image": ("GET",),
    "block-storage": ("GET", "POST", "DELETE"),
}
"""The methods without which no VNF can be made, changed and deleted."""
_OTHER_NAMES: Final = {"volume": "block-storage", "volumev2": "block-storage", "volumev3": "block-storage"}
_MOST_SHOWN: Final = 5


class RulesForbid(Exception):
    """The access rules allow less than VNFs need; the text says what they do not allow."""


@dataclass(frozen=True)
class AccessRule:
    """A rule, which allows calls."""

    service: str
    method: str
    path: str


def rules_of(access: AccessInfo) -> Sequence[AccessRule]:
    """Return the rules by which a token is limited; empty: it is not."""
    found: Any = access.application_credential_access_rules if isinstance(access, AccessInfoV3) else None
    return [
        AccessRule(_OTHER_NAMES.get(str(one["service"]), str(one["service"])), str(one["method"]), str(one["path"]))
        for one in found or ()
    ]


def check_rules(rules: Sequence[AccessRule], services: Sequence[str] = (*REQUIRED, *OPTIONAL)) -> None:
    """Raise RulesForbid if the rules allow no call by one of the methods that are needed of a service."""
    lacking = {
        service: [m for m in _METHODS[service] if not any((r.service, r.method) == (service, m) for r in rules)]
        for service in services
    }
    named = [f"{', '.join(methods)} of {TITLES[one]} ({one})" for one, methods in lacking.items() if methods]
    if rules and named:
        raise RulesForbid(f"the access rules of the application credential do not allow {'; '.join(named)}")


def refusal_of(rules: Sequence[AccessRule], service: str) -> str:
    """Return why a service that has answered 401 may have rejected a token with these rules; empty: not for them."""
    if not rules:
        return ""
    own = [f"{one.method} {one.path}" for one in rules if one.service == service]
    shown = ", ".join(own[:_MOST_SHOWN]) + (f" and {len(own) - _MOST_SHOWN} more" if len(own) > _MOST_SHOWN else "")
    return (
        f"it rejects the application credential, whose access rules allow {shown or 'no call'} there; a service without "
        "service_type in its [keystone_authtoken] rejects every credential that has access rules"
    )
