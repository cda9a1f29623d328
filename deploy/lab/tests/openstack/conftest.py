"""A cloud on a free port over a twin of the machines, and a client that speaks its HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from clouds.openstack_stand import Stand, standing
from kubevnfm_lab.openstack.settings import CloudSettings


@pytest.fixture
def settings() -> CloudSettings:
    """Return the settings of a test's cloud; a test module overrides it."""
    return CloudSettings()


@pytest.fixture
async def stand(settings: CloudSettings) -> AsyncIterator[Stand]:
    async with standing(settings) as stand:
        yield stand
