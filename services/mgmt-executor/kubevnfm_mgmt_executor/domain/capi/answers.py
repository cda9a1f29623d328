"""The next action of a sender after each answer of a receiver: the table of capi.md chapter 10, as one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.back_off import BackOff

MOST_TRIES: Final = 8
LONGEST_S: Final = 300.0
_BACK_OFF: Final = BackOff(1.0, 30.0)
_NONCE_USED: Final = "nonce-used"
"""``type`` of the receiver's ProblemDetails; a 409 with another one is final."""
_ACCEPTED: Final = frozenset({200, 201, 202})
_BUSY: Final = frozenset({429, 503})
_EXPECTED: Final = {
    400: "the request is malformed",
    401: "the key or the signature is not accepted",
    403: "the signing key is that of another VNF instance",
    409: "it conflicts with what the receiver has stored",
    413: "the request is larger than the receiver accepts",
    415: "the receiver expects another content type",
    422: "a field or the kubeconfig is not accepted",
}


@dataclass(frozen=True)
class Answer:
    """An answer of a receiver."""

    status: int
    problem_type: str = ""
    """``type`` of its ProblemDetails."""
    detail: str = ""
    retry_after_s: float | None = None
    date: float | None = None
    """Its ``Date``, Unix seconds."""


@dataclass(frozen=True)
class Silence:
    """No answer: the connection failed or broke."""

    reason: str


@dataclass(frozen=True)
class Tries:
    """The tries so far, the one of the answer included."""

    made: int
    spent_s: float
    has_corrected_clock: bool = False
    longest_s: float = LONGEST_S


@dataclass(frozen=True)
class Accepted:
    """The receiver has done what was asked."""

    status: int


@dataclass(frozen=True)
class Again:
    """Send the request once more, with a new timestamp and nonce."""

    pause_s: float
    reason: str
    clock_offset_s: float | None = None
    """To be added to the own clock; None: as before."""


@dataclass(frozen=True)
class Refused:
    """No further try: the receiver has refused, and would do so again."""

    reason: str


@dataclass(frozen=True)
class GivenUp:
    """No further try: the tries are used up."""

    reason: str


Move = Accepted | Again | Refused | GivenUp


def next_move(answer: Answer | Silence, tries: Tries, *, now: float, jitter: float) -> Move:
    """Return what to do next. ``now``: own clock, Unix seconds; ``jitter``: 0 to 1."""
    if isinstance(answer, Silence):
        return _backed_off(answer.reason, tries, jitter)
    if answer.status in _ACCEPTED:
        return Accepted(answer.status)
    reason = _reason(answer)
    if answer.status in _BUSY and answer.retry_after_s is not None:
        return _within_time(Again(answer.retry_after_s, reason), tries)
    if answer.status == 401 and not tries.has_corrected_clock:
        # A receiver with another time refuses every timestamp; its Date says by how much both clocks differ.
        return Again(0.0, reason, clock_offset_s=0.0 if answer.date is None else answer.date - now)
    if answer.status == 409 and answer.problem_type == _NONCE_USED and tries.made < MOST_TRIES:
        return Again(0.0, reason)
    if answer.status in {408, 429} or answer.status >= 500:
        return _backed_off(reason, tries, jitter)
    return Refused(reason)


def _backed_off(reason: str, tries: Tries, jitter: float) -> Again | GivenUp:
    if tries.made >= MOST_TRIES:
        return GivenUp(f"{reason} ({tries.made} tries in {tries.spent_s:.0f} s)")
    # 1, 2, 4 ... 30 s; a part of each is random, so that senders which failed together do not come back together.
    pause_s = _BACK_OFF.after(tries.made)
    return _within_time(Again(pause_s * (0.5 + jitter / 2), reason), tries)


def _within_time(again: Again, tries: Tries) -> Again | GivenUp:
    if tries.spent_s + again.pause_s > tries.longest_s:
        return GivenUp(f"{again.reason} ({tries.made} tries in {tries.spent_s:.0f} s)")
    return again


def _reason(answer: Answer) -> str:
    if 300 <= answer.status < 400:
        return f"the receiver answered {answer.status}: redirects are not followed"
    what = _EXPECTED.get(answer.status, "")
    return ": ".join(filter(None, (f"the receiver answered {answer.status}", what, answer.detail)))
