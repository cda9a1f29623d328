"""The region that is used, from catalogues of several regions."""

from __future__ import annotations

from typing import Any

import pytest
from keystoneauth1.access import AccessInfoV3
from kubevnfm_keystone import REQUIRED, Catalogue, CatalogueLacks, KeystoneLogin

URL = "https://two.example:5000/v3"


def catalogue(regions: dict[str, tuple[str, ...]], *, shared: bool = True, **login: Any) -> Catalogue:
    """Return a catalogue with these services in each region; ``shared``: whether one Keystone serves all regions."""
    services: dict[str, list[dict[str, str]]] = {}
    for region, offered in regions.items():
        address = URL if shared or region == "Two" else "https://elsewhere.example:5000/v3"
        for service in ("identity", *offered):
            endpoint = {"id": f"{service}-{region}", "interface": "public", "region_id": region, "region": region}
            services.setdefault(service, []).append({**endpoint, "url": address})
    found = [
        {"id": service, "type": service, "name": service, "endpoints": endpoints}
        for service, endpoints in services.items()
    ]
    return Catalogue(AccessInfoV3({"token": {"catalog": found}}), KeystoneLogin(URL, **login))


def test_the_only_region_with_all_services_is_the_default() -> None:
    assert catalogue({"Alpha": ("orchestration",), "Two": REQUIRED}).region() == "Two"


def test_the_region_of_the_keystone_is_the_default() -> None:
    assert catalogue({"Alpha": REQUIRED, "Two": REQUIRED}, shared=False).region() == "Two"


def test_otherwise_the_catalogues_first_is_the_default_and_not_the_alphabets() -> None:
    assert catalogue({"Two": REQUIRED, "Alpha": REQUIRED}).region() == "Two"


def test_the_region_of_the_login_is_used_if_there_is_one() -> None:
    assert catalogue({"Two": REQUIRED, "Alpha": REQUIRED}, region="Alpha").region() == "Alpha"
    with pytest.raises(CatalogueLacks, match="no region Mars; there are Two, Alpha"):
        catalogue({"Two": REQUIRED, "Alpha": REQUIRED}, region="Mars").region()


def test_a_service_that_a_region_lacks_is_named() -> None:
    lacks = catalogue({"Two": ("orchestration", "compute", "network")})
    with pytest.raises(CatalogueLacks, match=r"Two lacks Glance \(image\)"):
        lacks.region()
    with pytest.raises(CatalogueLacks, match=r"region Two has no public endpoint of Glance \(image\)"):
        lacks.check_services("Two")
    with pytest.raises(CatalogueLacks, match="no internal endpoint of Heat"):
        catalogue({"Two": REQUIRED}, interface="internal").check_services("Two")
