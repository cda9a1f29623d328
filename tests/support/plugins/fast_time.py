"""A pytest plugin: the mark ``looptime`` lets the time of a test's event loop pass as fast as the test does.

It takes the place of the plugin of looptime, which changes every event loop, those of tests without the mark too: their selectors are asked twice,
and each fixture costs a search through pytest-asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator

import looptime
import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Add the mark."""
    config.addinivalue_line("markers", "looptime: the time of the event loop passes at once")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Change the loop of a test with the mark; fixtures had their own time with it, and no other test has it."""
    if pyfuncitem.get_closest_marker("looptime") is None:
        return (yield)
    loop = asyncio.get_event_loop_policy().get_event_loop()
    assert isinstance(loop, asyncio.BaseEventLoop)
    with looptime.patch_event_loop(loop, _enabled=False).looptime_enabled():
        return (yield)
