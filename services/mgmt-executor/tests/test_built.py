"""The configuration that a cluster keeps of itself."""

from __future__ import annotations

import pytest
from kubevnfm_mgmt_executor.domain.kubernetes.answers import DrainAnswer
from kubevnfm_mgmt_executor.domain.kubernetes.built import BuiltCluster, read_configuration

COMMON = """
kind: ClusterConfiguration
controlPlaneEndpoint: 10.0.0.5:6443
kubernetesVersion: v1.31.4
networking: {dnsDomain: cluster.local, podSubnet: 192.168.0.0/20, serviceSubnet: 10.96.0.0/12}
"""


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ("controllerManager: {}", 16),
        ("controllerManager: {extraArgs: {node-cidr-mask-size: '26'}}", 64),
        ("controllerManager: {extraArgs: [{name: node-cidr-mask-size, value: '25'}]}", 32),
        ("", 16),
    ],
)
def test_both_forms_of_the_configuration_are_read(arguments: str, places: int) -> None:
    """v1beta3 and v1beta4 of kubeadm.k8s.io."""
    assert read_configuration(COMMON + arguments) == BuiltCluster("10.0.0.5:6443", "1.31.4", places)


@pytest.mark.parametrize("text", ["", "[]", "kind: x", "a: {", COMMON.replace("192.168.0.0/20", "pods")])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a ClusterConfiguration"):
        read_configuration(text)


def test_a_drain_waits_for_pods_that_are_not_the_nodes_own() -> None:
    """kubectl 1.31 (pkg/drain) prints a line for each eviction that is refused."""
    output = (
        "node/worker1 already cordoned\nevicting pod default/web-1\n"
        'error when evicting pods/"web-1" -n "default" (will retry after 5s): Cannot evict pod as it would violate the pod\'s '
        "disruption budget.\nerror: unable to drain node"
    )

    def pod(name: str, **metadata: object) -> dict[str, object]:
        return {"metadata": {"name": name, "namespace": "default", **metadata}, "status": {"phase": "Running"}}

    owner = {"kind": "DaemonSet", "controller": True}
    answer = DrainAnswer.model_validate(
        {
            "output": output,
            "pods": {
                "items": [
                    pod("web-1", ownerReferences=[{"kind": "ReplicaSet", "controller": True}]),
                    pod("web-2", deletionTimestamp="2026-11-20T12:00:00Z"),
                    pod("web-3"),
                    pod("proxy", ownerReferences=[owner]),
                    pod("static", annotations={"kubernetes.io/config.mirror": "x"}),
                ]
            },
        }
    )
    assert answer.waits_for == (
        "default/web-1 (Cannot evict pod as it would violate the pod's disruption budget), "
        "default/web-2 (terminating), default/web-3 (not evicted yet)"
    )
