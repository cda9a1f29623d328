"""The lab's own range of loopback addresses: 127.X.0.0/16, with an X that no other lab on this machine uses."""

from __future__ import annotations

import random
import socket
from ipaddress import IPv4Network
from typing import Final

_LOCK_PORT: Final = 16161
"""Bound on 127.X.255.254 only, where nothing else listens: a lock that marks X as used."""


class AddressRange:
    """A second octet that belongs to this lab until it is released."""

    def __init__(self) -> None:
        octets = list(range(16, 255))
        random.shuffle(octets)
        for octet in octets:
            lock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                lock.bind((f"127.{octet}.255.254", _LOCK_PORT))
                lock.listen(1)
            except OSError:
                lock.close()
                continue
            self.octet, self._lock = octet, lock
            return
        raise OSError("no free range of loopback addresses 127.X.0.0/16, X in 16..254")

    def network(self, third: int, prefix: int = 24) -> IPv4Network:
        """Return the network that starts at 127.X.third.0."""
        return IPv4Network(f"127.{self.octet}.{third}.0/{prefix}")

    def release(self) -> None:
        """Release it for another lab."""
        self._lock.close()
