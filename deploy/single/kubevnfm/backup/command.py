"""The verbs ``kubevnfm backup`` and ``kubevnfm restore``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

_LONGEST_PAUSE_S: Final = 20.0
_PAUSES_S: Final = (5, 60)


def backup_parser() -> argparse.ArgumentParser:
    """Return the arguments of ``kubevnfm backup``."""
    parser = argparse.ArgumentParser(
        prog="kubevnfm backup",
        description="write one archive with all documents and packages while the services run; settings by KUBEVNFM_<NAME>",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the archive, which must not exist yet")
    parser.add_argument("--check", action="store_true", help="read the archive instead, and say what it has")
    parser.add_argument(
        "--with-keys", action="store_true", help="put the keys into it too: each reader of it can then read all secrets"
    )
    parser.add_argument(
        "--longest-pause", type=_seconds, default=_LONGEST_PAUSE_S, metavar="S",
        help="how long the writes of six services may be held (5 to 60 s); default: %(default)s",
    )  # fmt: skip
    return parser


def restore_parser() -> argparse.ArgumentParser:
    """Return the arguments of ``kubevnfm restore``."""
    parser = argparse.ArgumentParser(
        prog="kubevnfm restore", description="write what an archive has into an empty installation that does not run"
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the archive")
    parser.add_argument("--replace", action="store_true", help="remove the documents and packages that are there")
    return parser


def backup(arguments: argparse.Namespace) -> None:
    """Take or check a backup."""
    from kubevnfm.backup.archive import opened
    from kubevnfm.backup.places import installation
    from kubevnfm.backup.taking import write_backup

    if arguments.check:
        with opened(arguments.file) as reader:
            _show(arguments.file, "is whole", reader.manifest)
        return
    os.umask(0o077)
    if arguments.with_keys:
        _show_line("the archive has the keys: keep it as you keep these")
    found = write_backup(
        installation(), arguments.file.absolute(), longest_pause_s=arguments.longest_pause, with_keys=arguments.with_keys,
        show=_show_line,
    )  # fmt: skip
    _show(arguments.file, "written", found)
    if found.key_ids and not found.has_keys:
        _show_line(
            f"a restore needs the keys {', '.join(found.key_ids)}, which the archive does not have: keep them elsewhere"
        )


def restore(arguments: argparse.Namespace) -> None:
    """Restore an archive."""
    from kubevnfm.backup.places import OneProcess, installation
    from kubevnfm.backup.restoring import restore as restored

    os.umask(0o077)
    installed = installation()
    found = restored(installed, arguments.file, replace=arguments.replace, show=_show_line)
    _show(arguments.file, "restored", found)
    if not isinstance(installed, OneProcess):
        _show_line(
            "start the services on a broker without messages (docs/backup.md): those that are there may be newer"
        )


def _show(file: Path, what: str, found: object) -> None:
    from kubevnfm.backup.archive import Manifest

    assert isinstance(found, Manifest)
    keys = ", ".join(f"{key} ({count} values)" for key, count in found.sealed_values.items()) or "none"
    sys.stdout.write(
        f"{file}: {what}; of {found.time}, {found.kind}, kubevnfm {found.version}, {found.documents} documents,"
        f" {found.packages} packages, keys {keys}{', included' if found.has_keys else ''}\n"
    )


def _show_line(line: str) -> None:
    sys.stderr.write(f"kubevnfm: {line}\n")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not _PAUSES_S[0] <= seconds <= _PAUSES_S[1]:
        raise argparse.ArgumentTypeError("5 to 60 expected")
    return seconds
