"""Every end-to-end test leaves the cloud as it found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from lab_process import LabControl


@pytest.fixture(autouse=True)
async def leaves_nothing_behind(lab: LabControl) -> AsyncIterator[None]:
    """Fail a test after which more is in the lab than before; the next ones are judged by what they add."""
    before = await lab.names()
    yield
    left = await lab.names() - before
    assert not left, f"left in the lab: {sorted(left)}"
