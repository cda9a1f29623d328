"""Every end-to-end test must remove all its resources from the cloud."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from clouds.lab_process import LabControl


@pytest.fixture(autouse=True)
async def leaves_nothing_behind(lab: LabControl) -> AsyncIterator[None]:
    """Fail a test that leaves resources in the lab. Resources from before the test do not count."""
    before = await lab.names()
    yield
    left = await lab.names() - before
    assert not left, f"left in the lab: {sorted(left)}"
