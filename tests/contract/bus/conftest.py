"""Fixtures of the bus contract."""

from servers.rabbitmq import rabbitmq

__all__ = ["rabbitmq"]
