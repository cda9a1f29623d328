"""What a bus raises."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable


class BusClosed(OutsideUnavailable):
    """The bus was closed before the message was taken; it stays in its outbox."""

    code = "bus-closed"
    title = "Message bus closed"


class BrokerLost(OutsideUnavailable):
    """The broker went away or refused; what was under way may or may not have reached it."""

    code = "broker-lost"
    title = "Message broker unavailable"
