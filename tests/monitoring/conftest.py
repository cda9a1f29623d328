"""kubevnfm in one process, where a real Alertmanager calls it with a user's password."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from callers.user import User
from callers.users import hashed
from clouds.lab_process import LabProcess
from real.monitoring import Monitoring, Named, named
from servers.installations import Installation, SingleInstallation


class Operator(User):
    """A user that logs in with the password of Alertmanager, and may do everything."""

    def __init__(self, installation: Installation, login: str) -> None:
        super().__init__(installation)
        self._login = f"Basic {b64encode(login.encode()).decode()}"

    async def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request with the login."""
        headers = {"Authorization": self._login, **(more.pop("headers", None) or {})}
        return await super().call(method, path, body, headers=headers, **more)


@pytest.fixture(scope="session")
def given() -> Named:
    """The named Prometheus and Alertmanager."""
    found = named()
    if found is None:
        pytest.skip("no Prometheus and Alertmanager are named: `make test-monitoring`, docs/real-monitoring.md")
    return found


@pytest.fixture(scope="session")
def watched(given: Named, lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """kubevnfm at the address that Alertmanager calls, with its user."""
    folder = tmp_path_factory.mktemp("watched")
    name, _, password = given.login.partition(":")
    users = folder / "users.toml"
    users.write_text(f'[users.{name}]\nroles = ["admin"]\npassword = "{hashed(password)}"\n')
    running = SingleInstallation(
        folder,
        lab_process,
        KUBEVNFM_PORT=str(urlsplit(given.receiver).port),
        KUBEVNFM_AUTH_MODES="basic",
        KUBEVNFM_AUTH_USERS_FILE=str(users),
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
async def operator(watched: Installation, given: Named) -> AsyncIterator[User]:
    """A user of API version 2, with the lab as the default VIM."""
    async with Operator(watched, given.login) as caller:
        await caller.register_lab()
        yield caller


@pytest.fixture
async def monitoring(given: Named) -> AsyncIterator[Monitoring]:
    """Prometheus and Alertmanager, without rules and series."""
    async with Monitoring(given) as running:
        yield running
