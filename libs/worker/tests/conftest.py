"""Fixtures of the worker's tests."""

from worlds.worker_world import bus, heard, publish, store

__all__ = ["bus", "heard", "publish", "store"]
