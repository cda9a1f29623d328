"""Application credentials of a user in Keystone: second log-ins to one project, which can be taken back one by one.

Their names are unique for each user. Keystone shows the secret once, when it makes the credential, and lets a restricted
application credential make and delete no other one (403).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from keystoneauth1 import exceptions

from kubevnfm_keystone.session import KeystoneSession

_JSON: Final = {"Accept": "application/json"}


@dataclass(frozen=True)
class ApplicationCredential:
    """One that was made now; it contains its secret in clear, so it is only in memory and never shown."""

    id: str
    secret: str = field(repr=False)


class ApplicationCredentials:
    """Those of the user that a session is logged in as. Every call blocks, and raises the errors of keystoneauth."""

    def __init__(self, session: KeystoneSession) -> None:
        self._session = session

    def named(self, name: str) -> Sequence[str]:
        """Return the ids of the credentials of this name."""
        listed = self._listed({"name": name})
        return [str(one["id"]) for one in listed if one["name"] == name]

    def replace(self, name: str, *, description: str) -> ApplicationCredential:
        """Make a credential, in the place of those of this name. Raises Forbidden if Keystone lets the user make none."""
        # Its secret is shown once: that of an earlier try is lost.
        self.delete(name)
        body = {"application_credential": {"name": name, "description": description}}
        made = self._session.session.post(self._url(), json=body, headers=_JSON).json()["application_credential"]
        return ApplicationCredential(str(made["id"]), str(made["secret"]))

    def delete(self, name: str) -> int:
        """Delete the credentials of this name; return how many there were."""
        found = self.named(name)
        for each in found:
            try:
                self._session.session.delete(f"{self._url()}/{each}", headers=_JSON)
            except exceptions.NotFound:
                continue  # another process has deleted it
        return len(found)

    def _listed(self, query: dict[str, str]) -> Sequence[dict[str, Any]]:
        answer = self._session.session.get(self._url(), params=query, headers=_JSON)
        listed: Sequence[dict[str, Any]] = answer.json()["application_credentials"]
        return listed

    def _url(self) -> str:
        return f"{self._session.login.auth_url}/users/{self._session.user_id()}/application_credentials"
