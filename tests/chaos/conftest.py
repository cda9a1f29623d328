"""Chaos: all processes run before and after every test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
from callers.user import User
from clouds.lab_process import LabControl
from servers.chaos import Chaos
from servers.installations import Installation, SixInstallation


def _chaos(name: str) -> Callable[..., AsyncIterator[Chaos]]:
    async def fixture(request: pytest.FixtureRequest, lab: LabControl) -> AsyncIterator[Chaos]:
        installation: Installation = request.getfixturevalue(name)
        async with User(installation) as user:
            await user.register_lab()
            chaos = Chaos(installation, user, lab)
            for sample in ("vm", "cluster", "cnf"):
                await user.sample(sample)
            yield chaos
            await chaos.mend()
            if isinstance(installation, SixInstallation):
                await chaos.nothing_died()

    return fixture


six_chaos = pytest.fixture(_chaos("six"), name="six_chaos")
single_chaos = pytest.fixture(_chaos("single"), name="single_chaos")
