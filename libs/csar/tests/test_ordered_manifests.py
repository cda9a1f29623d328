"""The artifacts of an order, read without a cluster (multicloud.md MC-012, MC-017 to MC-019)."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_csar.ordered_manifests import read_artifacts
from kubevnfm_kit.errors import Unprocessable

MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s%s}\n"


def order(*artifacts: OrderedArtifact, values: Any = None, foreign: tuple[str, ...] = ()) -> ArtifactOrder:
    return ArtifactOrder("o.yaml", artifacts, values or {}, frozenset(foreign))


def refusal(texts: dict[str, str], *artifacts: OrderedArtifact, **more: Any) -> str:
    with pytest.raises(Unprocessable) as caught:
        read_artifacts(order(*artifacts, **more), list(texts.items()), {}, namespace="own")
    return str(caught.value)


def test_documents_lists_and_empty_ones_are_read_in_order_and_filled_in() -> None:
    """MC-017: a given value takes precedence over that of the order; a file may be left as it is."""
    text = (
        MAP % ("$n", "")
        + "---\n---\n"
        + "kind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: '$m'}}\n"
    )
    literal = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s}\ndata: {x: $n}\n"
    first, second = OrderedArtifact("a.yaml", priority=2), OrderedArtifact("b.yaml", priority=3, is_filled_in=False)
    found = read_artifacts(
        order(first, second, values={"n": "one", "m": "two"}),
        [("a.yaml", text), ("b.yaml", literal), ("c.yaml", MAP % ("c", ""))],
        {"m": "three"},
        namespace="own",
    )
    assert [(each.artifact, each.number, each.body["metadata"]["name"]) for each in found] == [
        (first, 1, "one"),
        (first, 2, "three"),
        (second, 1, "s"),
        # As a file that a modification of the CNF brings.
        (OrderedArtifact("c.yaml"), 1, "c"),
    ]
    assert found[2].body["data"] == {"x": "$n"}


def test_an_artifact_that_is_no_yaml_is_named_with_line_and_column() -> None:
    assert "a.yaml:2:4: invalid YAML" in refusal({"a.yaml": "x: 1\n  y: 2\n"})


@pytest.mark.parametrize("binding", ["slirp", "macvtap", "passt"])
def test_a_binding_that_kubevirt_ignores_is_refused_with_its_place(binding: str) -> None:
    """MC-066, and its bad input: in each kind with machines; an empty one is none."""
    interfaces = f"[{{name: a, bridge: {{}}, passt: null}}, {{name: b, {binding}: {{}}}}]"
    spec = f"{{template: {{spec: {{domain: {{devices: {{interfaces: {interfaces}}}}}}}}}}}"
    text = f"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {{name: m}}\nspec: {spec}\n"
    place = f"a.yaml, document 1: spec.template.spec.domain.devices.interfaces[1].{binding}: not expected: KubeVirt has"
    assert place in refusal({"a.yaml": text})
    assert f'{{"plugin": "{binding}"}} names its successor' in refusal({"a.yaml": text})
    wrong = f"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {{name: m}}\nspec: [{binding}]\n"
    assert read_artifacts(order(), [("a.yaml", wrong)], {}, namespace="own")


def test_a_key_that_is_given_twice_is_refused() -> None:
    """MC-017."""
    assert "a.yaml:2:1: invalid YAML: key kind given twice" in refusal({"a.yaml": "kind: A\nkind: B\n"})


def test_an_object_in_two_artifacts_is_refused() -> None:
    """MC-019: whether it names the instance's namespace or none."""
    found = refusal({"a.yaml": MAP % ("x", ""), "b.yaml": MAP % ("x", ", namespace: own")})
    assert "ConfigMap x: defined in both a.yaml, document 1 and b.yaml, document 1" in found


def test_another_namespace_is_refused_unless_the_order_allows_it() -> None:
    """MC-018."""
    text = MAP % ("x", ", namespace: other")
    assert "a.yaml, document 1: namespace own expected" in refusal({"a.yaml": text})
    (found,) = read_artifacts(order(foreign=("other",)), [("a.yaml", text)], {}, namespace="own")
    assert found.body["metadata"]["namespace"] == "other"


def test_the_kind_that_onaps_form_names_is_that_of_the_file() -> None:
    """MC-012."""
    artifact = OrderedArtifact("a.yaml", kind="deployment")
    assert "a.yaml, document 1: kind deployment expected" in refusal({"a.yaml": MAP % ("x", "")}, artifact)
    assert read_artifacts(
        order(OrderedArtifact("a.yaml", kind="configmap")), [("a.yaml", MAP % ("x", ""))], {}, namespace="own"
    )


def test_what_is_no_object_is_named_with_its_document() -> None:
    found = refusal({"a.yaml": "{kind: A}\n---\n5\n---\n{apiVersion: v1, kind: 3}\n"})
    for number, lacking in ((1, "apiVersion"), (2, "apiVersion and kind"), (3, "kind")):
        assert f"a.yaml, document {number}: {lacking} expected in a Kubernetes manifest" in found
