"""The errors of a bus."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable


class BusClosed(OutsideUnavailable):
    """The bus was closed before a handler took the message; it stays in its outbox."""

    code = "bus-closed"
    title = "Message bus closed"


class BrokerLost(OutsideUnavailable):
    """The connection to the broker was lost, or it refused; messages under way may or may not have reached it."""

    code = "broker-lost"
    title = "Message broker unavailable"
