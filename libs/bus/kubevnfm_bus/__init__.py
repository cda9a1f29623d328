"""The MessageBus port with its RabbitMQ and in-process adapters."""

from kubevnfm_bus.errors import BrokerLost, BusClosed
from kubevnfm_bus.inprocess import InProcessBus
from kubevnfm_bus.port import Ack, Again, Dead, DeadLetter, Delivery, Handler, MessageBus, Verdict
from kubevnfm_bus.rabbit import RabbitBus

__all__ = [
    "Ack",
    "Again",
    "BrokerLost",
    "BusClosed",
    "Dead",
    "DeadLetter",
    "Delivery",
    "Handler",
    "InProcessBus",
    "MessageBus",
    "RabbitBus",
    "Verdict",
]
