"""The CA bundles of webhooks, which another party writes after the objects were applied."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

from kubevnfm_infra_k8s.domain.objects import ObjectKey, field_at
from packages.kubernetes_objects import an_object
from patience import until_true
from servers.certificates import Authority

HOOKS = "admissionregistration.k8s.io/v1"
DEFINITIONS = "apiextensions.k8s.io/v1"
PLACEHOLDER = "Cg=="
CONVERSION = ("spec", "conversion", "webhook", "clientConfig")


def a_definition(group: str, config: dict[str, Any], annotations: dict[str, str]) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    names = {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    return an_object(
        "CustomResourceDefinition",
        f"things.{group}",
        api_version=DEFINITIONS,
        metadata={"annotations": annotations},
        spec={
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    )


def a_configuration(name: str, config: dict[str, Any], group: str, annotations: dict[str, str]) -> dict[str, Any]:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["things"]}
    webhook = {
        "name": "hook.kubevnfm.example",
        "clientConfig": config,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return an_object(
        "ValidatingWebhookConfiguration",
        name,
        api_version=HOOKS,
        metadata={"annotations": annotations},
        webhooks=[webhook],
    )


async def test_a_webhook_is_ready_with_its_ca_bundle_and_keeps_it(ground: Any, tmp_path: Path) -> None:
    """CR-040: a placeholder is no bundle, and a later apply leaves what was injected in its place."""
    group = f"{ground.namespace}.example"
    service = {"namespace": ground.namespace, "name": "hooks", "path": "/convert"}
    note = {"cert-manager.io/inject-ca-from": f"{ground.namespace}/serving-cert"}
    objects = [
        an_object("Service", "hooks", spec={"ports": [{"port": 443}]}),
        a_definition(group, {"service": service, "caBundle": PLACEHOLDER}, note),
        a_configuration(ground.own_name("hook"), {"service": service, "caBundle": PLACEHOLDER}, group, note),
    ]
    applying = asyncio.create_task(ground.apply(*objects))

    async def is_awaited() -> bool:
        assert not applying.done(), applying
        said = [str(each.message) for each in ground.site.progress]
        return all(any(f"no CA bundle yet for webhook {name}" in one for one in said) for name in names)

    names = ("conversion", "hook.kubevnfm.example")
    await until_true(is_awaited, timeout_s=60)
    bundle = base64.b64encode(Authority(tmp_path).file.read_bytes()).decode()
    await inject(ground, objects, bundle)
    await applying
    await ground.site.replace({"f.yaml": objects}, instance=ground.namespace, namespace=ground.namespace)
    shown = [await ground.shown(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in objects[1:]]
    assert [field_at(shown[0], *CONVERSION)["caBundle"], shown[1]["webhooks"][0]["clientConfig"]["caBundle"]] == [
        bundle, bundle
    ]  # fmt: skip


async def inject(ground: Any, objects: list[dict[str, Any]], bundle: str) -> None:
    """Write the bundle into the definition and the webhook configuration, as cert-manager does."""
    for each in objects[1:]:
        key = ObjectKey(each["apiVersion"], each["kind"], "", each["metadata"]["name"])
        resource = await ground.cluster.resource(key.api_version, key.kind)
        shown = await ground.cluster.get(resource, key)
        change: dict[str, Any] = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}
        if "webhooks" in shown:
            hook = shown["webhooks"][0]
            change = {"webhooks": [{**hook, "clientConfig": {**hook["clientConfig"], "caBundle": bundle}}]}
        await ground.cluster.patch(resource, key, change)
