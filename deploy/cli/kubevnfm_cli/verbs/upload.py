"""``kubevnfm upload FILE|FOLDER``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from kubevnfm_cli import uploads
from kubevnfm_cli.archives import Archive, archive_of
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.durations import seconds_of
from kubevnfm_cli.faults import DONE, Fault, Refused, Stopped, UsageFault
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.nouns import noun_of
from kubevnfm_cli.output import show_one
from kubevnfm_cli.terminal import LINE, printable

_BAR: Final = 30
_DRAWN_EVERY_S: Final = 0.1


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = """\
A folder is packed as it is, without hidden files, README.md and the folder `requests`; the digests of its TOSCA.meta are written.
The gateway checks the package: its errors name file and line, and a package that it refuses is deleted again."""
    parser.add_argument("path", metavar="FILE|FOLDER", type=Path, help="a CSAR, or a folder with its content")
    parser.add_argument("--follow-links", action="store_true", help="pack files that links lead to out of the folder")
    parser.add_argument("--keep", action="store_true", help="keep a package that is refused")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=seconds_of,
        default="1h",
        help="end the wait for the checks after 90s, 10m or 1h30m (default: %(default)s)",
    )


def run(call: Call) -> int:
    """Upload a package and wait until it is onboarded."""
    path: Path = call.given.path
    if not path.exists():
        raise UsageFault(f"{path} does not exist")
    with archive_of(path, follows_links=call.given.follow_links) as archive:
        package_id = uploads.create(call.gateway, {})
        try:
            uploads.send(call.gateway, package_id, archive, _Bar(call, archive))
        except Refused as refused:
            _remove(call, package_id)
            raise Refused(refused.status, f"{printable(path)}: {refused}", refused.body) from None
        except (Fault, OSError, KeyboardInterrupt):
            call.note(f"package {package_id} may have no content; kubevnfm delete pkg {package_id}")
            raise
    package = _onboarded(call, package_id)
    for warning in package.get("warnings") or ():
        call.note(call.err.paint(f"warning: {printable(warning, LINE)}", "yellow"))
    text = f"package/{package_id} ONBOARDED: {package.get('vnfProductName')} {package.get('vnfSoftwareVersion')}, VNFD {package.get('vnfdId')}"
    show_one(call, package, noun_of("pkg").table, lambda: f"{printable(text, LINE)}\n")
    return DONE


def _onboarded(call: Call, package_id: str) -> JsonObject:
    call.gateway.give_up_after(call.given.timeout)
    try:
        return uploads.onboarded(call.gateway, package_id, call.gateway.pause)
    except Stopped as stopped:
        raise Stopped(f"{stopped}; kubevnfm get pkg {package_id} shows its state") from None
    except uploads.NotOnboarded as refused:
        # An error of a descriptor may have several lines.
        for line in str(refused).splitlines():
            call.note(f"kubevnfm: {printable(line, LINE)}")
        _remove(call, package_id)
        raise uploads.NotOnboarded(f"{call.given.path} was not onboarded") from None


def _remove(call: Call, package_id: str) -> None:
    """Delete a package that was refused, unless it is to be kept."""
    if not call.given.keep:
        call.gateway.call("DELETE", path_of("vnfpkgm", "v2", "vnf_packages", package_id))


class _Bar:
    """Draws how much was sent, where standard error is a terminal."""

    def __init__(self, call: Call, archive: Archive) -> None:
        self._call, self._size, self._drawn_at = call, archive.size, 0.0
        self._name = printable(archive.path.name, 40)

    def __call__(self, sent: int) -> None:
        now = time.monotonic()
        is_end = sent >= self._size
        if not self._call.err.is_terminal or (now - self._drawn_at < _DRAWN_EVERY_S and not is_end):
            return
        self._drawn_at = now
        share = sent / self._size if self._size else 1.0
        full = int(share * _BAR)
        line = f"\r{self._name} [{'#' * full}{'.' * (_BAR - full)}] {share:4.0%} of {_size(self._size)}"
        self._call.err.stream.write(line + ("\n" if is_end else ""))
        self._call.err.stream.flush()


def _size(count: int) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count //= 1024
    return f"{count} GiB"
