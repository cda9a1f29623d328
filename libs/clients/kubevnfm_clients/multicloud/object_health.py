"""Whether a pod or virtual machine works, by what the inventory has of it: the one rule of its events, of marks and of views. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

Health = Literal["ok", "progressing", "problem", "unknown"]
_OF_PHASE: Final[Mapping[str, Health]] = {"Running": "ok", "Succeeded": "ok", "Failed": "problem", "Unknown": "unknown"}
"""Any other phase is one on the way to Running."""
_PATIENCE: Final = timedelta(minutes=5)
"""One that is so long on its way has a problem."""


class SeenState(Protocol):
    """The state of a pod or virtual machine, as it was seen."""

    @property
    def phase(self) -> str: ...

    @property
    def ready(self) -> bool | None: ...

    @property
    def trouble(self) -> str: ...

    @property
    def node(self) -> str: ...


class DatedState(SeenState, Protocol):
    """The same with the time at which it was seen first."""

    @property
    def changed_at(self) -> str: ...


def health_of(each: DatedState, now: datetime) -> tuple[Health, str]:
    """Return its health, and why it is not ``ok``."""
    health, text = state_of(each)
    since = datetime.fromisoformat(each.changed_at) if health == "progressing" and each.changed_at else now
    return "problem" if now - since > _PATIENCE else health, text


def is_ill(each: SeenState) -> bool:
    """Return whether it has a problem, or has one if it stays as it is."""
    return state_of(each)[0] in {"problem", "progressing"}


def state_of(each: SeenState) -> tuple[Health, str]:
    """Return its health, however long it has been so, and why it is not ``ok``."""
    health = _OF_PHASE.get(each.phase, "progressing")
    is_late = health == "progressing" or (each.phase == "Running" and each.ready is False)
    if each.trouble and (health != "ok" or is_late):
        return "problem", each.trouble
    if each.phase == "Running" and is_late:
        return "progressing", "it is not ready"
    where = ", and it has no node yet" if is_late and not each.node else ""
    return health, "" if health == "ok" else f"the phase is {each.phase or 'not known'}{where}"
