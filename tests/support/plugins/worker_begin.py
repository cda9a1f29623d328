"""The module whose text execnet runs in each worker: `forked_workers` explains it."""

from __future__ import annotations

import runpy
import sys

if __name__ == "__channelexec__":
    collecting = sys.modules.get("plugins.collecting_process")
    given = globals()["channel"]
    if collecting is None:
        # A worker that collects for itself.
        runpy.run_module("xdist.remote", init_globals={"channel": given}, run_name="__channelexec__")
    else:
        collecting.LINE.lead(given)
