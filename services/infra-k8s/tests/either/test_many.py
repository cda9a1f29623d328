"""Many objects of a kind are looked for by one list, with the same result as a request for each."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import ForeignObjects
from kubevnfm_infra_k8s.domain.objects import ObjectKey, Resource
from kubevnfm_infra_k8s.domain.ports import Propagation
from kubevnfm_lab.faults import CallLedger
from packages.kubernetes_objects import an_object

CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps", namespaced=True)
MANY = [an_object("ConfigMap", f"c{n}", data={"n": str(n)}) for n in range(20)]


async def test_foreign_objects_among_many_are_named(ground: Any) -> None:
    """CR-020: before anything is applied."""
    for name in ("c3", "c17"):
        await ground.create(an_object("ConfigMap", name, data={"n": "theirs"}))
    with pytest.raises(ForeignObjects) as caught:
        await ground.apply(*MANY)
    for name in ("c3", "c17"):
        assert f"ConfigMap {ground.namespace}/{name}" in str(caught.value)
    assert "/c4" not in str(caught.value)
    assert await ground.shown("v1", "ConfigMap", "c4") is None
    await ground.delete()
    assert (await ground.shown("v1", "ConfigMap", "c3"))["data"] == {"n": "theirs"}


async def test_what_others_did_to_some_of_many_does_not_mislead_the_deletion(ground: Any) -> None:
    """CR-023: one was deleted, one was created again by another owner, one is kept by its annotation."""
    await ground.apply(*MANY)
    keys = {number: ObjectKey("v1", "ConfigMap", ground.namespace, f"c{number}") for number in (1, 2, 3)}
    for number in (1, 2):
        await ground.cluster.delete(CONFIG_MAPS, keys[number], propagation=Propagation.BACKGROUND)
    await ground.create(an_object("ConfigMap", "c2"))
    await ground.cluster.patch(CONFIG_MAPS, keys[3], {"metadata": {"annotations": {"kubevnfm.io/keep": "true"}}})
    assert (await ground.delete()).count == 20
    left = await ground.cluster.list(CONFIG_MAPS, namespace=ground.namespace)
    assert {each["metadata"]["name"] for each in left} - {"kube-root-ca.crt"} == {"c2", "c3"}


async def test_a_token_that_may_not_list_gets_each_object(ground: Any) -> None:
    """CR-020: a list is only cheaper."""
    limited = await ground.limited(verbs=["get", "create", "patch", "delete", "watch"], resources=["configmaps"])
    await ground.create(an_object("ConfigMap", "c3"))
    with pytest.raises(ForeignObjects, match="c3"):
        await limited.apply(*MANY)


async def test_two_hundred_objects_cost_one_list(ground: Any, ledger: CallLedger) -> None:
    """CR-014: and one dry run and one apply for each. In the lab, which counts."""
    objects = [an_object("ConfigMap", f"c{n}", data={"n": str(n)}) for n in range(200)]
    before = counted(ledger)
    await ground.apply(*objects)
    after = counted(ledger)
    if after:
        assert after.get("get configmaps", 0) == before.get("get configmaps", 0)
        # One to look, one to watch.
        assert after["list configmaps"] - before.get("list configmaps", 0) <= 2
        assert after["patch configmaps"] - before.get("patch configmaps", 0) == 400
    await ground.delete()
    assert counted(ledger).get("get configmaps", 0) == before.get("get configmaps", 0)


def counted(ledger: CallLedger) -> dict[str, int]:
    """Return the requests so far, by verb and resource; none for a real cluster."""
    return {each["verb"]: each["count"] for each in ledger.calls() if each["part"] == "kubernetes"}
