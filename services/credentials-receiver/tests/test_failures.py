from __future__ import annotations

import pytest
from kubevnfm_credentials_receiver.adapters.failures import Failures
from kubevnfm_credentials_receiver.domain.errors import TooManyFailures


def test_an_address_waits_after_too_many_failures_and_others_do_not() -> None:
    now = 100.0
    failures = Failures(a_minute=3, now=lambda: now)
    for _ in range(3):
        failures.note("10.0.0.1")

    for _ in range(1000):
        with pytest.raises(TooManyFailures) as refusal:
            failures.note("10.0.0.1")
    assert 1 <= refusal.value.retry_after_s <= 61
    failures.note("10.0.0.2")

    now += 60.0
    failures.note("10.0.0.1")
