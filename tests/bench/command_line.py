"""The processor time of the command line, with all that it imports."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Final

from figures import Figure

_RUNS: Final = 20
_COMMANDS: Final = {"kubevnfm --help": (("--help",), 100.0), "kubevnfm get vnf": (("get", "vnf"), 200.0)}
"""By name: the words, and the goal in ms."""


def command_line(url: str) -> list[Figure]:
    """Return the processor time of commands for a gateway, as they are installed beside this Python."""
    program = str(Path(sys.executable).parent / "kubevnfm")
    environment = {**os.environ, "KUBEVNFM_URL": url}
    figures = []
    for name, (words, goal) in _COMMANDS.items():
        taken = []
        for _ in range(_RUNS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([program, *words], env=environment, stdout=subprocess.DEVNULL, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
        figures.append(Figure(f"{name}: processor time", "ms", taken, goal))
    return figures
