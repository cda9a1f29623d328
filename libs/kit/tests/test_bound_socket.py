"""A port that was found free stays so until its listener starts."""

from __future__ import annotations

import errno
import socket

import pytest
from aiohttp import ClientSession, web
from kubevnfm_kit.http import bound_socket, serving
from servers.ports import listens


def held(port: int) -> bool:
    """Return whether another socket cannot take the port."""
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


async def test_the_port_is_reserved_before_it_listens() -> None:
    bound = bound_socket("127.0.0.1")
    port = bound.getsockname()[1]
    assert held(port)
    app = web.Application()
    async with serving(app, host="127.0.0.1", port=port, bound=bound) as listening, ClientSession() as session:
        assert listening == port
        async with session.get(f"http://127.0.0.1:{port}/") as answer:
            assert answer.status == 404
    assert not listens(port)


async def test_the_port_is_free_after_its_listener() -> None:
    bound = bound_socket("127.0.0.1")
    port = bound.getsockname()[1]
    # No connection: the kernel would keep the port of one for a minute.
    async with serving(web.Application(), host="127.0.0.1", port=port, bound=bound):
        assert held(port)
    assert not held(port)


def test_a_host_of_another_machine_is_refused() -> None:
    with pytest.raises(OSError, match="Cannot assign requested address"):
        bound_socket("192.0.2.1")
