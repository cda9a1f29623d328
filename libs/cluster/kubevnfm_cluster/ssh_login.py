"""How machines are logged in to over SSH (sequences.md 2.11), and the forms of the names that requests use."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, ClassVar

from kubevnfm_secrets import Secret

from kubevnfm_cluster.forms import (
    HOST,
    PACKAGE_PATH,
    PASSWORD,
    USER_NAME,
    LoginNames,
    Part,
    parsed,
    secret,
    text,
    whole,
)

PackagePath = Annotated[str, PACKAGE_PATH]
Resource = Annotated[str, text("the name of a connection point")]
UserName = Annotated[str, text("a Linux user name", USER_NAME)]
Password = Annotated[Secret, secret("one line of text", PASSWORD)]
PrivateKey = Annotated[Secret, secret("a private key in OpenSSH's form or PEM")]
TcpPort = Annotated[int, whole(1, 65_535)]


def _host(value: str) -> str:
    return value if re.fullmatch(HOST, value) else str(ip_address(value))


class Bastion(Part):
    """A host through which machines are reached over SSH (``ssh -J``)."""

    logins: ClassVar = (LoginNames(),)
    is_closed: ClassVar = True

    host: Annotated[str, parsed("a host name or an IP address", _host)]
    port: TcpPort = 22
    username: UserName
    password: Password | None = None
    """Either this or ``private_key``."""
    private_key: PrivateKey | None = None
    private_key_passphrase: Password | None = None


class SshLogin(Part):
    """How to log in to machines."""

    logins: ClassVar = (LoginNames(),)

    username: UserName
    password: Password | None = None
    """Either this or ``private_key``."""
    private_key: PrivateKey | None = None
    """In OpenSSH's form or PEM."""
    private_key_passphrase: Password | None = None
    """None: the key has none, or it was removed when the request was read."""
    ssh_port: TcpPort | None = None
    """None: the setting of mgmt-executor."""
    bastion: Bastion | None = None
