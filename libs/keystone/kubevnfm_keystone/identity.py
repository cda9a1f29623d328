"""Compares all that a login names with the token that it got: what is beside an id, Keystone does not look at."""

from __future__ import annotations

from keystoneauth1.access import AccessInfo

from kubevnfm_keystone.login import KeystoneLogin


class OtherIdentity(Exception):
    """The token is of another user or project than the login names; the text says which."""


def check_identity(login: KeystoneLogin, access: AccessInfo) -> None:
    """Raise OtherIdentity for a user, project or domain that is not that of the token.

    Names are compared without case, as most Keystones do. Names by which Keystone has found the user are right.
    """
    by_credential = login.credential_secret is not None
    # The user's ids and names are not sent if an application credential is named by its id.
    is_user_unread = by_credential and login.credential_id is not None
    for title, given, found, is_unread in (
        ("user", login.user_id, access.user_id, is_user_unread),
        ("user", login.username, access.username, is_user_unread or login.user_id is not None),
        ("user domain", login.user_domain_id, access.user_domain_id, is_user_unread or login.user_id is not None),
        (
            "user domain",
            login.user_domain,
            access.user_domain_name,
            is_user_unread or login.user_id is not None or login.user_domain_id is not None,
        ),
        ("project", login.project_id, access.project_id, by_credential),
        ("project", login.project, access.project_name, by_credential or bool(login.project_id)),
        ("project domain", login.project_domain_id, access.project_domain_id, by_credential or bool(login.project_id)),
        (
            "project domain",
            login.project_domain,
            access.project_domain_name,
            by_credential or bool(login.project_id) or bool(login.project_domain_id),
        ),
    ):
        if is_unread and given and found and given.casefold() != str(found).casefold():
            raise OtherIdentity(f"the login belongs to {title} {found}; {given} was given")
