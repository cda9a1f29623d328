"""Faults on demand and the count of calls: how tests make the lab slow, failing or hanging, and observe its calls."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from kubevnfm_lab.ports import ConnectionDropped, FaultInjected


@dataclass
class Fault:
    """One fault: which calls it applies to, its effect, and to how many calls."""

    part: str = "*"
    verb: str = "*"
    node: str = "*"
    effect: str = "fail"
    """slow (wait ``seconds``), fail (``status`` and ``message``), hang (until removed), drop (close without answer)."""
    seconds: float = 0.0
    status: int = 500
    message: str = "a fault was asked for"
    times: int = -1
    """How many more calls it applies to; -1 means all."""
    after: int = 0
    """How many matching calls pass before it takes effect."""
    fault_id: int = 0
    released: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    EFFECTS: ClassVar[tuple[str, ...]] = ("slow", "fail", "hang", "drop")

    def meets(self, part: str, verb: str, node: str) -> bool:
        """Return whether the fault's three patterns (fnmatch) match the call."""
        return fnmatchcase(part, self.part) and fnmatchcase(verb, self.verb) and fnmatchcase(node, self.node)

    def public(self) -> dict[str, Any]:
        """Return the fault as the HTTP interface shows it."""
        hidden = {"released"}
        return {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.name not in hidden}


class FaultBook:
    """The faults in force; ``kubevnfm_lab.ports.Faults``."""

    def __init__(self) -> None:
        self._faults: dict[int, Fault] = {}
        self._ids = itertools.count(1)

    def add(self, **rule: Any) -> Fault:
        """Add a fault and return it with its id; raise ValueError or TypeError that names the invalid field."""
        fault = Fault(**rule)
        if fault.effect not in Fault.EFFECTS:
            raise ValueError(f"effect: one of {', '.join(Fault.EFFECTS)} expected, got {fault.effect!r}")
        fault.fault_id = next(self._ids)
        self._faults[fault.fault_id] = fault
        return fault

    def remove(self, fault_id: int) -> bool:
        """Remove a fault; calls that hang in it continue. Return whether there was one."""
        fault = self._faults.pop(fault_id, None)
        if fault is None:
            return False
        fault.released.set()
        return True

    def clear(self) -> None:
        """Remove all faults."""
        for fault_id in list(self._faults):
            self.remove(fault_id)

    def all(self) -> Sequence[Fault]:
        """Return the faults in the order they were added."""
        return list(self._faults.values())

    async def check(self, part: str, verb: str, *, node: str = "") -> None:
        """See ``ports.Faults.check``."""
        # A copy, since faults may be added and removed while a call waits in one of them.
        for fault in list(self._faults.values()):
            if not fault.meets(part, verb, node):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            if fault.times == 0:
                continue
            if fault.times > 0:
                fault.times -= 1
            if fault.effect == "slow":
                await asyncio.sleep(fault.seconds)
            elif fault.effect == "hang":
                await fault.released.wait()
            elif fault.effect == "drop":
                raise ConnectionDropped(fault.message)
            else:
                raise FaultInjected(status=fault.status, message=fault.message)


class CallLedger:
    """Counts calls by part, verb and node; ``kubevnfm_lab.ports.Ledger``."""

    def __init__(self) -> None:
        self._calls: Counter[tuple[str, str, str]] = Counter()

    def count(self, part: str, verb: str, *, node: str = "") -> None:
        """Add one call."""
        self._calls[part, verb, node] += 1

    def calls(self) -> Sequence[Mapping[str, Any]]:
        """Return every kind of call that was made, with its count."""
        return [
            {"part": part, "verb": verb, "node": node, "count": count}
            for (part, verb, node), count in sorted(self._calls.items())
        ]

    def clear(self) -> None:
        """Reset the counters."""
        self._calls.clear()
