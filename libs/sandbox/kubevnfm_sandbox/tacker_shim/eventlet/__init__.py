"""The part of eventlet that management drivers use: a time limit around blocking calls of the main thread."""

from time import sleep  # noqa: F401

from eventlet import timeout  # noqa: F401
from eventlet.timeout import Timeout  # noqa: F401


def monkey_patch(**modules):
    """Nothing: a driver has a process of its own, whose blocking calls hold up nothing else."""
