"""The package that a request names: by its id, or by its content in a registry or at an address (multicloud.md MC-122)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_csar.oci_references import OciReference
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret, map_secrets
from yarl import URL

from kubevnfm_lcm_api.multicloud.vnf_types import PackageSource, VnfInstanceRequest

ARTIFACTS: Final = "artifacts"
_CSAR_ID: Final = "csar_id"


@dataclass(frozen=True)
class WantedPackage:
    """The package of a request."""

    csar_id: str
    source: JsonMapping
    """Where it is; empty: held, or in the operator's catalogue."""
    place: str
    """The member of the request that names it."""


def wanted_package(wanted: VnfInstanceRequest) -> WantedPackage:
    """Return the package of a request. Raises Unprocessable."""
    given = wanted.artifacts
    if given is None and wanted.csar_id is None:
        raise Unprocessable(_CSAR_ID, "required, unless artifacts says where the package is")
    if given is None or wanted.csar_id is not None:
        if given is not None or wanted.csar_id is None:
            raise Unprocessable(ARTIFACTS, "not expected beside csar_id: leave one of them out")
        return WantedPackage(wanted.csar_id, {}, _CSAR_ID)
    if (given.oci is None) == (given.url is None):
        raise Unprocessable(ARTIFACTS, "either oci with digest, or url with sha256 expected")
    return _by_digest(given) if given.oci is not None else _by_address(given)


def _by_digest(given: PackageSource) -> WantedPackage:
    assert given.oci is not None
    if given.digest is None or given.sha256 is not None:
        raise Unprocessable(ARTIFACTS, "oci: expected with digest, and without sha256")
    try:
        found = OciReference.from_text(given.oci, given.digest)
    except ValueError as error:
        raise Unprocessable(f"{ARTIFACTS}/oci", str(error)) from error
    return WantedPackage(f"sha256-{found.hex}", {"oci": given.oci, "digest": given.digest}, f"{ARTIFACTS}/oci")


def _by_address(given: PackageSource) -> WantedPackage:
    assert given.url is not None
    if given.sha256 is None or given.digest is not None:
        raise Unprocessable(ARTIFACTS, "url: expected with sha256, and without digest")
    place, expected = f"{ARTIFACTS}/url", "an http or https address without credentials expected"
    try:
        address = URL(given.url)
    except ValueError:
        raise Unprocessable(place, expected) from None
    if address.scheme not in {"http", "https"} or not address.host or address.user or address.password:
        raise Unprocessable(place, expected)
    # Its query may contain a secret.
    source = {"uri": Secret(given.url), "sha256": given.sha256}
    return WantedPackage(f"sha256-{given.sha256}", source, place)


async def request_text(body: Mapping[str, Any], ring: KeyRing) -> Secret:
    """Return a request as one secret text, which `json_of` reads as it came."""
    return Secret(await asyncio.to_thread(_text, body, ring))


def _text(body: Mapping[str, Any], ring: KeyRing) -> str:
    return json.dumps(map_secrets(body, lambda secret: {"$secret": secret.reveal(ring)}))
