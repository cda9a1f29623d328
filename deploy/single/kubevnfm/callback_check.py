"""``kubevnfm-callback verify URL``: tests a receiver of credentials against capi.md chapter 10 (CR-076).

It sends what a sender would send, and each way in which a request can be wrong, and says which answers are not as expected.
The receiver must have the master key of the check value, or the one that ``--master-key-file`` holds. It is for receivers of others: that
of kubevnfm accepts what an operation awaits, and none awaits these requests.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
from kubevnfm_clients import callback
from kubevnfm_clients.bounded import json_in
from kubevnfm_kit.client_session import client_session
from kubevnfm_kit.http_client import HttpConnector
from kubevnfm_kit.ids import new_id
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.tls import ClientTls

CHECK_MASTER: Final = bytes(range(32))
CHECK_INSTANCE: Final = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
_LATE_S: Final = 310
"""Beyond the allowed 300 s, also if the request takes some seconds."""
_EARLY_S: Final = 290
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0)
_NOT_SIGNED: Final = (401,)


@dataclass(frozen=True)
class Target:
    """The receiver under test."""

    url: str
    vnf_instance_id: str
    key: bytes = field(repr=False)
    """The key of the instance."""

    @property
    def path(self) -> str:
        """The path with the query, as it is signed."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def signed(self, body: bytes, *, idempotency_key: str, skew_s: int = 0, nonce: str | None = None) -> dict[str, str]:
        """Return the headers of a request that is made now; ``skew_s``: how much later its timestamp is."""
        return dict(
            callback.signed_headers(
                self.key,
                body,
                vnf_instance_id=self.vnf_instance_id,
                timestamp=int(time.time()) + skew_s,
                nonce=nonce or secrets.token_urlsafe(24),
                idempotency_key=idempotency_key,
                target=self.path,
            )
        )


@dataclass(frozen=True)
class Case:
    """One request, and the answers that are right."""

    name: str
    expected: tuple[int, ...]
    body: bytes
    headers: Mapping[str, str]
    needs_date: bool = False
    """Whether the answer must have a ``Date``, with which a sender corrects its clock."""


@dataclass(frozen=True)
class Result:
    """An answer, and whether it is right."""

    case: Case
    status: int | None
    """None: there was no answer."""
    problem: str
    """"" if the answer is right."""


def a_body(target: Target, uid: str, *, event: str = "CREATED", mark: str = "check-value") -> JsonObject:
    """Return a complete body that asks for no VIM. ``mark``: what the kubeconfig has as its token."""
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "check",
        "contexts": [{"name": "check", "context": {"cluster": "check", "user": "check"}}],
        "clusters": [
            {"name": "check", "cluster": {"server": "https://192.0.2.1:6443", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "check", "user": {"token": mark}}],
    }
    body: JsonObject = {
        "schemaVersion": "1",
        "event": event,
        "vnfInstanceId": target.vnf_instance_id,
        # One id for the whole check: there is no operation.
        "vnfLcmOpOccId": uid,
        "cluster": {
            "name": f"check-{uid[:8]}",
            "namespace": "default",
            "uid": uid,
            "endpoint": "https://192.0.2.1:6443",
        },
        "vim": {"register": False},
    }
    if event != "DELETED":
        text = base64.b64encode(json.dumps(kubeconfig).encode()).decode()
        body["credentials"] = {"format": "kubeconfig", "kubeconfig": text, "authType": "bearer_token"}
    return body


def cases(target: Target) -> Sequence[Case]:
    """Return the requests in their order: the later ones need what the earlier ones have stored."""
    uid = new_id()
    good, changed = _raw(a_body(target, uid)), _raw(a_body(target, uid, mark="other"))
    gone = _raw(a_body(target, uid, event="DELETED"))
    key, deleted = f"check:{uid}:1", f"check:{uid}:deleted"
    nonce = secrets.token_urlsafe(24)
    return [
        *_refused(target, good),
        Case("new credentials", (201, 202), good, target.signed(good, idempotency_key=key, nonce=nonce)),
        Case("the same request again", (200, 202), good, target.signed(good, idempotency_key=key)),
        Case(
            "a clock that is 290 s late", (200, 202), good, target.signed(good, idempotency_key=key, skew_s=-_EARLY_S)
        ),
        Case(
            "a clock that is 290 s early", (200, 202), good, target.signed(good, idempotency_key=key, skew_s=_EARLY_S)
        ),
        Case("a nonce for the second time", (409,), good, target.signed(good, idempotency_key=key, nonce=nonce)),
        Case("an idempotency key with another body", (409,), changed, target.signed(changed, idempotency_key=key)),
        *_malformed(target, uid),
        Case("the cluster is deleted", (200,), gone, target.signed(gone, idempotency_key=deleted)),
        Case("the same deletion again", (200,), gone, target.signed(gone, idempotency_key=deleted)),
        Case(
            "credentials that were sent before the deletion",
            (409,),
            good,
            target.signed(good, idempotency_key=f"check:{uid}:2", skew_s=-_EARLY_S),
        ),
    ]


def _refused(target: Target, good: bytes) -> Sequence[Case]:
    """Return the requests that must not be accepted as the instance's."""

    def case(name: str, *, body: bytes = good, skew_s: int = 0, **changes: str) -> Case:
        headers = target.signed(good, idempotency_key=f"check:{new_id()}", skew_s=skew_s)
        headers |= {getattr(callback, header): value for header, value in changes.items()}
        return Case(name, _NOT_SIGNED, body, headers, needs_date=True)

    unknown = f"vnf-{new_id()}"
    return [
        case("a wrong signature", SIGNATURE="v1=" + "0" * 64),
        case("no signature", SIGNATURE=""),
        case("a key of another instance", KEY_ID=unknown),
        case("a timestamp that is 310 s old", skew_s=-_LATE_S),
        case("a timestamp that is 310 s ahead", skew_s=_LATE_S),
        case("a body that was changed by one byte", body=good[:-2] + bytes([good[-2] ^ 1]) + good[-1:]),
        case("a hash of another body", CONTENT_SHA256="0" * 64),
        case("a method or path that was not signed", SIGNATURE=_for_other_path(target, good)),
    ]


def _for_other_path(target: Target, body: bytes) -> str:
    return callback.signature(
        target.key,
        method="PUT",
        target=f"{target.path}/x",
        timestamp=str(int(time.time())),
        nonce=secrets.token_urlsafe(24),
        content_sha256=callback.sha256_hex(body),
    )


def _malformed(target: Target, uid: str) -> Sequence[Case]:
    """Return the requests that are signed and must be refused for their content."""

    def case(name: str, status: int, body: bytes, **headers: str) -> Case:
        return Case(name, (status,), body, {**target.signed(body, idempotency_key=f"check:{new_id()}"), **headers})

    def with_changes(**changes: Any) -> bytes:
        return _raw({**a_body(target, uid), **changes})

    broken = {"format": "kubeconfig", "kubeconfig": base64.b64encode(b"a: 1").decode()}
    large = _raw({**a_body(target, uid), "padding": "x" * callback.LARGEST_BODY})
    return [
        case("a body that is not JSON", 400, b"no JSON"),
        case("a body of more than 256 KiB", 413, large),
        case("another content type", 415, _raw(a_body(target, uid)), **{"Content-Type": "text/plain"}),
        case("an unknown event", 422, with_changes(event="EXPLODED")),
        case("a cluster without a uid", 422, with_changes(cluster={"name": "check"})),
        case("a kubeconfig without a user", 422, with_changes(credentials=broken)),
        case("credentials with DELETED", 422, with_changes(event="DELETED")),
        case("the body of another instance", 403, with_changes(vnfInstanceId=new_id())),
    ]


async def verify(target: Target, session: aiohttp.ClientSession) -> AsyncIterator[Result]:
    """Send every request, one after another; yield each answer."""
    refusals: set[str] = set()
    for case in cases(target):
        try:
            async with session.post(
                target.url, data=case.body, headers=case.headers, allow_redirects=False, timeout=_TIMEOUT
            ) as response:
                text = await response.text()
                status, has_date = response.status, "Date" in response.headers
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            yield Result(case, None, f"no answer ({type(error).__name__})")
            continue
        problem = ""
        if status not in case.expected:
            problem = f"expected {' or '.join(map(str, case.expected))}, got {status}"
        elif case.needs_date and not has_date:
            problem = "the answer has no Date, with which a sender corrects its clock"
        elif case.expected == _NOT_SIGNED:
            refusals.add(_without_request_id(text))
            if len(refusals) > 1:
                problem = "this 401 differs from the earlier ones: it shows a stranger what was wrong"
        yield Result(case, status, problem)


def _without_request_id(answer: str) -> str:
    """Return a ProblemDetails without the id of its request, which differs in each answer and says nothing."""
    found = json_in(answer.encode())
    if not isinstance(found, dict):
        return answer
    return json.dumps({name: value for name, value in found.items() if name != "requestId"}, sort_keys=True)


def _raw(body: JsonObject) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _master_key(path: Path | None) -> bytes:
    return CHECK_MASTER if path is None else callback.master_keys(path.read_text(encoding="utf-8"))[0]


async def _run(target: Target, ca: Path | None) -> int:
    wrong = 0
    connector = HttpConnector(ssl=ClientTls(ca).context())
    async with client_session(connector=connector) as session:
        async for result in verify(target, session):
            wrong += bool(result.problem)
            mark, why = ("WRONG", f": {result.problem}") if result.problem else ("ok   ", "")
            print(f"{mark} {result.status or '---'} {result.case.name}{why}")  # noqa: T201
    print(f"{wrong} wrong answers" if wrong else "every answer is as expected")  # noqa: T201
    return 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 1 if an answer is wrong, 2 if the arguments are."""
    parser = argparse.ArgumentParser(prog="kubevnfm-callback", description="Tests receivers of credentials.")
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("verify", help="send right and wrong requests to a receiver, and judge its answers")
    check.add_argument("url", help="where senders send to, with its query")
    check.add_argument(
        "--instance", default=CHECK_INSTANCE, help="the VNF instance id (default: that of the check value)"
    )
    check.add_argument(
        "--master-key-file", type=Path, help="file with the master key, base64 (default: that of the check value)"
    )
    check.add_argument("--ca", type=Path, help="PEM file of the CAs that issued the receiver's certificate")
    given = parser.parse_args(arguments)
    if urlsplit(given.url).scheme not in {"https", "http"} or not urlsplit(given.url).hostname:
        parser.error("url: an http or https URL expected")
    try:
        key = callback.instance_key(_master_key(given.master_key_file), given.instance)
    except (OSError, ValueError) as error:
        parser.error(f"--master-key-file: {error}")
    return asyncio.run(_run(Target(given.url, given.instance, key), given.ca))


if __name__ == "__main__":
    sys.exit(main())
