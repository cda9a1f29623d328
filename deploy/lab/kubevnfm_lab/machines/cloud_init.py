"""The effect of a server's user data by cloud-init: accounts, keys, the host name and files.

Only the modules that base HOTs use: ``hostname``/``fqdn``, ``password``, ``chpasswd``, ``ssh_pwauth``, ``users``,
``ssh_authorized_keys``, ``write_files`` and ``disable_root``. Others are ignored, as cloud-init ignores unknown keys.
Source: cloud-init's module reference, "Users and Groups", "Set Passwords", "Write Files".
"""

from __future__ import annotations

import base64
import binascii
import email
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubevnfm_lab import yaml_text


@dataclass
class Account:
    """One user of a machine."""

    name: str
    password: str | None = None
    """None: no login with a password."""
    public_keys: list[str] = field(default_factory=list)
    """Lines of authorized_keys."""
    sudo_needs_password: bool = False
    may_sudo: bool = True

    @property
    def home(self) -> str:
        """The user's home, as a path on the machine."""
        return "/root" if self.name == "root" else f"/home/{self.name}"


@dataclass(frozen=True)
class WrittenFile:
    """One entry of ``write_files``."""

    path: str
    content: bytes
    permissions: int = 0o644


_LONGEST = 63
"""Linux allows 64 characters, dnsmasq 63; Nova takes the smaller number."""


@dataclass
class CloudConfig:
    """The user data's requests."""

    accounts: dict[str, Account]
    hostname: str
    password_login: bool = True
    files: list[WrittenFile] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """The ``errors`` in cloud-init's status; the machine boots nevertheless."""


def cloud_config(
    user_data: str,
    *,
    name: str,
    public_key: str | None,
    password_by_user: Mapping[str, str],
    default_user: str,
    sudo_needs_password: bool,
) -> CloudConfig:
    """Apply user data (a ``#cloud-config`` document, or a MIME message with some) to the image's defaults."""
    config = CloudConfig(
        accounts={
            user: Account(user, password, sudo_needs_password=sudo_needs_password and user != "root")
            for user, password in password_by_user.items()
        },
        hostname=host_name_of(name),
    )
    # The default user exists in every cloud image, even if the settings give it no password.
    default = config.accounts.setdefault(default_user, Account(default_user, sudo_needs_password=sudo_needs_password))
    if public_key:
        default.public_keys.append(public_key)
    for document in _documents(user_data):
        try:
            data = yaml_text.load(document)
        except yaml.YAMLError as error:
            config.errors.append(f"Failed loading yaml blob: {error}")
            continue
        if isinstance(data, dict):
            _apply(config, data, default)
        elif data is not None:
            config.errors.append(f"Failed loading yaml blob: expected a mapping, got {type(data).__name__}")
    return config


def host_name_of(server: str) -> str:
    """Return the host name that Nova makes of a server's name (``sanitize_hostname``): 63 characters at most."""
    cut = server.encode("latin-1", "ignore").decode("latin-1")[:_LONGEST]
    plain = re.sub(r"[^\w-]+", "", re.sub(r"(\s|_|\.)+", "-", cut), flags=re.ASCII)
    return plain.lower().strip("-") or "host"


def _host_name(name: str) -> str:
    """Return the host name that user data ask for, in lower case: letters, digits and hyphens only."""
    cleaned = "".join(c if c.isalnum() or c in "-." else "-" for c in name.lower())
    # A host name has no domain; cloud-init sets only the first label.
    return cleaned.strip("-.").partition(".")[0] or "host"


def _documents(user_data: str) -> Iterator[str]:
    # cloud-init takes this line as the type; scripts and other formats are ignored here.
    if user_data.startswith("#cloud-config"):
        yield user_data
    elif user_data.lstrip().lower().startswith(("content-type:", "mime-version:")):
        for part in email.message_from_string(user_data.lstrip()).walk():
            payload = part.get_payload(decode=True)
            if part.get_content_type() == "text/cloud-config" and isinstance(payload, bytes):
                yield payload.decode("utf-8", "replace")


def _apply(config: CloudConfig, data: Mapping[str, Any], default: Account) -> None:
    hostname = data.get("hostname") or data.get("fqdn")
    if isinstance(hostname, str):
        config.hostname = _host_name(hostname)
    for entry in _list(data.get("users")):
        _add_user(config, entry)
    default.public_keys.extend(str(key) for key in _list(data.get("ssh_authorized_keys")))
    if data.get("password") is not None:
        default.password = str(data["password"])
    _change_passwords(config, data.get("chpasswd"))
    if "ssh_pwauth" in data:
        config.password_login = str(data["ssh_pwauth"]).lower() in ("true", "yes", "1")
    for entry in _list(data.get("write_files")):
        _add_file(config, entry)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _add_user(config: CloudConfig, entry: object) -> None:
    if not isinstance(entry, dict) or not entry.get("name"):
        return  # "default" keeps the default user, which exists already
    name = str(entry["name"])
    # A user that the image has keeps its rights; a new one gets only what the entry gives.
    account = config.accounts.setdefault(name, Account(name, may_sudo=False))
    account.public_keys.extend(str(key) for key in _list(entry.get("ssh_authorized_keys")))
    if "plain_text_passwd" in entry:
        account.password = str(entry["plain_text_passwd"])
    rules = " ".join(entry["sudo"]) if isinstance(entry.get("sudo"), list) else str(entry.get("sudo") or "")
    if rules and rules.lower() != "false":
        account.may_sudo = True
        account.sudo_needs_password = "NOPASSWD" not in rules


def _change_passwords(config: CloudConfig, chpasswd: object) -> None:
    if not isinstance(chpasswd, dict):
        return
    listed = chpasswd.get("list")
    lines = listed.splitlines() if isinstance(listed, str) else [str(line) for line in _list(listed)]
    pairs = [line.strip().partition(":")[::2] for line in lines if ":" in line]
    pairs += [
        (str(user["name"]), str(user["password"]))
        for user in _list(chpasswd.get("users"))
        if isinstance(user, dict) and "name" in user and "password" in user
    ]
    for name, password in pairs:
        # cloud-init reports this as an error too, and continues with the other users.
        if name in config.accounts:
            config.accounts[name].password = password
        else:
            config.errors.append(f"chpasswd: user '{name}' does not exist")


def _add_file(config: CloudConfig, entry: object) -> None:
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        return
    content = str(entry.get("content", "")).encode()
    if str(entry.get("encoding", "")).lower() in ("b64", "base64"):
        try:
            content = base64.b64decode(content)
        except binascii.Error as error:
            config.errors.append(f"write_files: {entry['path']}: {error}")
            return
    try:
        permissions = int(str(entry.get("permissions", "0644")), 8)
    except ValueError:
        permissions = 0o644
    config.files.append(WrittenFile(entry["path"], content, permissions))
