"""The providers of Cluster API among objects: roles, versions, contracts, and the way back that there is none of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubevnfm_csar.capi_providers import contract_losses, providers_of
from kubevnfm_events import CapiKind, CapiProvider, CapiProviders

SAMPLE = Path(__file__).parents[3] / "deploy/samples/capi-management/Files/kubernetes"


def definition(plural: str, kind: str, group: str, *versions: str, storage: str = "", **labels: str) -> dict[str, Any]:
    """A definition; a version with ! is not served. Labels: ``provider``, and the contracts."""
    listed = [
        {"name": each.rstrip("!"), "served": not each.endswith("!"), "storage": each.rstrip("!") == storage}
        for each in versions
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {f"cluster.x-k8s.io/{name}": value for name, value in labels.items()},
        },
        "spec": {"group": group, "names": {"kind": kind, "plural": plural}, "versions": listed},
    }


def deployment(provider: str, image: str, **labels: str) -> dict[str, Any]:
    containers = [{"name": "manager", "image": image}, {"name": "proxy", "image": "proxy:v9"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "controllers", "labels": {"cluster.x-k8s.io/provider": provider, **labels}},
        "spec": {"template": {"spec": {"containers": containers}}},
    }


CORE = definition(
    "clusters",
    "Cluster",
    "cluster.x-k8s.io",
    "v1alpha4!",
    "v1beta1",
    "v1beta2",
    storage="v1beta2",
    provider="cluster-api",
)
INFRA = definition(
    "devclusters", "DevCluster", "infrastructure.cluster.x-k8s.io", "v1beta1", "v1beta2",
    provider="infrastructure-docker", v1beta1="v1beta1", v1beta2="v1beta2",
)  # fmt: skip
IMAGE = "registry.k8s.io:5000/cluster-api/cluster-api-controller:v1.14.2@sha256:00"


def test_providers_are_read_from_labels_images_and_definitions() -> None:
    """CR-045: as the released manifests of Cluster API 1.14 have them; the core has no label of a contract."""
    found = providers_of([CORE, INFRA, deployment("cluster-api", IMAGE), deployment("infrastructure-docker", "capd")])
    assert found == CapiProviders(
        core=CapiProvider(
            name="cluster-api",
            version="v1.14.2",
            contract="v1beta2",
            kinds=(CapiKind(group="cluster.x-k8s.io", kind="Cluster", versions=("v1beta1", "v1beta2")),),
        ),
        infrastructure=(
            CapiProvider(
                name="docker",
                contract="v1beta2",
                kinds=(
                    CapiKind(
                        group="infrastructure.cluster.x-k8s.io", kind="DevCluster", versions=("v1beta1", "v1beta2")
                    ),
                ),
            ),
        ),
    )


def test_kinds_of_further_groups_are_left_out() -> None:
    """CR-045: not all providers of addons, addresses and hooks define them."""
    addon = definition("resourcesets", "ResourceSet", "addons.cluster.x-k8s.io", "v1beta2", provider="cluster-api")
    assert providers_of([CORE, addon]) == providers_of([CORE])


def test_a_label_with_the_version_goes_before_the_tag_of_the_image() -> None:
    found = providers_of([CORE, deployment("cluster-api", "pause:3.10", **{"app.kubernetes.io/version": "v1.9.0"})])
    assert found is not None
    assert found.core is not None
    assert found.core.version == "v1.9.0"


def test_definitions_without_the_label_of_a_provider_are_of_the_role_of_their_group() -> None:
    unlabelled = definition("gadgets", "Gadget", "bootstrap.cluster.x-k8s.io", "v1", v1beta1="v1")
    found = providers_of(
        [unlabelled, definition("others", "Other", "addons.cluster.x-k8s.io", "v1", provider="addon-x")]
    )
    assert found is not None
    assert [(each.name, each.contract) for each in found.bootstrap] == [("", "v1beta1")]
    assert (found.core, found.infrastructure) == (None, ())


def test_the_sample_has_four_providers() -> None:
    objects = [each for file in SAMPLE.glob("*.yaml") for each in yaml.safe_load_all(file.read_text())]
    found = providers_of(objects)
    assert found is not None
    assert found.core is not None
    others = [*found.bootstrap, *found.control_plane, *found.infrastructure]
    assert [(each.name, each.version, each.contract) for each in (found.core, *others)] == [
        ("cluster-api", "v1.14.2", "v1beta2"),
        ("kubeadm", "v1.14.2", "v1beta2"),
        ("kubeadm", "v1.14.2", "v1beta2"),
        ("openstack", "v0.15.0", "v1beta2"),
    ]


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [deployment("cluster-api", IMAGE)],
        [definition("things", "Thing", "acme.example", "v1")],
        [{"kind": "CustomResourceDefinition", "metadata": None}],
    ],
)
def test_objects_that_define_no_kind_of_cluster_api_have_no_providers(objects: list[dict[str, Any]]) -> None:
    assert providers_of(objects) is None


def test_malformed_objects_are_read_as_far_as_they_go() -> None:
    """A hostile package or cluster: members of other types."""
    broken = [
        {**CORE, "spec": {"versions": [None, {"name": 1}], "names": "x"}},
        {**INFRA, "metadata": {"name": "devclusters.infrastructure.cluster.x-k8s.io", "labels": ["x"]}},
        {**deployment("cluster-api", IMAGE), "spec": {"template": {"spec": {"containers": [None, "x"]}}}},
    ]
    found = providers_of(broken)
    assert found is not None
    assert found.core is not None
    assert (found.core.version, found.core.contract, found.core.kinds[0].versions) == (None, None, ())


def of_contract(contract: str | None, *, name: str = "docker") -> CapiProviders:
    return CapiProviders(infrastructure=(CapiProvider(name=name, contract=contract),))


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            "v1beta2",
            "v1beta1",
            ["infrastructure-docker: contract v1beta1, which is older than v1beta2, the present one"],
        ),
        ("v1", "v1beta2", ["infrastructure-docker: contract v1beta2, which is older than v1, the present one"]),
        (
            "v1beta10",
            "v1beta9",
            ["infrastructure-docker: contract v1beta9, which is older than v1beta10, the present one"],
        ),
        (
            "v1beta1",
            "v1alpha4",
            ["infrastructure-docker: contract v1alpha4, which is older than v1beta1, the present one"],
        ),
        ("v1beta1", "v1beta2", []),
        ("v1beta1", "v1beta1", []),
        ("v1beta1", None, []),
        (None, "v1beta1", []),
    ],
)
def test_a_contract_that_goes_back_is_found_by_provider(before: str | None, after: str | None, says: list[str]) -> None:
    """CR-046."""
    losses = contract_losses(of_contract(before), of_contract(after))
    assert [str(each) for each in losses] == says


def test_a_provider_that_leaves_or_comes_loses_no_contract() -> None:
    """CR-046: its definitions stay while they have resources."""
    assert contract_losses(of_contract("v1beta2"), of_contract("v1beta1", name="openstack")) == []
    assert contract_losses(None, of_contract("v1beta1")) == []
    assert contract_losses(of_contract("v1beta1"), None) == []
