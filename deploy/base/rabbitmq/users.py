"""Loads kubevnfm's exchanges, queues and users into RabbitMQ. May run again and again.

Each service has a user that can configure nothing, consumes from its own queues only and publishes its own messages
only; `definitions.json` has the permissions, made from the contract (`make schemas`).

The user ``observer`` is for other systems: it may declare and empty queues of its own, named ``observer.<anything>``,
bind them to the exchange ``kubevnfm.events``, and publish nowhere but into them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OBSERVER = {
    "user": "observer",
    "vhost": "/",
    "configure": r"^observer\..*",
    "write": r"^observer\..*",  # binding a queue is writing to it
    "read": r"^(observer\..*|kubevnfm\.events)$",
}
PATIENCE_S = 60.0
"""The management plugin opens its port a moment after the broker does."""


def users_of(definitions: Mapping[str, Any]) -> list[str]:
    """Return the names of the users that have permissions."""
    return [permission["user"] for permission in definitions["permissions"]]


def with_users(definitions: Mapping[str, Any], passwords: Mapping[str, str]) -> dict[str, Any]:
    """Return the definitions with their users; ``passwords`` by user. Raises KeyError if one is missing."""
    users = [
        {
            "name": user,
            "password_hash": hashed(passwords[user]),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": [],
        }
        for user in users_of(definitions)
    ]
    return {**definitions, "users": users}


def hashed(password: str) -> str:
    """Return the form in which RabbitMQ stores a password: a salt of four bytes, and SHA-256 of salt and password."""
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def load(definitions: Mapping[str, Any]) -> None:
    """Send the definitions to the management API.

    Raises PermissionError for a wrong password of the administrator, and OSError when the broker refuses otherwise.
    """
    url = urlsplit(os.environ["RABBITMQ_API"])
    credentials = base64.b64encode(f"{_administrator()}:{os.environ['RABBITMQ_PASSWORD']}".encode()).decode()
    connection = HTTPConnection(url.hostname or "", url.port, timeout=30)
    try:
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        connection.request("POST", "/api/definitions", json.dumps(definitions), headers)
        answer = connection.getresponse()
        reason = answer.read(1000).decode(errors="replace")
    finally:
        connection.close()
    if answer.status == 401:
        raise PermissionError("RABBITMQ_PASSWORD is not the password with which the broker was first started")
    if answer.status not in (200, 201, 204):
        raise OSError(f"POST /api/definitions was answered with {answer.status}: {reason}")


def _administrator() -> str:
    return os.environ.get("RABBITMQ_USER", "kubevnfm")


def password_of(user: str) -> str:
    """Return the password from the environment. Ends the program if it is not set."""
    name = f"RABBITMQ_{user.replace('-', '_').upper()}_PASSWORD"
    if not os.environ.get(name):
        sys.exit(f"{name} is not set: the password of the RabbitMQ user {user}")
    return os.environ[name]


def main() -> None:
    """Try until the broker answers or the patience is used up."""
    definitions = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    definitions["permissions"].append(OBSERVER)
    users = users_of(definitions)
    complete = with_users(definitions, {user: password_of(user) for user in users})
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            load(complete)
        except PermissionError as error:
            sys.exit(f"the definitions were not loaded: {error}")
        except (OSError, HTTPException) as error:
            if time.monotonic() > give_up_at:
                sys.exit(f"the definitions were not loaded: {error}")
            time.sleep(1)
        else:
            print(f"exchanges and queues are there, and the users {', '.join(users)}")  # noqa: T201 - of a container
            return


if __name__ == "__main__":
    main()
