"""Users of an interface with authentication: the users file, and the headers that they send."""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import b64encode
from pathlib import Path
from typing import Final

from kubevnfm_access.passwords import PasswordHash

PASSWORD: Final = "pass:word-of-nfvo"


def hashed(password: str) -> str:
    """Return a hash with the least parameters that a users file may have: a check of the usual ones takes 0.2 s."""
    salt = secrets.token_bytes(16)
    digest = hashlib.scrypt(password.encode(), salt=salt, n=2**10, r=1, p=1, dklen=32)
    return str(PasswordHash(10, 1, 1, salt, digest))


HASHED: Final = hashed(PASSWORD)


def users_file(folder: Path, **roles_by_name: list[str]) -> Path:
    path = folder / "users.toml"
    entries = [
        f'[users.{name}]\nroles = {json.dumps(roles)}\npassword = "{HASHED}"\ncertificate = "{name}.example"\n'
        for name, roles in roles_by_name.items()
    ]
    path.write_text("\n".join(entries))
    return path


def basic(name: str, password: str = PASSWORD) -> dict[str, str]:
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
