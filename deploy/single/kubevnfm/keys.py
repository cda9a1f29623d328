"""The keys of a single node: created once, stored in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.files import private_folder
from kubevnfm_secrets import KeyRing


class KeysDamaged(VnfmError, code="keys-damaged", title="Keys damaged", status=500):
    """The file of the key ring is damaged: without its keys no sealed value can be read."""


def key_ring(data_dir: Path) -> KeyRing:
    """Return the ring of ``<data dir>/keys``; created at the first call. Raises KeysDamaged."""
    path = data_dir / "keys"
    try:
        return KeyRing.from_text(_stored(path, KeyRing.new_key))
    except ValueError as error:
        raise KeysDamaged(f"{path}: {error}") from error


def internal_token(data_dir: Path) -> str:
    """Return the token that authenticates calls between the services; created at the first call."""
    return _stored(data_dir / "internal-token", lambda: secrets.token_urlsafe(32))


def credentials_token(data_dir: Path) -> str:
    """Return the token with which vim-registry alone reads kubeconfigs; created at the first call (capi.md CR-071)."""
    return _stored(data_dir / "credentials-token", lambda: secrets.token_urlsafe(32))


def callback_master_key(data_dir: Path) -> str:
    """Return the master key of the credentials call-back, base64; created at the first call (capi.md 10)."""
    return _stored(data_dir / "callback-key", KeyRing.new_key)


def _stored(path: Path, make: Callable[[], str]) -> str:
    private_folder(path.parent)
    try:
        # Never overwritten, because values sealed with a lost key cannot be read. 0600 from the beginning: a later
        # chmod would leave a moment in which other users can open the file.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(descriptor, "w") as file:
        file.write(text := make())
    return text
