"""The client of the LCM coordination interface (SOL002 clause 10). A script reaches it on the VNF's own machines only."""

import base64
import json
import time
import urllib.error
import urllib.request

from tacker.sol_refactored.common import exceptions

_VERSION = "1.0.0"
_POLL_S = 1


def create_coordination(endpoint, authentication, coord_req, timeout=None):
    """Request a coordination and wait for its end; return the LcmCoord."""
    deadline = None if timeout is None else time.monotonic() + float(timeout)
    headers = {"Version": _VERSION, "Accept": "application/json", **_authorization(authentication)}
    url = endpoint.rstrip("/") + "/lcmcoord/v1/coordinations"
    status, location, body = _call(url, headers, json.dumps(coord_req).encode(), deadline)
    if status == 201:
        return body
    if status != 202 or not location:
        raise exceptions.SolHttpError422(sol_detail="%s: status %s; 201 or 202 expected" % (url, status))
    while status == 202:
        _wait(deadline, location)
        status, _, body = _call(location, headers, None, deadline)
    return body


def _authorization(authentication):
    kinds = (authentication or {}).get("authType") or []
    if not authentication:
        return {}
    if "BASIC" not in kinds:
        raise exceptions.SolHttpError422(sol_detail="authType %s: only BASIC is supported" % kinds)
    basic = authentication["paramsBasic"]
    pair = "%s:%s" % (basic["userName"], basic["password"])
    return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _call(url, headers, body, deadline):
    """Return status, Location and body; a 503 is tried again."""
    if body is not None:
        headers = {**headers, "Content-Type": "application/json"}
    while True:
        request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - the sandbox decides about addresses
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return answer.status, answer.headers.get("Location"), json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code != 503:
                raise exceptions.SolHttpError422(sol_detail="%s: status %s" % (url, error.code)) from error
        except urllib.error.URLError as error:
            raise exceptions.SolHttpError422(sol_detail="%s: %s" % (url, error.reason)) from error
        _wait(deadline, url)


def _wait(deadline, url):
    if deadline is not None and time.monotonic() > deadline:
        raise exceptions.SolHttpError422(sol_detail="%s: no end within the timeout" % url)
    time.sleep(_POLL_S)
