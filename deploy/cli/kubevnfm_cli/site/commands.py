"""Runs the verbs of site files: ``apply -f``, ``diff -f`` and ``delete -f``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from kubevnfm_cli.call import Call
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.faults import DONE, FAILED, STOPPED, USAGE, UsageFault
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.output import show_body
from kubevnfm_cli.site.apply import Result, Run
from kubevnfm_cli.site.model import Key, SiteRefused
from kubevnfm_cli.site.options import Action
from kubevnfm_cli.site.reading import read_site
from kubevnfm_cli.site.world import Options, World
from kubevnfm_cli.terminal import LINE, printable

_SIGNS: Final = {"create": "+", "upload": "+", "send": "+", "delete": "-", "terminate": "-", "leave": "-"}
_COLOURS: Final = {"+": "green", "-": "red", "~": "yellow", "!": "red"}


def run(call: Call, action: Action) -> int:
    """Apply, compare or remove a site."""
    given = call.given
    if call.format.kind == "csv":
        raise UsageFault("-o csv is not for sites: json, yaml, jsonl, name or jsonpath= expected")
    timeout_s = seconds_of(getattr(given, "timeout", "1h"))
    try:
        site = read_site(given.files, call.environment, needs_values=action != "delete")
    except SiteRefused as refused:
        for line in refused.lines:
            call.note(f"kubevnfm: {printable(line, LINE)}")
        return USAGE
    is_dry = action == "diff" or given.dry_run
    report = _Report(call, is_dry=is_dry)
    world = World(
        _connector(call),
        site,
        Options(
            adopts=getattr(given, "adopt", False),
            waits=getattr(given, "wait", False),
            renews_secrets=getattr(given, "renew_secrets", False),
            timeout_s=timeout_s,
        ),
        report.progress,
    )
    work = Run(world, report)
    try:
        code = _work(work, action, is_dry=is_dry)
    except KeyboardInterrupt:
        call.note("\ninterrupted: what has begun goes on; the same command again continues")
        return STOPPED
    report.end(work.results)
    differs = any(result.outcome == "planned" for result in work.results)
    return FAILED if code == DONE and differs and getattr(given, "exit_code", False) else code


def _work(work: Run, action: Action, *, is_dry: bool) -> int:
    if action == "delete":
        return work.compare_removal() if is_dry else work.remove()
    return work.compare(checks=action == "apply") if is_dry else work.apply()


def _connector(call: Call) -> Callable[[], Gateway]:
    """Return what makes clients for threads: a client has one connection."""
    return call.gateway.another


class _Report:
    """Writes a line for each entry when it is done; for programs, a list at the end."""

    def __init__(self, call: Call, *, is_dry: bool) -> None:
        self._call, self._is_dry = call, is_dry
        self._is_for_people = call.format.is_for_people

    def __call__(self, result: Result) -> None:
        if result.outcome in ("failed", "skipped"):
            sign = "!" if self._is_dry else ""
            self._call.note(self._call.err.paint(printable(f"{sign}{' ' if sign else ''}{result.line}", LINE), "red"))
        elif self._is_for_people and not (self._is_dry and result.outcome == "unchanged"):
            self._write(result)

    def _write(self, result: Result) -> None:
        out = self._call.out
        if not self._is_dry:
            out.say(printable(result.line, LINE))
            return
        sign = _SIGNS.get(result.verbs[0], "~") if result.verbs else "~"
        out.say(out.paint(printable(f"{sign} {result.line}", LINE), _COLOURS[sign]))
        for difference in result.differences:
            out.say(f"    {printable(difference, LINE)}")

    def progress(self, key: Key, text: str) -> None:
        """Write what is waited for."""
        self._call.note(self._call.err.paint(printable(f"{key}: {text}", LINE), "dim"))

    def end(self, results: list[Result]) -> None:
        """Write the list for programs, or for people how many there were."""
        if not self._is_for_people:
            if self._call.format.kind == "name":
                self._call.out.stream.write("".join(f"{result.key}\n" for result in results))
            else:
                show_body(self._call, [_body(result) for result in results])
        elif self._is_dry:
            count = Counter(result.outcome for result in results)
            skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
            line = f"{count['planned']} to change, {count['unchanged']} as wanted, {count['failed']} refused{skipped}"
            self._call.note(line)


def _body(result: Result) -> JsonObject:
    return {
        "kind": str(result.key).partition("/")[0],
        "name": result.key.name,
        "outcome": result.outcome,
        "steps": result.verbs,
        "differences": result.differences,
        **({"text": result.text} if result.text else {}),
    }
