"""Uploads a package: creates the resource, sends the archive, waits until it is onboarded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kubevnfm_cli.archives import Archive, CountedFile
from kubevnfm_cli.faults import Fault, Refused
from kubevnfm_cli.gateway import Gateway, path_of
from kubevnfm_cli.json_types import JsonObject, part
from kubevnfm_cli.terminal import printable_text

PACKAGES: Final = "/vnfpkgm/v2/vnf_packages"
_FIRST_LOOK_S, _LONGEST_LOOK_S = 0.05, 2.0


class NotOnboarded(Fault):
    """The gateway has refused the package."""


def create(gateway: Gateway, user_data: Mapping[str, Any]) -> str:
    """Create a package without content; return its id."""
    body = {"userDefinedData": dict(user_data)} if user_data else {}
    return str(gateway.call("POST", PACKAGES, body).object()["id"])


def send(gateway: Gateway, package_id: str, archive: Archive, report: Callable[[int], None]) -> None:
    """Send the archive. Raises Refused, Unreachable."""
    path = f"{path_of('vnfpkgm', 'v2', 'vnf_packages', package_id)}/package_content"
    with archive.path.open("rb") as file:
        counted: Any = CountedFile(file, report)
        gateway.send("PUT", path, counted, archive.size, {"Content-Type": "application/zip"})


def onboarded(gateway: Gateway, package_id: str, pause: Callable[[float], None]) -> JsonObject:
    """Return the package once it is ONBOARDED; ``pause`` waits so many seconds. Raises NotOnboarded."""
    pause_s = _FIRST_LOOK_S
    while True:
        try:
            package = gateway.get(path_of("vnfpkgm", "v2", "vnf_packages", package_id)).object()
        except Refused as refusal:
            if refusal.status == 404:
                raise NotOnboarded(f"package {package_id} was deleted meanwhile") from None
            raise
        if package.get("onboardingState") == "ONBOARDED":
            return package
        if package.get("onboardingState") == "ERROR":
            raise NotOnboarded(failure_of(package))
        pause(pause_s)
        pause_s = min(pause_s * 1.5, _LONGEST_LOOK_S)


def failure_of(package: JsonObject) -> str:
    """Return why a package was refused."""
    return printable_text(str(part(package, "onboardingFailureDetails", "detail") or "no reason given"))
