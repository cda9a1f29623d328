"""Exits 0 when the service in this container says that it is ready: what Docker asks again and again."""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection

try:
    connection = HTTPConnection(
        os.environ.get("KUBEVNFM_HEALTH_HOST", "127.0.0.1"), int(os.environ["KUBEVNFM_HEALTH_PORT"]), timeout=4
    )
    connection.request("GET", os.environ.get("KUBEVNFM_HEALTH_PATH", "/health/ready"))
    status = connection.getresponse().status
except OSError as error:
    sys.exit(f"does not answer: {error}")
sys.exit(0 if status == 200 else f"answers {status}")
