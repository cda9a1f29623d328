"""The thread that cuts connections whose answers are late."""

from __future__ import annotations

import threading

import pytest
from kubevnfm_keystone.guard import _Deadlines

SOON_S = 5.0
"""Less than the thread waits while it has no deadline."""


@pytest.mark.parametrize("other_s", [None, 3600.0])
def test_a_deadline_passes_while_the_thread_waits_for_a_later_one_or_for_none(other_s: float | None) -> None:
    deadlines = _Deadlines()

    def passes_often() -> None:
        # The thread looks again after each: it sleeps, or is about to, when the next deadline comes.
        for _ in range(50):
            is_cut = threading.Event()
            with deadlines.within(0.001, is_cut.set) as deadline:
                assert is_cut.wait(SOON_S)
            assert deadline.has_passed

    if other_s is None:
        passes_often()
    else:
        with deadlines.within(other_s, lambda: None) as other:
            passes_often()
        assert not other.has_passed
    assert not deadlines._waiting
