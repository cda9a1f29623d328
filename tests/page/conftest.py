"""The web page in Debian's Chromium, on a real gateway with users and the lab: one of each for all tests of the folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Final

import pytest
import pytest_asyncio
from callers.browser import Client, Tab
from callers.users import users_file
from clouds.lab_process import LabControl, LabProcess
from servers.installations import Installation, SingleInstallation

if TYPE_CHECKING:
    from playwright.async_api import Browser

CHROMIUM: Final = "/usr/bin/chromium"


@pytest.fixture(scope="session")
def gateway(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("page")
    users = users_file(folder, anna=["admin"], rita=["reader"])
    settings = {"KUBEVNFM_AUTH_MODES": "basic", "KUBEVNFM_AUTH_USERS_FILE": str(users)}
    installation = SingleInstallation(folder, lab_process, **settings)
    installation.start()
    yield installation
    installation.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def client(gateway: Installation) -> AsyncIterator[Client]:
    async with Client(gateway) as client:
        await client.register_lab()
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def faults(lab_process: LabProcess) -> AsyncIterator[LabControl]:
    """The control interface of the lab, in the loop of the browser."""
    async with LabControl(lab_process.control_url) as control:
        yield control


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        # Tests run as root in containers, where Chromium has no sandbox of its own.
        yield await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest_asyncio.fixture(loop_scope="session")
async def tab(browser: Browser, gateway: Installation) -> AsyncIterator[Tab]:
    """A tab without cookies, in which no script may fail and no request may leave the gateway."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    tab = Tab(await context.new_page(), gateway.url)
    tab.heed()
    yield tab
    await context.close()
    assert not tab.wrong
    assert not tab.elsewhere
