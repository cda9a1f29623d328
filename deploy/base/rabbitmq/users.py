"""Makes the RabbitMQ user with which other systems read kubevnfm's events, and nothing else. May run again and again.

It may declare and empty queues of its own, named ``observer.<anything>``, bind them to the exchange
``kubevnfm.events``, and publish nowhere but into them. Exchanges and queues of kubevnfm stay out of its reach.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

NAME = "observer"
PERMISSIONS = {
    "configure": r"^observer\..*",
    "write": r"^observer\..*",  # binding a queue is writing to it
    "read": r"^(observer\..*|kubevnfm\.events)$",
}
PATIENCE_S = 60.0
"""The management plugin opens its port a moment after the broker does."""


def put(path: str, body: dict[str, str]) -> int:
    """Return the status of a PUT to the management API."""
    url = urlsplit(os.environ["RABBITMQ_API"])
    credentials = base64.b64encode(f"kubevnfm:{os.environ['RABBITMQ_PASSWORD']}".encode()).decode()
    connection = HTTPConnection(url.hostname or "", url.port, timeout=10)
    try:
        connection.request("PUT", f"/api{path}", json.dumps(body), {"Authorization": f"Basic {credentials}"})
        return connection.getresponse().status
    finally:
        connection.close()


def make_user() -> None:
    """Make the user with its permissions on the default virtual host. Raises OSError when the broker says no."""
    steps = (
        (f"/users/{NAME}", {"password": os.environ["RABBITMQ_OBSERVER_PASSWORD"], "tags": ""}),
        (f"/permissions/%2F/{NAME}", PERMISSIONS),
    )
    for path, body in steps:
        status = put(path, body)
        if status not in (201, 204):
            raise OSError(f"PUT {path} was answered with {status}")


def main() -> None:
    """Try until the broker answers or the patience is used up."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            make_user()
        except (OSError, HTTPException) as error:
            if time.monotonic() > give_up_at:
                sys.exit(f"the user {NAME} was not made: {error}")
            time.sleep(1)
        else:
            print(f"the user {NAME} is there")  # noqa: T201 - the output of a container that ends
            return


if __name__ == "__main__":
    main()
