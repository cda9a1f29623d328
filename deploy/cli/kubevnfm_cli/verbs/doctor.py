"""``kubevnfm doctor``: whether the command line, the gateway and the VIMs are as they should be, and what to do if not."""

from __future__ import annotations

import email.utils
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Literal

from kubevnfm_cli import contexts
from kubevnfm_cli.call import Call, Parser, chosen_context
from kubevnfm_cli.faults import DONE, FAILED, NOT_ALLOWED, UNREACHABLE, Fault, Refused, Unreachable
from kubevnfm_cli.gateway import Reply
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import LINE, printable
from kubevnfm_cli.verbs.version import client_version, gateway_version

_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}
_SLOW_S: Final = 2.0
_CLOCK_WARN_S, _CLOCK_FAIL_S = 5.0, 300.0
"""Tokens are refused by clocks that differ by minutes; times in a list look odd from seconds on."""
_SOON_DAYS: Final = 30
_PAGE: Final = 1000
_MOST_NAMED: Final = 5
_LOG: Final = "its log says more: docs/monitoring.md"
_READINESS: Final = "docs/health.md says what each part is, and what to do; the log of lcm-api says more"
_REMEDIES: Final = {
    "missing": "start it, and let it reach the broker: docs/architecture.md names the processes",
    "away": f"start it again; {_LOG}",
    "not-ready": f"mend what it lacks; {_LOG}",
    "unknown": "wait 30 s if the gateway was just started; else look at the broker",
}
"""By the state of a service."""
_ENDS: Final[Mapping[str, Literal["warn", "fail"]]] = {
    "missing": "fail", "away": "fail", "not-ready": "fail", "unknown": "warn",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """One line."""

    check: str
    verdict: Literal["ok", "warn", "fail"]
    text: str
    remedy: str = ""


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = "Each line is ok, warn or fail, and says what to do. The exit code is 1 if a line is fail."


def run(call: Call) -> int:
    """Check everything that can be checked from here."""
    findings: list[Finding] = []
    for check in _checks(call):
        for finding in check():
            findings.append(finding)
            if call.format.is_for_people:
                _say(call, finding)
    if not call.format.is_for_people:
        show_body(call, [_body(each) for each in findings])
    return FAILED if any(each.verdict == "fail" for each in findings) else DONE


def _say(call: Call, finding: Finding) -> None:
    verdict = call.out.paint(f"{finding.verdict:<4}", _COLOURS[finding.verdict])
    call.out.say(f"{verdict}  {finding.check}: {printable(finding.text, LINE)}")
    if finding.remedy:
        call.out.say(f"      {printable(finding.remedy, LINE)}")


def _body(finding: Finding) -> JsonObject:
    more = {"remedy": finding.remedy} if finding.remedy else {}
    return {"check": finding.check, "verdict": finding.verdict, "text": finding.text, **more}


def _checks(call: Call) -> Iterator[Callable[[], Iterator[Finding]]]:
    """Yield the checks in their order; without a gateway nothing after it makes sense."""
    yield lambda: _configuration(call)
    reached: list[bool] = []
    yield lambda: _reachable(call, reached)
    if reached:
        yield lambda: _version(call)
        allowed: list[bool] = []
        yield lambda: _authentication(call, allowed)
        yield lambda: _readiness(call)
        if allowed:
            yield lambda: _services(call)
            yield lambda: _guarded("VIMs", lambda: _vims(call))
            yield lambda: _guarded("operations", lambda: _operations(call))


def _configuration(call: Call) -> Iterator[Finding]:
    path = contexts.config_path(call.environment)
    try:
        context = chosen_context(call.environment, call.given)
        gateway = call.gateway
    except Fault as fault:
        yield Finding("configuration", "fail", str(fault), f"mend {path}, or see kubevnfm config --help")
        return
    where = f"from {path}" if path.exists() else f"no {path}"
    how = "" if context.has_credentials else ", without credentials"
    yield Finding("configuration", "ok", f"{gateway.url} ({where}{how})")
    if gateway.proxy is not None:
        yield Finding("proxy", "ok", f"{gateway.proxy} leads to the gateway")
    if context.insecure_skip_tls_verify:
        remedy = "ca in the context, or KUBEVNFM_CLIENT_CA, names the CA of its certificate"
        yield Finding("configuration", "warn", "the certificate of the gateway is not checked", remedy)
    if path.exists() and path.stat().st_mode & 0o077:
        yield Finding("configuration", "warn", f"{path} can be read by other users", f"chmod 600 {path}")
    if gateway.url.startswith("http://") and not _is_local(gateway.url) and context.has_credentials:
        text = "credentials are sent to another machine without TLS"
        yield Finding(
            "configuration", "warn", text, "use https: docs/security.md says how the gateway gets a certificate"
        )


def _is_local(url: str) -> bool:
    host = url.removeprefix("http://").rpartition("@")[2]
    return host.startswith(("127.", "localhost", "[::1]"))


def _reachable(call: Call, reached: list[bool]) -> Iterator[Finding]:
    began = time.monotonic()
    sent_at = datetime.now(UTC)
    try:
        reply = call.gateway.get("/health/live")
    except Fault as fault:
        remedy = {
            UNREACHABLE: "is the gateway running, and the URL right? kubevnfm config view; curl the URL to see more",
            NOT_ALLOWED: "a proxy before the gateway refuses the call",
        }.get(fault.code, "is this a gateway of kubevnfm? kubevnfm config view shows the URL")
        yield Finding("gateway", "fail", str(fault), remedy)
        return
    took_s = time.monotonic() - began
    reached.append(True)
    verdict: Literal["ok", "warn"] = "ok" if took_s < _SLOW_S else "warn"
    remedy = "" if took_s < _SLOW_S else "the gateway or the way to it is slow: kubevnfm top shows what runs"
    yield Finding("gateway", verdict, f"answers in {took_s * 1000:.0f} ms", remedy)
    yield from _clock(reply, sent_at, took_s)


def _clock(reply: Reply, sent_at: datetime, took_s: float) -> Iterator[Finding]:
    try:
        theirs = email.utils.parsedate_to_datetime(str(reply.headers.get("Date")))
    except (TypeError, ValueError):
        yield Finding("clock", "warn", "the gateway does not say its time", "a proxy may remove the header Date")
        return
    theirs = theirs.replace(tzinfo=theirs.tzinfo or UTC)
    # The header has whole seconds.
    differs_s = abs((theirs - sent_at).total_seconds() - took_s / 2)
    differs_s = max(0.0, differs_s - 1.0 - took_s / 2)
    if differs_s < _CLOCK_WARN_S:
        yield Finding("clock", "ok", "agrees with the gateway's")
        return
    verdict: Literal["warn", "fail"] = "fail" if differs_s > _CLOCK_FAIL_S else "warn"
    yield Finding(
        "clock",
        verdict,
        f"differs by {differs_s:.0f} s from the gateway's",
        "set both by NTP: timedatectl shows whether it runs",
    )


def _version(call: Call) -> Iterator[Finding]:
    ours = client_version()
    try:
        theirs = gateway_version(call.gateway)
    except Fault as fault:
        yield Finding("versions", "warn", str(fault), "the gateway's document could not be read")
        return
    if ours.split(".")[:2] == theirs.split(".")[:2]:
        yield Finding("versions", "ok", f"command line {ours}, gateway {theirs}")
    else:
        text = f"command line {ours}, gateway {theirs}"
        yield Finding("versions", "warn", text, "install the command line of the gateway's version")


def _authentication(call: Call, allowed: list[bool]) -> Iterator[Finding]:
    try:
        call.gateway.get("/vnflcm/v2/vnf_instances", {"fields": "id"})
    except Fault as fault:
        remedy = "see kubevnfm config view, and docs/security.md for the gateway's users and roles"
        if isinstance(fault, Refused) and fault.status == 401:
            remedy = (
                "the credentials are missing, wrong or expired: kubevnfm config set-context NAME --token-file or --user"
            )
        yield Finding("authentication", "fail", str(fault), remedy)
        return
    allowed.append(True)
    yield Finding("authentication", "ok", "the gateway accepts the credentials")


def _readiness(call: Call) -> Iterator[Finding]:
    """The parts that the gateway itself reports, the services beside it, code of packages, commands that were put aside."""
    try:
        states = call.gateway.get("/health/ready").object()
    except Unreachable as fault:
        yield Finding("readiness", "fail", str(fault), "the gateway went away meanwhile")
        return
    except Fault as fault:
        body = fault.body if isinstance(fault, Refused) else None
        states = body if isinstance(body, dict) else {}
        text = _lacking(states) or str(states.get("status", fault))
        yield Finding("readiness", "fail", f"the gateway is not ready: {text}", _READINESS)
    else:
        lacking = _lacking(states)
        has_failed = any(each.get("state") == "failed" for each in objects(states.get("parts")))
        if lacking:
            text = f"the gateway is {states.get('status')}: {lacking}"
            yield Finding("readiness", "fail" if has_failed else "warn", text, _READINESS)
        else:
            yield Finding("readiness", "ok", f"the gateway is {states.get('status')}")
    code = states.get("packageCode")
    if code == "refused":
        text = "code of packages is not run: the kernel cannot confine it"
        yield Finding("package code", "warn", text, "docs/security.md names what the kernel needs")
    elif code is not None:
        yield Finding("package code", "ok" if code == "confined" else "warn", f"is run {code}")
    parked = objects(states.get("parkedCommands"))
    if parked:
        names = ", ".join(f"{each.get('command')} of {each.get('service')}" for each in parked[:_MOST_NAMED])
        remedy = "handler-ended-process in docs/errors.md says how to go on"
        yield Finding(
            "parked commands", "fail", f"{len(parked)} commands ended their process again and again: {names}", remedy
        )
    for name, value in states.items():
        if name not in ("status", "parts", "packageCode", "parkedCommands") and isinstance(value, str | int | bool):
            yield Finding(name, "ok", str(value))


def _lacking(states: JsonObject) -> str:
    """Return the parts that are not ready; empty: all are, or the gateway is older than their list."""
    parts = [each for each in objects(states.get("parts")) if each.get("state") in ("degraded", "failed")]
    return "; ".join(f"{each.get('part')} since {each.get('since')}: {each.get('text')}" for each in parts)


def _services(call: Call) -> Iterator[Finding]:
    """Each service with its processes, as they report over the bus."""
    try:
        services = objects(call.gateway.get("/kubevnfm/v1/services").object().get("services"))
    except Refused as fault:
        if not fault.is_older:
            yield Finding("services", "warn", str(fault), "this could not be checked")
        else:
            text = "this gateway is older than the view of services: of them, its own state alone is checked"
            yield Finding(
                "services",
                "warn",
                text,
                "kubevnfm version shows both versions; docs/rolling-update.md says how to update",
            )
        return
    except Fault as fault:
        yield Finding("services", "warn", str(fault), "this could not be checked")
        return
    for service in services:
        yield _service(service)
        bad = [
            each for each in objects(service.get("processes")) if each.get("state") != "ready" or each.get("troubles")
        ]
        yield from (_process(service, each) for each in bad[:_MOST_NAMED])


def _service(service: JsonObject) -> Finding:
    state, processes = service.get("state"), objects(service.get("processes"))
    ready = sum(each.get("state") == "ready" for each in processes)
    count = (
        f"{ready} of {len(processes)} process{'' if len(processes) == 1 else 'es'} ready" if processes else "no process"
    )
    versions = sorted({str(each.get("version")) for each in processes})
    name, known = f"service {printable(service.get('name'))}", f", version {' and '.join(versions)}" if versions else ""
    if state in _ENDS:
        why = f"{state}: {service.get('text') or 'no reason is known'}"
        return Finding(
            name, _ENDS[str(state)], f"{why} ({count}; its work: {service.get('work')})", _REMEDIES[str(state)]
        )
    if state != "ready":
        return Finding(name, "warn", f"{state}: {service.get('text')}")
    if len(versions) > 1:
        return Finding(name, "warn", f"{count}{known}", "an upgrade that has not ended: docs/rolling-update.md")
    verdict: Literal["ok", "warn"] = "ok" if service.get("health") in ("ok", None) else "warn"
    return Finding(name, verdict, f"{count}{known}")


def _process(service: JsonObject, process: JsonObject) -> Finding:
    troubles = "; ".join(
        f"{each.get('part')}: {each.get('text')}" for each in objects(process.get("troubles"))[:_MOST_NAMED]
    )
    seen = f"since {process.get('since')}, last report {process.get('seenAt')}"
    # A service of which others are ready does its work.
    return Finding(
        f"process {process.get('pid')} of {printable(service.get('name'))} on {printable(process.get('host'))}",
        _ENDS.get(str(service.get("state")), "warn"),
        f"{process.get('state')} {seen}{f': {troubles}' if troubles else ''}",
        "" if troubles else "was it killed, or does it hang? Its log says more (docs/monitoring.md)",
    )


def _guarded(check: str, findings: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Yield the findings; a refusal of the gateway is one too."""
    try:
        yield from findings()
    except Fault as fault:
        yield Finding(check, "warn", str(fault), "this could not be checked")


def _vims(call: Call) -> Iterator[Finding]:
    vims = objects(call.gateway.get("/kubevnfm/v1/vims", {"limit": str(_PAGE)}).object().get("items"))
    if not vims:
        yield Finding(
            "VIMs",
            "warn",
            "none is registered",
            "kubevnfm create vim -f FILE; kubevnfm explain vim shows its fields",
        )
        return
    wrong = 0
    for vim in vims:
        name = f"VIM {printable(vim.get('name'))}"
        state, days = vim.get("state"), part(vim, "credentialsEnd", "daysLeft")
        if state != "ACTIVE":
            wrong += 1
            reason = vim.get("text") or vim.get("lastError") or "no reason is known"
            remedy = f"kubevnfm get vim {vim.get('id')} -o yaml; does {vim.get('endpoint')} answer, and are its access data right?"
            yield Finding(name, "fail" if state in ("ERROR", "UNREACHABLE") else "warn", f"{state}: {reason}", remedy)
        elif isinstance(days, int) and days <= _SOON_DAYS:
            wrong += 1
            text = f"its {part(vim, 'credentialsEnd', 'part')} ends in {days} days"
            yield Finding(
                name, "fail" if days <= 0 else "warn", text, "rotate the access data: kubevnfm apply --renew-secrets"
            )
        elif vim.get("health") not in ("ok", None):
            wrong += 1
            yield Finding(name, "warn", str(vim.get("text") or vim.get("health")))
    if len(vims) > wrong:
        yield Finding("VIMs", "ok", f"{len(vims) - wrong} of {len(vims)} answer")


def _operations(call: Call) -> Iterator[Finding]:
    query = {"state": "FAILED_TEMP", "limit": str(_PAGE)}
    failed = objects(call.gateway.get("/kubevnfm/v1/operations", query).object().get("items"))
    if not failed:
        yield Finding("operations", "ok", "none waits for a decision")
    for each in failed[:_MOST_NAMED]:
        text = f"{each.get('operation')} of {each.get('vnfInstanceName') or each.get('vnfInstanceId')} is FAILED_TEMP"
        reason = part(each, "cause", "text") or part(each, "error", "detail")
        yield Finding(
            "operations", "warn", f"{text}: {reason}", f"kubevnfm why {each.get('id')}; then retry, rollback or fail"
        )
    if len(failed) > _MOST_NAMED:
        more = f"{len(failed) - _MOST_NAMED} more wait in FAILED_TEMP"
        yield Finding("operations", "warn", more, "kubevnfm get op --where state=FAILED_TEMP")
