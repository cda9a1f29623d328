"""``@log.log`` of management drivers for Tacker: writes which method was called, on stderr."""

import functools
import logging


def log(method):
    """Return the method, whose calls are written at level DEBUG. Their arguments are not: they may hold secrets."""
    logger = logging.getLogger(method.__module__)

    @functools.wraps(method)
    def logged(*args, **kwargs):
        logger.debug("method %s", method.__qualname__)
        return method(*args, **kwargs)

    return logged
