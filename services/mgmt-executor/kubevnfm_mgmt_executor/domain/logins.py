"""Logins over SSH out of the parameters of a request."""

from __future__ import annotations

from collections.abc import Callable

from kubevnfm_cluster.ssh_login import Bastion as RequestedBastion
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.ports import Bastion, Login

Reveal = Callable[[Secret], str]


def login(username: str, password: Secret | None, private_key: Secret | None, reveal: Reveal) -> Login:
    """Return a login in clear. A private key has no passphrase: it was opened when the parameters were read."""
    return Login(
        username,
        None if password is None else reveal(password),
        None if private_key is None else reveal(private_key),
    )


def bastion(requested: RequestedBastion | None, reveal: Reveal) -> Bastion | None:
    """Return the bastion of a request."""
    if requested is None:
        return None
    its_login = login(requested.username, requested.password, requested.private_key, reveal)
    return Bastion(requested.host, requested.port, its_login)
