"""Runs one reader for a time, with 256 MiB above what the process has at its start."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Final

from fuzzed.readers import readers
from fuzzed.trials import NotStood, kept_in, run

MOST_BYTES: Final = 256 * 2**20


def main() -> int:
    """Return 0 if all inputs were stood."""
    name, seconds, seed, last = sys.argv[1:]
    reader = readers()[name]
    # One round without the limit loads what is imported late.
    run(reader, seconds=0, seed=0, examples=5)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        tried = run(reader, seconds=float(seconds), seed=int(seed), keep=kept_in(Path(last)))
    except NotStood as error:
        sys.stdout.write(f"{name}: {error}\n")
        return 1
    sys.stdout.write(f"{name}: {tried} inputs\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
