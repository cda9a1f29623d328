"""Looks the packages of a lock file up in the database of known holes (OSV), by `pip-audit`.

Usage: python tests/audit LOCK ... Ends with 1 if a package has a hole that is not accepted below. If the database cannot be
reached, it prints so, in capitals, and ends with 0: a machine without that way out can still run `make lint`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ACCEPTED: Final[Mapping[str, str]] = {}
"""Holes by id, each with the reason why it does not concern kubevnfm. An entry that is found no more is to be deleted."""
_TIMEOUT_S: Final = 10
_OUT_OF_REACH: Final = (
    "ConnectionError",
    "ConnectTimeout",
    "ReadTimeout",
    "ProxyError",
    "SSLError",
    "Could not connect",
    "HTTPError",
    "ServiceError",
)
"""In the last lines of pip-audit, which has no exit code of its own for it."""


class OutOfReach(Exception):
    """The database did not answer."""


def audited(lock: Path) -> list[dict[str, Any]]:
    """Return what is known of each package of a lock file. Raises OutOfReach, or SystemExit for any other failure."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pip_audit", "--requirement", lock, "--disable-pip", "--require-hashes"),
                *("--vulnerability-service", "osv", "--timeout", str(_TIMEOUT_S), "--progress-spinner", "off"),
                *("--format", "json", "--output", report),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if report.exists() and (text := report.read_text(encoding="utf-8")):
            found: list[dict[str, Any]] = json.loads(text)["dependencies"]
            return found
    last = "\n".join(done.stderr.strip().splitlines()[-3:])
    if any(sign in last for sign in _OUT_OF_REACH):
        raise OutOfReach(last.splitlines()[-1])
    sys.exit(f"audit: pip-audit failed: {last or f'exit code {done.returncode}, no output'}")


def holes(packages: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (id, a line for people) of each hole, and of each package that was not looked up."""
    for package in packages:
        name = f"{package['name']} {package.get('version', '')}".strip()
        if "skip_reason" in package:
            yield name, f"{name}: not looked up: {package['skip_reason']}"
        for hole in package.get("vulns", []):
            fixed = ", ".join(hole["fix_versions"]) or "no version"
            yield hole["id"], f"{name}: {hole['id']}, fixed in {fixed}"


def main() -> int:
    """Audit the lock files of the command line."""
    failed = False
    for lock in map(Path, sys.argv[1:]):
        try:
            packages = audited(lock)
        except OutOfReach as error:
            sys.stderr.write(f"audit: NOT LOOKED UP FOR KNOWN HOLES: {lock}: the database is out of reach ({error})\n")
            continue
        found = dict(holes(packages))
        for each in sorted(found.keys() - ACCEPTED.keys()):
            sys.stderr.write(f"audit: {lock}: {found[each]}\n")
            failed = True
        sys.stdout.write(f"audit: {lock}: {len(packages)} packages looked up\n")
        for each in sorted(ACCEPTED.keys() - found.keys()):
            sys.stderr.write(f"audit: {each} is accepted in tests/audit and found no more: delete the entry\n")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
