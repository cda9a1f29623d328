"""Metadata alone are read and watched, so that the content of Secrets stays where it is (capi.md CR-062)."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest
from kubevnfm_infra_k8s.domain.errors import Forbidden, ObjectRefused
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Resource, field_at
from packages.kubernetes_objects import an_object

SECRETS = Resource("v1", "Secret", "secrets", namespaced=True)
ONLY_METADATA = {"apiVersion", "kind", "metadata"}


def a_secret(name: str, ground: Any, **data: str) -> Body:
    secret = an_object("Secret", name, stringData=data)
    secret["metadata"] |= {"labels": {"of-test": ground.namespace}, "annotations": {"whole": "swordfish"}}
    return secret


async def test_a_watch_of_metadata_shows_each_change_and_no_content(ground: Any) -> None:
    """CR-062: of the objects that the label selects."""
    await ground.create(a_secret("kept", ground, value="swordfish"))
    await ground.create(an_object("Secret", "of-others", stringData={"value": "swordfish"}))
    following = ground.cluster.follow_metadata(SECRETS, lambda body: body, labels=f"of-test={ground.namespace}")
    async with aclosing(following) as changes:
        first = await anext(changes)
        name = f"{ground.namespace}/kept"
        assert (first.is_all, list(first.found)) == (True, [name])
        assert set(first.found[name]) <= ONLY_METADATA
        await ground.create(a_secret("kept", ground, value="sturgeon"))
        changed = await anext(changes)
        assert set(changed.found[name]) <= ONLY_METADATA
        before, after = (each.found[name]["metadata"] for each in (first, changed))
        assert before["uid"] == after["uid"]
        assert before["resourceVersion"] != after["resourceVersion"]
        await ground.cluster.delete(SECRETS, ObjectKey("v1", "Secret", ground.namespace, "kept"))
        while name not in (await anext(changes)).gone:
            pass
    await ground.cluster.delete(SECRETS, ObjectKey("v1", "Secret", ground.namespace, "of-others"))


async def test_the_metadata_of_one_secret_are_read_by_name(ground: Any) -> None:
    """CR-062: as a token must that may not list."""
    await ground.create(a_secret("kept", ground, value="swordfish"))
    limited = await ground.limited(verbs=["get"], resources=["secrets"])
    key = ObjectKey("v1", "Secret", ground.namespace, "kept")
    whole = await ground.cluster.get(SECRETS, key)
    async with ground.site.clusters.cluster(limited.site.vim) as cluster:
        body = await cluster.get_metadata(SECRETS, key)
        assert set(body) <= ONLY_METADATA
        assert field_at(body, "metadata", "resourceVersion") == field_at(whole, "metadata", "resourceVersion")
        assert await cluster.get_metadata(SECRETS, ObjectKey("v1", "Secret", ground.namespace, "none")) is None
        with pytest.raises(ObjectRefused) as refused:
            await anext(cluster.follow_metadata(SECRETS, lambda body: body, labels="a=b"))
        assert isinstance(refused.value, Forbidden)
