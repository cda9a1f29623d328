"""Runs a reader on many inputs, and keeps the first one that it does not stand."""

from __future__ import annotations

import itertools
import signal
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import hypothesis
from hypothesis import HealthCheck, Phase, given, settings

from fuzzed.readers import Reader

MOST_S: Final = 2.0
"""Processor time for one input."""
_STUCK_S: Final = 20.0
_IN_A_ROUND: Final = 200


class NotStood(AssertionError):
    """A reader did not stand an input."""


class _Stuck(BaseException):
    """The reader does not end."""


def fault_of(reader: Reader, raw: bytes) -> str:
    """Return what is wrong with the reading of an input; "" if nothing is."""

    def stop(_: int, __: FrameType | None) -> NoReturn:
        raise _Stuck

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, _STUCK_S)
    began = time.process_time()
    try:
        with suppress(*reader.refusals):
            reader.read(raw)
    # Any other exception is what is searched for.
    except (Exception, _Stuck):  # noqa: BLE001
        return traceback.format_exc(limit=-8)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    took = time.process_time() - began
    return f"took {took:.1f} s" if took > MOST_S else ""


def run(
    reader: Reader, *, seconds: float, seed: int, examples: int = _IN_A_ROUND, keep: Callable[[bytes], object] = len
) -> int:
    """Try inputs, at least one round of ``examples``; return their number. Raises NotStood with a small input.

    ``keep`` gets each input before it is read, for the case that the process ends.
    """
    until, tried = time.monotonic() + seconds, 0
    worst: dict[str, bytes] = {}

    for number in itertools.count(seed):

        @hypothesis.seed(number)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            report_multiple_bugs=False,
        )
        @given(reader.inputs)
        def trial(raw: bytes) -> None:
            nonlocal tried
            tried += 1
            keep(raw)
            fault = fault_of(reader, raw)
            if fault:
                worst[fault] = raw
                raise NotStood(fault)

        try:
            trial()
        except NotStood as error:
            fault = str(error)
            raise NotStood(f"{fault}\nseed {number}, input {worst[fault][:2000]!r}") from None
        if time.monotonic() >= until:
            return tried
    raise AssertionError


def kept_in(path: Path) -> Callable[[bytes], object]:
    """Return a function that writes an input to a file."""
    return path.write_bytes
