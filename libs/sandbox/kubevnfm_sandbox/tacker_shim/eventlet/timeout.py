"""A time limit around blocking calls of the main thread."""

import signal
import time


class Timeout(BaseException):
    """Raised in the block after ``seconds``; ``exception`` replaces it, False: the block ends silently (eventlet's rule)."""

    def __init__(self, seconds=None, exception=None):
        super().__init__("%s seconds" % seconds)
        self.seconds, self._raised = seconds, exception
        self._before = None

    def start(self):
        if self.seconds is None:
            return
        handler = signal.signal(signal.SIGALRM, self._expired)
        left, _ = signal.setitimer(signal.ITIMER_REAL, self.seconds)
        self._before = (handler, left, time.monotonic())
        if left and left < self.seconds:
            # The limit of the whole process, or of an outer block, comes first.
            self.cancel()

    def cancel(self):
        if self._before is None:
            return
        handler, left, since = self._before
        self._before = None
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - since), 0.001))

    def _expired(self, number, frame):
        raise self._raised if self._raised not in (None, True, False) else self

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, error, trace):
        self.cancel()
        return error is self and self._raised is False
