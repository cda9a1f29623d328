"""Works on the entries of a site in the order of their references: independent ones at the same time, bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from kubevnfm_cli.site.model import Key

AT_ONCE: Final = 8
_LOOK_S: Final = 0.5
"""A wait without a limit would not see Ctrl-C on some systems."""

Needs = Mapping[Key, frozenset[Key]]


def reversed_needs(needs: Needs) -> dict[Key, frozenset[Key]]:
    """Return the order in which entries are removed: each after those that need it."""
    users: dict[Key, set[Key]] = {key: set() for key in needs}
    for key, its in needs.items():
        for needed in its:
            users[needed].add(key)
    return {key: frozenset(its) for key, its in users.items()}


def in_order(
    needs: Needs,
    work: Callable[[Key], bool],
    skip: Callable[[Key, Key], None],
    *,
    stop: threading.Event,
    at_once: int = AT_ONCE,
) -> None:
    """Call ``work`` for each key after those that it needs; at most ``at_once`` calls run at a time.

    ``work`` returns whether it has succeeded, and raises nothing; ``skip`` is called with a key whose needs were not met, and
    the first one of these. ``stop`` ends it early, and is set if the caller is interrupted: running work should look at it.
    """
    left: dict[Key, set[Key]] = {key: set(its) & set(needs) for key, its in needs.items()}
    failed: set[Key] = set()
    running: dict[Future[bool], Key] = {}
    with ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="site") as pool:
        try:
            while (left and not stop.is_set()) or running:
                for key in [key for key, its in left.items() if not its][: at_once - len(running)]:
                    if not stop.is_set():
                        running[pool.submit(work, key)] = key
                        del left[key]
                done, _ = wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED)
                for future in done:
                    key = running.pop(future)
                    if not future.result():
                        failed.add(key)
                        _leave_out(left, failed, skip)
                    for its in left.values():
                        its.discard(key)
        except BaseException:
            stop.set()
            raise


def _leave_out(left: dict[Key, set[Key]], failed: set[Key], skip: Callable[[Key, Key], None]) -> None:
    """Leave out what needs something that failed, and what needs that."""
    while unmet := [(key, min(its & failed)) for key, its in left.items() if its & failed]:
        for key, cause in unmet:
            skip(key, cause)
            failed.add(key)
            del left[key]
