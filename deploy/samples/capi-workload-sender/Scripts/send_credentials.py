"""Sends the credentials of this package's workload cluster to a receiver. An example to copy: Python's own library alone.

The VNFD maps ``instantiate_end`` to this file, which then sends the kubeconfig that Cluster API has made (event CREATED), and
``terminate_start``, which has the receiver erase it (DELETED). The file may run more than once: the same operation sends the
same request again, and the receiver takes it once. docs/credentials-receiver.md describes the request, docs/specification/capi.md,
chapter 10, what to do after each answer.
"""

import base64
import hashlib
import hmac
import json
import os
import pickle
import random
import secrets
import ssl
import sys
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime

TRIES = 8
LONGEST_S = 300
LONGEST_PAUSE_S = 30
TIMEOUT_S = 30


def main():
    given = pickle.load(sys.stdin.buffer)
    # A file that only this process can read: nothing secret is on a command line or in an environment variable.
    with open(os.environ["KUBEVNFM_CALLBACK_FILE"]) as file:
        callback = json.load(file)
    # Complete but for the kubeconfig. Its facts stay the same if this script runs again, so the request does too.
    body = callback["body"]
    content = "deleted"
    if body["event"] != "DELETED":
        kubeconfig = read_kubeconfig(given["vnf_instance"], body)
        body["credentials"]["kubeconfig"] = kubeconfig
        content = hashlib.sha256(base64.b64decode(kubeconfig)).hexdigest()[:16]
    key = f"{callback['vnfLcmOpOccId']}:{body['cluster']['uid']}:{content}"
    deliver(callback, json.dumps(body).encode(), key)


def read_kubeconfig(instance, body):
    """Return the kubeconfig of the cluster's Secret in the management cluster, as base64."""
    vims = instance["vimConnectionInfo"].values()
    vim = next(each for each in vims if each.get("vimId") == body["managementVimId"])
    cluster, interface = body["cluster"], vim["interfaceInfo"]
    request = urllib.request.Request(
        f"{interface['endpoint']}/api/v1/namespaces/{cluster['namespace']}/secrets/{body['secret']['name']}",
        headers={"Authorization": f"Bearer {vim['accessInfo']['bearer_token']}"},
    )
    status, _, answer = call(request, tls(interface.get("ssl_ca_cert"), verified=not interface.get("skipTlsVerify")))
    if status != 200:
        sys.exit(f"the management cluster answered {status} to GET of the Secret: {answer.get('message')}")
    return answer["data"]["value"]


def deliver(callback, body, key):
    """Send the request until the receiver has taken it; end the script if it refuses, or after the tries."""
    context = tls(callback["tls"]["ca"]) if callback["tls"] else None
    began, tries, clock_offset_s, corrected = time.monotonic(), 0, 0, False
    while True:
        tries += 1
        request = urllib.request.Request(callback["url"], data=body, method="POST")
        for name, value in signed_headers(callback, request.selector, body, key, clock_offset_s).items():
            request.add_header(name, value)
        status, headers, answer = call(request, context)
        if status in (200, 201, 202):
            print(f"the receiver answered {status}", file=sys.stderr)
            return
        reason = f"the receiver answered {status}" if status else "the receiver does not answer"
        reason = f"{reason}: {answer.get('detail') or answer.get('title') or 'no reason given'}"
        retry_after = headers.get("Retry-After", "")
        if status in (429, 503) and retry_after.isdigit():
            pause_s = int(retry_after)
        elif status == 401 and not corrected:
            # It refuses the timestamp if its clock is another one.
            corrected, pause_s = True, 0
            if "Date" in headers:
                clock_offset_s = parsedate_to_datetime(headers["Date"]).timestamp() - time.time()
        elif status == 409 and answer.get("type") == "nonce-used" and tries < TRIES:
            pause_s = 0
        elif status == 0 or status in (408, 429) or status >= 500:
            if tries >= TRIES:
                sys.exit(f"{reason} ({tries} tries)")
            pause_s = min(2 ** (tries - 1), LONGEST_PAUSE_S) * random.uniform(0.5, 1)
        else:
            sys.exit(reason)
        if time.monotonic() - began + pause_s > LONGEST_S:
            sys.exit(f"{reason} ({tries} tries)")
        print(f"{reason}; next try in {pause_s:.0f} s", file=sys.stderr, flush=True)
        time.sleep(pause_s)


def signed_headers(callback, target, body, key, clock_offset_s):
    """Return the headers of one try: each has a new timestamp and nonce, all have the same idempotency key."""
    timestamp = str(round(time.time() + clock_offset_s))
    nonce = secrets.token_urlsafe(24)
    content = hashlib.sha256(body).hexdigest()
    text = "\n".join(["VNFM-HMAC-SHA256", "POST", target, timestamp, nonce, content])
    signature = hmac.new(bytes.fromhex(callback["key"]), text.encode(), "sha256").hexdigest()
    return {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "X-Vnfm-Key-Id": callback["keyId"],
        "X-Vnfm-Timestamp": timestamp,
        "X-Vnfm-Nonce": nonce,
        "X-Vnfm-Content-SHA256": content,
        "X-Vnfm-Signature": f"v1={signature}",
    }


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would send the credentials to another server."""

    def redirect_request(self, *_):
        return None


def call(request, context):
    """Return status, headers and JSON of the answer; status 0 if there is none."""
    handlers = [NoRedirects, *([urllib.request.HTTPSHandler(context=context)] if context else [])]
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.headers, read(answer)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, read(error)
    except OSError as error:
        # Its text can have the address, and nothing of the request.
        return 0, {}, {"detail": str(error)}


def read(answer):
    try:
        found = json.loads(answer.read(2**20))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def tls(ca, verified=True):
    context = ssl.create_default_context(cadata=ca)
    if not verified:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


if __name__ == "__main__":
    main()
