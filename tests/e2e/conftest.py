"""Every end-to-end test leaves the cloud as it found it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from lab_process import LabControl


@pytest.fixture(autouse=True)
async def leaves_nothing_behind(lab: LabControl) -> AsyncIterator[None]:
    """Fail a test after which something is left in the lab."""
    yield
    left = await lab.inventory()
    assert not left, f"left in the lab: {left}"
