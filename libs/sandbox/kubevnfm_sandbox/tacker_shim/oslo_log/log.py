"""``from oslo_log import log as logging``, as scripts for OpenStack write it: Python's own logging, on stderr."""

from logging import getLogger  # noqa: F401
