"""The errors of a bus."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable


class BusClosed(OutsideUnavailable, code="bus-closed", title="Message bus closed"):
    """The bus was closed before a handler took the message; it stays in its outbox."""


class BrokerLost(OutsideUnavailable, code="broker-lost", title="Message broker unavailable", is_said=True):
    """The connection to the broker was lost, or it refused; messages under way may or may not have reached it."""
