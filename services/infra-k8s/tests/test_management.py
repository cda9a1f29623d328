"""A management cluster of Cluster API as a CNF: the sample on the lab's stand-ins for cert-manager and Cluster API."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from capi_management import files_of
from kubevnfm_infra_k8s.domain.errors import ObjectFailed, ObjectsNotReady
from kubevnfm_lab.faults import FaultBook
from kubevnfm_lab.kubernetes import LabCluster
from kubevnfm_lab.kubernetes.objects import Key, value_at

SAMPLE = files_of("capi-management")
NOT_YET = 'Internal error occurred: failed calling webhook "validation.cluster.cluster.x-k8s.io": connection refused'
PROBE = "patch clusters"


def messages(site: Any) -> list[str]:
    return [str(each.message) for each in site.progress]


async def install(site: Any, files: dict[str, str] | None = None, **more: Any) -> Any:
    return await site.apply(files or SAMPLE, multi_namespace=True, **more)


async def test_a_management_cluster_is_ready_when_its_webhooks_are_trusted_and_work(
    site: Any, lab: LabCluster, faults: FaultBook
) -> None:
    """CR-039, CR-040, CR-041: each webhook has its CA bundle, and Cluster API has denied a Cluster; none is left."""
    faults.add(part="kubernetes", verb=PROBE, status=500, message=NOT_YET, times=1)
    applied = await install(site)
    assert {each.kind for each in applied.objects} > {"Certificate", "ValidatingWebhookConfiguration", "Deployment"}
    hooks = lab.store.get(
        "validatingwebhookconfigurations.admissionregistration.k8s.io", Key("", "capi-validating-webhook-configuration")
    )
    assert hooks is not None
    assert all(each["clientConfig"]["caBundle"] for each in hooks["webhooks"])
    definition = lab.store.get("customresourcedefinitions.apiextensions.k8s.io", Key("", "clusters.cluster.x-k8s.io"))
    assert value_at(definition, "spec", "conversion", "webhook", "clientConfig", "caBundle")
    assert lab.store.list("clusters.cluster.x-k8s.io") == []
    said = [each for each in messages(site) if "to deny an invalid Cluster" in each]
    assert (len(said), "connection refused" in said[0]) == (1, True)


async def test_the_time_limit_names_what_the_webhook_answered(site: Any, faults: FaultBook) -> None:
    """CR-041: until the denial comes, the CNF is not ready; the same operation can be retried."""
    faults.add(part="kubernetes", verb=PROBE, status=500, message=NOT_YET)
    with pytest.raises(ObjectsNotReady, match=r"webhook of Cluster API does not work yet.*connection refused") as late:
        await install(site, wait_timeout_s=3.0)
    assert late.value.remains is not None
    faults.clear()
    await install(site, attempt=2)


async def test_a_denial_of_another_webhook_does_not_count(site: Any, faults: FaultBook) -> None:
    """CR-041: a policy that refuses the Cluster says nothing of Cluster API."""
    denial = 'admission webhook "policy.example" denied the request: no owner'
    # A 403 is asked for twice: the server may have been starting.
    faults.add(part="kubernetes", verb=PROBE, status=403, message=denial, times=2)
    await install(site)
    assert any("to deny an invalid Cluster" in each and "no owner" in each for each in messages(site))


async def test_a_probe_that_does_not_fit_the_schema_fails_at_once(site: Any, faults: FaultBook) -> None:
    """CR-041: the API server itself would refuse it for ever."""
    faults.add(part="kubernetes", verb=PROBE, status=422, message="spec.fresh: Required value", times=1)
    with pytest.raises(ObjectFailed, match=r"its schema does not fit the probe: .*spec\.fresh"):
        await install(site)


async def test_a_webhook_without_its_certificate_is_awaited(site: Any) -> None:
    """CR-040: without cert-manager's Certificate there is no CA bundle, and the time limit names the webhooks."""
    documents = [
        each for each in yaml.safe_load_all(SAMPLE["Files/kubernetes/core.yaml"]) if each["kind"] != "Certificate"
    ]
    files = {**SAMPLE, "Files/kubernetes/core.yaml": yaml.safe_dump_all(documents)}
    with pytest.raises(ObjectsNotReady) as late:
        await install(site, files, wait_timeout_s=3.0)
    for name in ("validation.cluster.cluster.x-k8s.io", "conversion"):
        assert f"no CA bundle yet for webhook {name}" in str(late.value)
