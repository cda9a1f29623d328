"""The servers of the tests get ports that no other program takes from them."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from servers.openssh import openssh
from servers.ports import free_port, listens


def listener(port: int) -> socket.socket:
    """Return a listening socket as servers make it."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_a_free_port_is_kept_for_a_server_that_starts_again() -> None:
    port = free_port()

    for _ in range(2):
        with socket.socket() as other, pytest.raises(OSError, match="Address already in use"):
            other.bind(("127.0.0.1", port))
        assert not listens(port)
        with listener(port):
            assert listens(port)


async def test_sshd_takes_another_port_if_its_port_is_taken_before_it_listens(tmp_path: Path) -> None:
    taken, other = free_port(), free_port()
    ports = iter([taken, other])

    with listener(taken):
        async with openssh(tmp_path, choose_port=lambda: next(ports)) as server:
            assert server.port == other
            assert listens(other)
