"""Applies, compares and removes a site: one entry after those that it needs, independent ones at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from kubevnfm_cli.faults import CONFLICT, DONE, FAILED, STOPPED, Fault, Refused
from kubevnfm_cli.site.instances import Instances
from kubevnfm_cli.site.model import NOUNS, Entry, Key
from kubevnfm_cli.site.networks import Links, Subscriptions, Volumes
from kubevnfm_cli.site.order import Needs, in_order, reversed_needs
from kubevnfm_cli.site.packages import FORMER, FormerPackages, Packages
from kubevnfm_cli.site.plans import Kind, Plan
from kubevnfm_cli.site.vims import Regions, Vims
from kubevnfm_cli.site.world import World, code_of

KINDS: Final[Mapping[str, Kind]] = {
    "vims": Vims(),
    "regions": Regions(),
    "packages": Packages(),
    "instances": Instances(),
    "links": Links(),
    "volumes": Volumes(),
    "subscriptions": Subscriptions(),
    FORMER: FormerPackages(),
}
_DONE: Final[Mapping[str, str]] = {
    "create": "created", "update": "updated", "upload": "uploaded", "send": "uploaded", "adopt": "adopted", "instantiate": "instantiated",
    "modify": "modified", "scale": "scaled", "delete": "deleted", "terminate": "terminated", "leave": "left",
    "replace": "replaced", "wait for": "onboarded", "delete the former": "the former deleted",
    "change the package of": "package changed", "change the flavour of": "flavour changed", "change the links of": "links changed",
}  # fmt: skip
"""The verbs of steps, once they are done."""
_MOST_ROUNDS: Final = 60
"""Steps of one entry in one call; a thing that never becomes as it is wanted ends there."""

_DONE_BY_ANOTHER: Final = frozenset({404, 409, 412})
"""Answers to a step that another call has done already."""
_MOST_REFUSALS: Final = 2
"""The refusals of a step after which another plan is made: one may be read while another call does the step."""

Outcome = Literal["done", "unchanged", "planned", "running", "failed", "skipped"]


@dataclass
class Result:
    """The result for an entry: done, or planned."""

    key: Key
    outcome: Outcome = "unchanged"
    verbs: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    text: str = ""
    """Why it failed or was skipped, or what to know of it."""
    code: int = DONE
    refused: Sequence[str] = ()
    """The steps that the gateway has refused, as something else had come before them."""

    @property
    def line(self) -> str:
        """The line for people."""
        if self.outcome in ("done", "running"):
            done = ", ".join(_DONE.get(verb, verb) for verb in self.verbs)
            return f"{self.key} {done}{f' ({self.text})' if self.text else ''}"
        if self.outcome == "planned":
            return f"{self.key}: {', '.join(self.verbs)}"
        words = f"{self.key} {self.outcome}"
        return f"{words}: {self.text}" if self.text else words


@dataclass
class Run:
    """One call over all entries of a site."""

    world: World
    report: Callable[[Result], None]
    """Called once for each entry, from any thread."""
    results: list[Result] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def apply(self) -> int:
        """Make the site what the files say; return the exit code."""
        return self._all(self._needs(), self._applied)

    def compare(self, *, checks: bool = False) -> int:
        """Report what `apply` would do first with each entry; nothing is changed.

        ``checks``: whether the gateway checks the first operation of each instance, which callers that may only read cannot ask for.
        """
        return self._all(self._needs(), self._checked if checks else self._compared)

    def remove(self) -> int:
        """Remove what the files have made, in reverse; return the exit code."""
        return self._all(reversed_needs(self.world.site.needs()), self._removed)

    def compare_removal(self) -> int:
        """Report what `remove` would do; nothing is changed."""
        return self._all(reversed_needs(self.world.site.needs()), self._removal_compared)

    def _needs(self) -> Needs:
        """Return the order: what was replaced is removed after all instances."""
        needs = self.world.site.needs()
        self.world.awaited = frozenset().union(*needs.values()) if needs else frozenset()
        instances = frozenset(key for key in needs if key.section == "instances")
        packages = [key for key in needs if key.section == "packages"]
        return {**needs, **{Key(FORMER, key.name): instances | {key} for key in packages}}

    def _all(self, needs: Needs, work: Callable[[Entry, Result], None]) -> int:
        def on(key: Key) -> bool:
            result = Result(key)
            try:
                work(self._entry(key), result)
            except (Fault, OSError) as error:
                result.outcome, result.text, result.code = "failed", str(error), code_of(error)
            except (LookupError, TypeError, ValueError, AttributeError) as error:  # what a body of the gateway lacks
                text = f"an answer of the gateway is not as expected: {type(error).__name__} {error}"
                result.outcome, result.text, result.code = "failed", text, FAILED
            self._note(result)
            return result.code == DONE

        in_order(needs, on, self._skip, stop=self.world.stop)
        if self.world.stop.is_set():
            return STOPPED
        codes = [result.code for result in self.results if result.code != DONE]
        return next((code for code in codes if code != FAILED), codes[0]) if codes else DONE

    def _entry(self, key: Key) -> Entry:
        of_package = key if key.section != FORMER else Key("packages", key.name)
        entry = self.world.site.entries[of_package]
        return entry if of_package is key else Entry(key, entry.body, entry.source)

    def _skip(self, key: Key, cause: Key) -> None:
        if key.section in NOUNS:
            self._note(Result(key, "skipped", text=f"{cause} is not as it is wanted", code=FAILED))

    def _note(self, result: Result) -> None:
        is_silent = result.key.section == FORMER and result.outcome == "unchanged" and not result.text
        if not is_silent:
            with self._lock:
                self.results.append(result)
                self.report(result)

    def _applied(self, entry: Entry, result: Result) -> None:
        kind = KINDS[entry.key.section]
        for _ in range(_MOST_ROUNDS):
            plan = kind.plan(self.world, entry)
            self.world.things[entry.key] = plan.thing
            if not self._go_on(entry, plan, result):
                return
        raise Fault(f"{entry.key}: {result.verbs[-1]}: it is still not as it is wanted after {_MOST_ROUNDS} steps")

    def _removed(self, entry: Entry, result: Result) -> None:
        kind = KINDS[entry.key.section]
        for _ in range(_MOST_ROUNDS):
            if not self._go_on(entry, kind.removal(self.world, entry), result, is_end_needed=True):
                return
        raise Fault(f"{entry.key}: it is still there after {_MOST_ROUNDS} steps")

    def _go_on(self, entry: Entry, plan: Plan, result: Result, *, is_end_needed: bool = False) -> bool:
        """Do the first step of a plan; return whether another plan is needed."""
        if plan.refusals:
            raise _refusal(plan)
        if plan.running:
            if not (is_end_needed or self.world.must_wait(entry)):
                result.outcome = "running" if result.verbs else "unchanged"
                result.text = f"{plan.running['operation']} {plan.running['id']} goes on"
                return False
            self.world.awaited_operation(entry.key, plan.running["id"])
            result.text = f"{plan.running['operation']} has ended meanwhile"
            return True
        if not plan.steps:
            result.text = plan.note or result.text
            return False
        step = plan.steps[0]
        try:
            step.run()
        except Refused as refused:
            # Another call may have done the same at this moment; the next plan shows what is left to do.
            result.refused = [*result.refused, step.verb]
            if refused.status not in _DONE_BY_ANOTHER or result.refused.count(step.verb) > _MOST_REFUSALS:
                raise
            return True
        result.outcome = "done"
        result.verbs.append(step.verb)
        result.differences += step.differences
        # Without a wait, what it has started goes on; the next plan would see only that.
        return not (step.is_last and (is_end_needed or not self.world.must_wait(entry)))

    def _planned(self, entry: Entry, result: Result) -> Plan:
        plan = KINDS[entry.key.section].plan(self.world, entry)
        self.world.things[entry.key] = replace(plan.thing, will_change=bool(plan.steps))
        _describe(plan, result)
        return plan

    def _compared(self, entry: Entry, result: Result) -> None:
        self._planned(entry, result)

    def _checked(self, entry: Entry, result: Result) -> None:
        plan = self._planned(entry, result)
        first = plan.steps[0] if plan.steps else None
        if first is not None and first.check is not None:
            first.check()

    def _removal_compared(self, entry: Entry, result: Result) -> None:
        _describe(KINDS[entry.key.section].removal(self.world, entry), result)


def _describe(plan: Plan, result: Result) -> None:
    if plan.refusals:
        raise _refusal(plan)
    result.verbs = [step.verb for step in plan.steps]
    result.differences = [each for step in plan.steps for each in step.differences]
    result.outcome = "planned" if plan.steps else "unchanged"
    result.text = f"{plan.running['operation']} {plan.running['id']} goes on" if plan.running else plan.note


def _refusal(plan: Plan) -> Fault:
    fault = Fault("; ".join(plan.refusals))
    fault.code = CONFLICT
    return fault
