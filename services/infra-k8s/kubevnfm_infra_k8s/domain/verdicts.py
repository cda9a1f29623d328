"""The verdicts about objects, as kstatus names them, and what a verdict needs to know beside the object."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from kubevnfm_csar.waits import WantedResult, WantedValue


class Status(StrEnum):
    """kstatus's name for the state of an object."""

    CURRENT = "Current"
    """The object matches its manifest and works."""
    IN_PROGRESS = "InProgress"
    FAILED = "Failed"
    TERMINATING = "Terminating"
    NOT_FOUND = "NotFound"


@dataclass(frozen=True)
class Verdict:
    """The decision for one object."""

    status: Status
    message: str = ""
    """For people: ``1 of 2 ready``."""
    is_final: bool = False
    """Waiting cannot end this failure."""
    again_in_s: float | None = None
    """After this time the verdict can change although the object does not."""

    @property
    def is_current(self) -> bool:
        return self.status is Status.CURRENT


@dataclass(frozen=True)
class Evaluation:
    """The results of the expressions of a wait for an object as it is now."""

    holds: bool
    has_failed: bool = False
    error: str = ""
    """Why it is not known whether the first one holds."""


@dataclass(frozen=True)
class Observation:
    """The facts about an object that it does not contain itself."""

    now: datetime
    unchanged_s: float = 0.0
    """Time since the object's last change."""
    has_status: bool = True
    """Whether its kind has a status subresource."""
    waits_for_consumer: frozenset[str] | None = frozenset()
    """Storage classes that bind a claim only when a pod uses it; "" if the default class is one. None if the credentials
    do not permit to read the classes: then a claim that is not bound counts as one that waits, and the pods decide."""
    unready: frozenset[str] = frozenset()
    """The names of claims, DataVolumes and Secrets that are awaited with the object and are not ready, or only just."""
    settle_s: float = 5.0
    wanted: WantedValue | WantedResult | None = None
    """The condition that the order of the package names, in the place of the rules of the object's kind."""
    evaluated: Evaluation | None = None
    """The results of the expressions of ``wanted``; None if they were not evaluated."""
    until_ended: bool = False
    """Whether a pod must have ended well, and not only run."""
    only_served: bool = False
    """Whether a definition is ready once its kind is served. Its conversion webhook may belong to objects that are sent
    after it."""


CURRENT: Final = Verdict(Status.CURRENT)
NOT_FOUND: Final = Verdict(Status.NOT_FOUND, "does not exist")


def in_progress(message: str) -> Verdict:
    """Return the verdict that the object still changes."""
    return Verdict(Status.IN_PROGRESS, message)


def failed(message: str) -> Verdict:
    """Return the verdict that the object will not become ready, however long one waits."""
    return Verdict(Status.FAILED, message, is_final=True)
