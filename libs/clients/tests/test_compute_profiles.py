"""Compute profiles are read as requests give them."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_clients.multicloud.compute_profiles import ComputeProfileRequest
from pydantic import ValidationError


def test_what_is_asked_for_is_what_is_applied() -> None:
    """MC-035, MC-121: each member of a request but ``check_features`` reaches the command."""
    given = {
        "vdu_id": "web",
        "container": "main",
        "replicas": 2,
        "requests": {"cpu": "500m"},
        "limits": {"intel.com/sriov": "1"},
        "hugepages": {"2Mi": "512Mi"},
        "node_selector": {"feature.node.kubernetes.io/cpu-model.id": "85"},
        "affinity": [{"key": "cores", "operator": "Gt", "values": ["8"]}],
        "tolerations": [
            {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "toleration_seconds": 3}
        ],
        "runtime_class": "kata",
        "resource_claims": [{"name": "gpu", "device_class": "gpu.example.com", "count": 32, "selectors": ["true"]}],
    }
    read = ComputeProfileRequest.model_validate({**given, "check_features": False})
    assert read.facts().model_dump(mode="json") == given
    assert not read.check_features


@pytest.mark.parametrize(
    "given",
    [
        {"requests": {"cpu": "much"}},
        {"requests": {"cpu": "-1"}},
        {"requests": {"cpu": 1}},
        {"requests": {"cpu": "\N{ARABIC-INDIC DIGIT ONE}"}},
        {"hugepages": {"1\N{ARABIC-INDIC DIGIT ONE}Mi": "1Gi"}},
        {"replicas": -1},
        {"replicas": 10_001},
        {"replicas": True},
        {"hugepages": {"huge": "1Gi"}},
        {"affinity": [{"key": "a", "operator": "Near", "values": ["b"]}]},
        {"affinity": [{"key": "a", "operator": "Gt", "values": ["b"]}]},
        {"affinity": [{"key": "a", "operator": "In"}]},
        {"affinity": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        {"tolerations": [{"operator": "Exists", "value": "b"}]},
        {"tolerations": [{"key": "a", "toleration_seconds": 3}]},
        {"resource_claims": [{"name": "gpu", "device_class": "x", "count": 33}]},
        {"resource_claims": [{"name": "gpu", "device_class": "x", "count": 0}]},
        {"runtime_class": "Kata!"},
        {"node_selector": {"a": "b c"}},
        {"memory": "1Gi"},
    ],
)
def test_what_a_request_may_not_say(given: dict[str, Any]) -> None:
    """MC-121: quantities, operators, counts and names are those of Kubernetes, and no member is ignored."""
    with pytest.raises(ValidationError):
        ComputeProfileRequest.model_validate({"vdu_id": "web", **given})
