"""Makes the MongoDB user of each service, which may read and write the service's own database and no other.

May run again and again; a changed password is set. The variables ``MONGODB_<SERVICE>_PASSWORD`` name the services, and
``MONGODB_URL`` is the URL of the administrator. The user is in the database itself, so its URL ends with that name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from pymongo import MongoClient
from pymongo.errors import PyMongoError


def passwords(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the password of each service's user, by service. Ends the program if one is empty."""
    found: dict[str, str] = {}
    for name, password in environment.items():
        if matched := re.fullmatch(r"MONGODB_([A-Z0-9_]+)_PASSWORD", name):
            if not password:
                sys.exit(f"{name} is empty: the password of a MongoDB user")
            found[matched[1].lower().replace("_", "-")] = password
    return found


def database_of(service: str) -> str:
    """Return the name of the service's database."""
    return f"kubevnfm_{service.replace('-', '_')}"


def make_user(client: MongoClient[dict[str, object]], service: str, password: str) -> None:
    """Make the service's user, or set its password and roles. Raises PyMongoError."""
    name = database_of(service)
    known = client[name].command("usersInfo", service)["users"]
    client[name].command(
        "updateUser" if known else "createUser", service, pwd=password, roles=[{"role": "readWrite", "db": name}]
    )


def main() -> None:
    """Make all users."""
    found = passwords(os.environ)
    client: MongoClient[dict[str, object]] = MongoClient(os.environ["MONGODB_URL"], serverSelectionTimeoutMS=60_000)
    try:
        for service, password in found.items():
            make_user(client, service, password)
    except PyMongoError as error:
        sys.exit(f"the users were not made: {error}")
    finally:
        client.close()
    print(f"the users {', '.join(sorted(found))} are there")  # noqa: T201 - the output of a container that ends


if __name__ == "__main__":
    main()
