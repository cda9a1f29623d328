"""Users of an interface with authentication: the users file, and the headers that they send."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Final

from kubevnfm_access.passwords import PasswordHash

PASSWORD: Final = "pass:word-of-nfvo"
HASHED: Final = str(PasswordHash.from_password(PASSWORD))


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
