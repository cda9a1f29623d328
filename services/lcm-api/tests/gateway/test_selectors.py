"""The selector table of SOL013 5.3.2, each row."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.http.sol013.selectors import project, read_selectors
from kubevnfm_lcm_api.lifecycle.http.shapes import INSTANCE_V2

DOCUMENT: dict[str, Any] = {
    "id": "i",
    "vnfInstanceName": "n",
    "metadata": {"a": 1},
    "extensions": {"b": 2},
    "instantiatedVnfInfo": {
        "flavourId": "simple",
        "vnfState": "STARTED",
        "vnfcResourceInfo": [{"id": "v", "vduId": "w", "computeResource": {"resourceId": "s"}, "zoneId": "z"}],
    },
    "_links": {},
}


def shown(**given: str) -> dict[str, Any]:
    return project(DOCUMENT, INSTANCE_V2, read_selectors(given, INSTANCE_V2))


def test_without_selectors_the_default_excluded_are_left_out() -> None:
    assert set(shown()) == {"id", "vnfInstanceName", "_links"}
    assert shown(exclude_default="") == shown()


def test_all_fields_shows_everything() -> None:
    assert shown(all_fields="") == DOCUMENT


def test_fields_adds_what_it_names_and_keeps_simple_ones() -> None:
    assert set(shown(fields="metadata")) == {"id", "vnfInstanceName", "metadata", "_links"}


def test_a_path_gives_that_member_and_the_required_ones_on_the_way() -> None:
    info = shown(fields="instantiatedVnfInfo/vnfcResourceInfo/zoneId")["instantiatedVnfInfo"]
    assert info == {
        "flavourId": "simple",
        "vnfcResourceInfo": [{"id": "v", "vduId": "w", "computeResource": {"resourceId": "s"}, "zoneId": "z"}],
    }


def test_exclude_fields_leaves_out_only_what_it_names() -> None:
    assert set(shown(exclude_fields="metadata,id")) == {
        "id",
        "vnfInstanceName",
        "extensions",
        "instantiatedVnfInfo",
        "_links",
    }


def test_the_spelling_of_existing_clients_is_taken() -> None:
    assert shown(**{"exclude-fields": "metadata"}) == shown(exclude_fields="metadata")


def test_fields_with_exclude_default() -> None:
    assert set(shown(fields="metadata", exclude_default="")) == {"id", "vnfInstanceName", "metadata", "_links"}


@pytest.mark.parametrize(
    "given",
    [
        {"all_fields": "", "fields": "id"},
        {"fields": "id", "exclude_fields": "metadata"},
        {"exclude_fields": "metadata", "exclude_default": ""},
        {"fields": "wrong_field"},
        {"exclude_fields": "instantiatedVnfInfo/wrong"},
    ],
)
def test_what_cannot_stand_together_or_is_unknown_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        read_selectors(given, INSTANCE_V2)
