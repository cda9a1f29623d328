"""Changes one line at a time and runs the tests of `make test` that have to find it.

Usage: python tests/mutations [PART ...]. A part is text of a package's path; without one, all mutations are tried. The changed package is a
copy in a temporary folder, which comes first in PYTHONPATH, so the tree stays as it is. Ends with 1 if a mutation survives, or if its line is
not in the package exactly once: then choose another line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).parents[2]
sys.path[:0] = [str(PROJECT / "tests/support")]

from contracts.mutated_lines import MUTATIONS, Mutation  # noqa: E402

FOUND: Final = "found by"
_FAILED: Final = 1
"""The exit code of pytest if tests ran and some failed. Others mean that the tests could not run."""


def main(parts: list[str]) -> int:
    """Try the mutations and print what became of each."""
    tried = [one for one in MUTATIONS if not parts or any(part in one.package for part in parts)]
    faults = 0
    for one in tried:
        verdict = judged(one)
        faults += not verdict.startswith(FOUND)
        say(f"{verdict}: {one.package}: {one.line}")
    say(f"{len(tried) - faults} of {len(tried)} mutations are found by the tests")
    return 1 if faults or not tried else 0


def judged(mutation: Mutation) -> str:
    """Return which test finds the mutation, or why none does."""
    with tempfile.TemporaryDirectory() as folder:
        source = PROJECT / mutation.package
        # With what is beside the package, for example released schemas.
        member = shutil.copytree(source.parent, Path(folder) / "member", ignore=shutil.ignore_patterns("tests"))
        if not changed(member / source.name, mutation):
            return "LINE NOT FOUND ONCE"
        selection = ["-m", "not deep and not clients and not etsi", *mutation.tests.split()]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--timeout", "300", *selection],
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(member)},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode == _FAILED:
        return f"{FOUND} {' '.join(line.split()[1] for line in done.stdout.splitlines() if line.startswith('FAILED '))}"
    if done.returncode == 0:
        return "SURVIVED"
    say(done.stdout[-2000:] + done.stderr[-2000:])
    return "TESTS DID NOT RUN"


def changed(package: Path, mutation: Mutation) -> bool:
    """Change the line in the copy; return whether the package has it exactly once."""
    places = mutation.places(package)
    if len(places) != 1:
        return False
    ((path, number),) = places
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[number] = lines[number].replace(mutation.line, mutation.becomes)
    path.write_text("".join(lines), encoding="utf-8")
    return True


def say(text: str) -> None:
    """Print at once: a run of all mutations takes minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
