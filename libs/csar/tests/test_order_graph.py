"""Artifacts and objects that name what must be ready before they start (multicloud.md MC-013, MC-014)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kubevnfm_csar.artifact_order import limit_s
from kubevnfm_csar.order_graph import OrderedDocument
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.ordered_manifests import read_artifacts
from kubevnfm_csar.waits import Wait
from kubevnfm_kit.errors import Unprocessable

ORDER = "Files/o.yaml"


def manifest(kind: str, name: str, *, group: str = "", namespace: str = "", after: str | None = None) -> str:
    note = f", annotations: {{kubevnfm.io/after: '{after}'}}" if after is not None else ""
    place = f", namespace: {namespace}" if namespace else ""
    return f"---\n{{apiVersion: {group + '/' if group else ''}v1, kind: {kind}, metadata: {{name: {name}{place}{note}}}}}\n"


def read(artifacts: str, files: Mapping[str, str]) -> Mapping[str, OrderedDocument]:
    """Return the objects of an order by name."""
    texts = {f"Files/{name}": text for name, text in files.items()}
    order = read_order(ORDER, f"foreign_namespaces: [far]\nartifacts:\n{artifacts}", texts)
    found = read_artifacts(order, [(name, texts[name]) for name in order.files], {}, namespace="own")
    return {each.body["metadata"]["name"]: each for each in found}


def refusal(artifacts: str, files: Mapping[str, str]) -> str:
    with pytest.raises(Unprocessable) as caught:
        read(artifacts, files)
    return str(caught.value)


A, B, C = (f"Files/{name}.yaml" for name in "abc")
FILES = {f"{name}.yaml": manifest("ConfigMap", name) for name in "abc"}


def test_without_after_there_are_priorities_alone() -> None:
    found = read("- {file: a.yaml}\n- {file: b.yaml, priority: 2}\n", FILES)
    assert {(each.after, each.level, each.counts) for each in found.values()} == {(None, None, True)}


def test_an_artifact_comes_after_files_and_objects() -> None:
    """MC-013: of any priority; no other artifact waits for it, unless it has a priority."""
    files = {
        **FILES,
        "b.yaml": manifest("Broker", "main", group="example.org") + manifest("Broker", "main2", group="example.net"),
        "far.yaml": manifest("Secret", "remote", namespace="far"),
    }
    order = (
        "- {file: a.yaml, priority: 1}\n- {file: b.yaml, priority: 2}\n- {file: far.yaml, priority: 5}\n"
        "- {file: c.yaml, after: [a.yaml, Broker.example.org/main, Secret/far/remote]}\n"
    )
    found = read(order, files)
    assert found["c"].after == frozenset({(A, 0), (B, 1), ("Files/far.yaml", 1)})
    assert [found[name].level for name in ("a", "main", "main2", "remote", "c")] == [1, 2, 2, 3, 4]
    assert not found["c"].counts
    with_priority = read(order.replace("after", "priority: 6, after"), files)
    assert with_priority["c"].counts


def test_an_object_says_the_same_by_an_annotation() -> None:
    """MC-013: in the place of what its artifact says."""
    files = {**FILES, "c.yaml": manifest("Job", "c", after="ConfigMap/b, a.yaml") + manifest("Job", "d", after="")}
    found = read("- {file: a.yaml}\n- {file: b.yaml}\n- {file: c.yaml, priority: 7, after: [Job/d]}\n", files)
    problem = refusal("- {file: b.yaml}\n- {file: c.yaml}\n", files)
    assert f"{C}, document 1: kubevnfm.io/after: the order has no file and no object a.yaml" in problem
    assert found["c"].after == frozenset({(B, 1), (A, 0)})
    assert found["d"].after == frozenset()
    assert (found["c"].level, found["d"].level, found["c"].counts) == (2, 1, True)


@pytest.mark.parametrize(
    ("artifacts", "cycle"),
    [
        (
            "- {file: a.yaml, after: [b.yaml]}\n- {file: b.yaml, after: [c.yaml]}\n- {file: c.yaml, after: [a.yaml]}\n",
            ("ConfigMap/a of Files/a.yaml", "ConfigMap/b of Files/b.yaml", "ConfigMap/c of Files/c.yaml"),
        ),
        ("- {file: a.yaml, after: [ConfigMap/a]}\n", ("ConfigMap/a of Files/a.yaml",)),
        # b waits for all objects of lower priorities.
        (
            "- {file: a.yaml, priority: 1, after: [b.yaml]}\n- {file: b.yaml, priority: 2}\n",
            ("ConfigMap/a of Files/a.yaml", "ConfigMap/b of Files/b.yaml", "priority 2"),
        ),
    ],
)
def test_a_cycle_is_refused_with_its_members_in_order(artifacts: str, cycle: tuple[str, ...]) -> None:
    problem = refusal(artifacts, FILES)
    assert "after: a cycle: " in problem
    named = problem.partition("a cycle: ")[2].split(" after ")
    members = [each for each in named if each.startswith(("ConfigMap", "priority"))]
    start = members.index(cycle[0])
    assert members[0] == members[-1]
    assert tuple((members[:-1] * 2)[start : start + len(cycle)]) == cycle


def test_an_order_has_a_thousand_different_sets_of_predecessors() -> None:
    """MC-013: the position of an operation is stored before and after each, with all objects."""
    chain = "".join(manifest("ConfigMap", f"m{n}", after=f"ConfigMap/m{n - 1}") for n in range(1, 1002))
    twin = manifest("ConfigMap", "twin", after="ConfigMap/m999")
    files = {"a.yaml": manifest("ConfigMap", "m0") + chain + twin}
    expected = "after: at most 1000 different sets of predecessors expected"
    assert refusal("- {file: a.yaml}\n", files).endswith(expected)
    fewer = {"a.yaml": files["a.yaml"].replace("ConfigMap/m1'", "ConfigMap/m0'")}
    assert read("- {file: a.yaml}\n", fewer)["twin"].level == 1000


@pytest.mark.parametrize(
    ("artifacts", "problem"),
    [
        ("- {file: a.yaml}\n- file: b.yaml\n  after: [ConfigMap/x]\n", f"{ORDER}:4: after: the order has no file and no object"),
        ("- {file: a.yaml}\n- file: b.yaml\n  after: [c.yaml]\n", f"{ORDER}:4: after: a file of the order, or Kind"),
        ("- {file: a.yaml}\n- file: b.yaml\n  after: a.yaml\n", f"{ORDER}:5: after: a list of at most 100 files and obj"),
        ("- {file: a.yaml, after: [ConfigMap/far/b]}\n- {file: b.yaml}\n", f"{ORDER}:3: after: the order has no file and no"),
        ("- {file: a.yaml, after: [ConfigMap.apps/b]}\n- {file: b.yaml}\n", f"{ORDER}:3: after: the order has no file and no"),
        (f"- {{file: a.yaml, after: [{'a.yaml,' * 101}]}}\n", f"{ORDER}:3: after: a list of at most 100"),
    ],
)  # fmt: skip
def test_an_entry_that_names_nothing_is_refused(artifacts: str, problem: str) -> None:
    assert problem in refusal(artifacts, FILES)


def test_a_single_object_has_members_of_its_own() -> None:
    """MC-011: they take the place of those of its file."""
    files = {
        "a.yaml": manifest("Broker", "main", group="example.org") + manifest("ConfigMap", "a"),
        "b.yaml": FILES["b.yaml"],
    }
    order = (
        "- {file: a.yaml, priority: 1, timeout: 9}\n- {file: b.yaml, priority: 2}\nobjects:\n"
        "- {object: {kind: Broker, group: example.org, name: main}, priority: 5, wait: exists}\n"
        "- {object: {kind: ConfigMap, name: b, namespace: own}, after: [ConfigMap/a], timeout: 7}\n"
    )
    found = read(order, files)
    main, a, b = (found[name].artifact for name in ("main", "a", "b"))
    assert [(each.priority, each.wait, each.timeout_s) for each in (main, a, b)] == [
        (5, Wait.EXISTS, 9),
        (1, Wait.READY, 9),
        (2, Wait.READY, 7),
    ]
    assert found["b"].after == frozenset({(A, 2)})
    assert [found[name].level for name in ("a", "b", "main")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("objects", "problem"),
    [
        ("- {object: {kind: ConfigMap, name: x}, priority: 1}", f"{ORDER}:5: object: the order has no object ConfigMap/x"),
        ("- {object: {kind: ConfigMap, name: a}, conflict: no}", f"{ORDER}:5: conflict: one of force, abort expected"),
        ("- {object: {kind: ConfigMap, name: a}}", f"{ORDER}:5: object: one of after, apply, conflict, hook, hook_delete, on, ignore_fields, keep, priority, timeout, wait expected"),
        ("- {object: {kind: ConfigMap, name: a}, wait: soon}", f"{ORDER}:5: wait: one of none, exists, ready"),
        ("- {object: {kind: ConfigMap, name: a}, keep: [always]}", f"{ORDER}:5: keep: on-delete and on-change expected"),
        (
            "- {object: {kind: ConfigMap, name: a}, ignore_fields: [data]}",
            f"{ORDER}:5: ignore_fields: a JSON Pointer such as /spec/replicas expected, not 'data'",
        ),
        ("- {object: {kind: ConfigMap, name: a}, substitute: false}", f"{ORDER}:5: substitute: no such member"),
        ("- {object: {kind: ConfigMap, name: a, hue: x}, priority: 1}", f"{ORDER}:5: hue: no such member"),
        ("- {object: {kind: configmap, name: a}, priority: 1}", f"{ORDER}:5: object: kind, name, and a group and"),
        ("- {object: {kind: ConfigMap, name: 5}, priority: 1}", f"{ORDER}:5: object: kind, name, and a group and"),
        ("- {object: {kind: ConfigMap, name: a}, after: [c.yaml]}", f"{ORDER}:5: after: a file of the order, or Kind"),
        ("- {file: a.yaml}", f"{ORDER}:4: objects: objects with object expected"),
        (
            "- {object: {kind: ConfigMap, name: a}, priority: 1}\n- {object: {kind: ConfigMap, name: a}, priority: 2}",
            f"{ORDER}:6: object: ConfigMap/a is listed twice",
        ),
        (
            "- {object: {kind: ConfigMap, name: a}, priority: 1}\n- {object: {kind: ConfigMap, namespace: own, name: a}, priority: 2}",
            f"{ORDER}:6: object: ConfigMap/own/a names an object that another entry has",
        ),
    ],
)  # fmt: skip
def test_an_object_that_the_order_cannot_place_is_refused(objects: str, problem: str) -> None:
    assert problem in refusal(
        f"- {{file: a.yaml}}\nobjects:\n{objects}\n", {"a.yaml": FILES["a.yaml"], "c.yaml": FILES["c.yaml"]}
    )


def test_after_is_said_once_for_an_object() -> None:
    files = {"a.yaml": FILES["a.yaml"], "b.yaml": manifest("ConfigMap", "b", after="a.yaml")}
    order = "- {file: a.yaml}\n- {file: b.yaml}\nobjects:\n- {object: {kind: ConfigMap, name: b}, after: []}\n"
    assert f"after not expected beside kubevnfm.io/after of {B}, document 1" in refusal(order, files)


def test_an_object_adds_its_own_limit() -> None:
    order = read_order(
        ORDER,
        "artifacts: [{file: a.yaml, timeout: 10}]\nobjects: [{object: {kind: A, name: a}, timeout: 5}, "
        "{object: {kind: A, name: b}, priority: 0, timeout: 50}]\n",
        {A},
    )
    assert limit_s([*order.artifacts, *(each.for_limits for each in order.objects)], 500.0) == 55


def test_conflicts_are_forced_unless_the_order_or_the_object_says_otherwise() -> None:
    """MC-106b."""
    noted = "---\n{apiVersion: v1, kind: A, metadata: {name: %s, annotations: {kubevnfm.io/conflict: %s}}}\n"
    files = {
        "a.yaml": noted % ("a", "abort") + manifest("A", "b") + manifest("A", "d"),
        "c.yaml": noted % ("c", "force"),
    }
    order = (
        "- {file: a.yaml}\n- {file: c.yaml, conflict: abort}\n"
        "objects: [{object: {kind: A, name: d}, conflict: abort}]\n"
    )
    assert {name: each.artifact.takes_fields for name, each in read(order, files).items()} == {
        "a": False,
        "b": True,
        "d": False,
        "c": True,
    }
    files["c.yaml"] = noted % ("c", "ask")
    assert f"{C}, document 1: kubevnfm.io/conflict: one of force, abort expected" in refusal(order, files)


def test_a_file_without_objects_is_ready() -> None:
    """As one that a modification of the CNF has replaced."""
    found = read(
        "- {file: a.yaml}\n- {file: b.yaml, after: [a.yaml]}\n", {"a.yaml": "# none\n", "b.yaml": FILES["b.yaml"]}
    )
    assert (found["b"].after, found["b"].level) == (frozenset({(A, 0)}), 1)
