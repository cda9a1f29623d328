"""Placeholders in manifests, filled in with the variables of a command (capi.md CR-042)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_secrets import Secret

FILE = "Files/map.yaml"
TEXT = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  level: "${LEVEL:=2}"
  password: ${PASSWORD}
"""
PASSWORD = "sword-fish-42"
KEY = ObjectKey("v1", "ConfigMap", "default", "settings")
MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)


async def data(site: Any) -> Any:
    async with site.cluster() as cluster:
        found = await cluster.get(MAPS, KEY)
    return None if found is None else found["data"]


async def test_manifests_are_filled_in_also_when_they_are_replaced(site: Any) -> None:
    """CR-042: a default yields to a value; the store and the progress show no value."""
    await site.apply({FILE: TEXT}, variables={"PASSWORD": Secret(PASSWORD)})
    assert await data(site) == {"level": "2", "password": PASSWORD}
    await site.replace({FILE: TEXT}, variables={"PASSWORD": Secret(PASSWORD), "LEVEL": Secret("5")})
    assert await data(site) == {"level": "5", "password": PASSWORD}
    assert PASSWORD not in str(site.progress)
    release = await site.handlers.release_of("i1")
    assert PASSWORD not in str(release)


async def test_a_variable_without_a_value_is_named_before_anything_is_applied(site: Any) -> None:
    """CR-042: with its file."""
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first"}}
    with pytest.raises(InvalidInput, match=f"{FILE}: no value for PASSWORD"):
        await site.apply({"Files/first.yaml": first, FILE: TEXT}, variables={})
    async with site.cluster() as cluster:
        assert await cluster.get(MAPS, ObjectKey("v1", "ConfigMap", "default", "first")) is None


async def test_without_variables_manifests_stay_as_they_are(site: Any) -> None:
    """CR-042: a shell script has the same syntax."""
    await site.apply({FILE: TEXT})
    assert await data(site) == {"level": "${LEVEL:=2}", "password": "${PASSWORD}"}


async def test_an_error_of_the_filled_in_text_shows_no_value(site: Any) -> None:
    """CR-042: YAML quotes an alias that it does not know."""
    with pytest.raises(InvalidInput, match=f"{FILE}: invalid YAML in line 7, with the values filled in") as refused:
        await site.apply({FILE: TEXT}, variables={"PASSWORD": Secret(f"*{PASSWORD}")})
    assert PASSWORD not in str(refused.value)
