"""Hooks and charts of an order: what is read, and what is refused with its line (multicloud.md MC-141, MC-048)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from kubevnfm_csar.artifact_order import ArtifactOrder, limit_s
from kubevnfm_csar.hooks import MOST_HOOKS, Hook, HookDelete, Occasion, Point, a_hook, helm_hook
from kubevnfm_csar.order_graph import OrderedDocument
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.ordered_manifests import read_artifacts
from kubevnfm_kit.errors import Unprocessable

ORDER = "Files/o.yaml"
FILES = frozenset(
    {ORDER, "Files/a.yaml", "Files/b.yaml", "c.yaml", "Files/web/Chart.yaml", "Files/web/x.yaml", "more.tgz"}
)


def a_map(name: str, annotations: str = "{}") -> str:
    return f"---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, annotations: {annotations}}}}}\n"


def read(artifacts: str) -> ArtifactOrder:
    return read_order(ORDER, f"artifacts:\n{artifacts}", FILES)


def documents(
    artifacts: str,
    files: Mapping[str, str],
    charts: Mapping[str, Sequence[tuple[str, str]]] | None = None,
) -> Sequence[OrderedDocument]:
    return read_artifacts(read(artifacts), list(files.items()), {}, namespace="own", charts=charts or {})


def refusal(artifacts: str, files: Mapping[str, str] | None = None) -> str:
    with pytest.raises(Unprocessable) as caught:
        documents(artifacts, files or {})
    return str(caught.value)


def hooks(found: Sequence[OrderedDocument]) -> Mapping[str, Hook]:
    return {each.body["metadata"]["name"]: each.artifact.hook for each in found if each.artifact.hook is not None}


def test_an_artifact_an_object_and_an_annotation_may_say_that_it_is_a_hook() -> None:
    """MC-141: what is narrower counts; `on` is read although YAML takes it for true."""
    found = documents(
        "- {file: a.yaml, hook: pre-apply, on: [create, update], hook_delete: [on-success, on-failure]}\n"
        "- {file: b.yaml}\n- {file: c.yaml, priority: 7}\n"
        "objects:\n- {object: {kind: ConfigMap, name: b2}, hook: post-delete, priority: 3}\n",
        {
            "Files/a.yaml": a_map("a") + a_map("a2", "{kubevnfm.io/hook: on-failure}"),
            "Files/b.yaml": a_map("b") + a_map("b2"),
            "c.yaml": a_map("c", "{kubevnfm.io/hook: pre-delete}"),
        },
    )
    given = frozenset({HookDelete.ON_SUCCESS, HookDelete.ON_FAILURE})
    assert hooks(found) == {
        "a": a_hook(Point.PRE_APPLY, [Occasion.CREATE, Occasion.UPDATE], given),
        "a2": a_hook(Point.ON_FAILURE),
        "b2": a_hook(Point.POST_DELETE),
        "c": a_hook(Point.PRE_DELETE),
    }
    assert [each.body["metadata"]["name"] for each in found if each.artifact.hook is None] == ["b"]
    assert all(each.runs_at(Point.PRE_DELETE, occasion) for each in [hooks(found)["c"]] for occasion in Occasion)


def test_a_vnf_has_no_more_hooks_than_can_be_stored() -> None:
    """MC-141: their runs are stored after each step of each."""
    many = "".join(a_map(f"m{number}") for number in range(MOST_HOOKS + 1))
    problem = refusal("- {file: a.yaml, hook: pre-apply}", {"Files/a.yaml": many})
    assert f"hook: at most {MOST_HOOKS} objects expected, not {MOST_HOOKS + 1}" in problem


def test_the_time_of_hooks_is_added_to_that_of_the_objects() -> None:
    """MC-141: each runs by itself."""
    order = read(
        "- {file: a.yaml, hook: pre-apply, timeout: 5}\n- {file: b.yaml, hook: post-apply, timeout: 7}\n- {file: c.yaml, timeout: 11}\n"
    )
    assert limit_s(order.artifacts, 500.0) == 23


@pytest.mark.parametrize(
    ("artifacts", "problem"),
    [
        ("- {file: a.yaml, hook: first}", "o.yaml:2: hook: one of pre-apply, post-apply, pre-delete"),
        ("- {file: a.yaml, hook: [pre-apply]}", "o.yaml:2: hook: one of"),
        (
            "- {file: a.yaml, hook: pre-apply, on: create}",
            "o.yaml:2: on: a list expected with create, update, rollback",
        ),
        ("- {file: a.yaml, hook: pre-apply, on: [scale]}", "o.yaml:2: on: a list expected"),
        ("- {file: a.yaml, hook: pre-apply, on: []}", "o.yaml:2: on: a list expected"),
        ("- {file: a.yaml, hook: pre-delete, on: [create]}", "on: expected with post-apply and pre-apply alone"),
        ("- {file: a.yaml, on: [create]}", "o.yaml:2: on: expected with hook alone"),
        ("- {file: a.yaml, hook_delete: [on-success]}", "o.yaml:2: hook_delete: expected with hook alone"),
        (
            "- {file: a.yaml, hook: pre-apply, hook_delete: [always]}",
            "o.yaml:2: hook_delete: a list expected with before-creation",
        ),
        ("- {chart: web, hook: pre-apply}", "o.yaml:2: hook: no such member"),
        ("- {chart: web, substitute: true}", "o.yaml:2: substitute: no such member"),
        (
            "- {chart: none}",
            "o.yaml:2: chart: an archive of the package, a folder with Chart.yaml, or oci and digest, expected, not none",
        ),
        ("- {chart: {oci: x}}", "o.yaml:2: chart: oci and digest expected, as texts"),
        ("- {chart: web}\n- {chart: Files/web/}", "Files/web is listed twice"),
    ],
)
def test_members_of_hooks_and_charts_that_are_wrong_are_named_with_their_line(artifacts: str, problem: str) -> None:
    """MC-141, MC-048: the rows of Bad input."""
    assert problem in refusal(artifacts)


@pytest.mark.parametrize(
    ("artifacts", "files", "problem"),
    [
        (
            "- {file: a.yaml, hook: pre-apply, after: [b.yaml]}\n- {file: b.yaml}\n",
            {"Files/a.yaml": a_map("a"), "Files/b.yaml": a_map("b")},
            "o.yaml:2: after: Files/b.yaml is no hook, and a hook comes after hooks alone",
        ),
        (
            "- {file: a.yaml, hook: pre-apply}\n- {file: b.yaml, after: [ConfigMap/a]}\n",
            {"Files/a.yaml": a_map("a"), "Files/b.yaml": a_map("b")},
            "o.yaml:3: after: ConfigMap/a is a hook, which runs before or after all objects",
        ),
        (
            "- {file: a.yaml, hook: pre-apply, after: [b.yaml]}\n- {file: b.yaml, hook: post-apply}\n",
            {"Files/a.yaml": a_map("a"), "Files/b.yaml": a_map("b")},
            "o.yaml:2: after: Files/b.yaml runs at another point",
        ),
        (
            "- {file: a.yaml, hook: pre-apply, after: [ConfigMap/none]}\n",
            {"Files/a.yaml": a_map("a")},
            "o.yaml:2: after: the order has no hook ConfigMap/none",
        ),
        (
            "- {file: a.yaml, hook: pre-apply, after: [b.yaml]}\n- {file: b.yaml, hook: pre-apply, after: [a.yaml]}\n",
            {"Files/a.yaml": a_map("a"), "Files/b.yaml": a_map("b")},
            "after: a cycle: ConfigMap/a of Files/a.yaml after ConfigMap/b of Files/b.yaml after ConfigMap/a of Files/a.yaml",
        ),
        (
            "- {file: a.yaml, hook: pre-apply, keep: [on-delete]}\n",
            {"Files/a.yaml": a_map("a")},
            "Files/a.yaml, document 1: apply, ignore_fields and keep not expected for a hook",
        ),
        (
            "- {file: a.yaml}\n",
            {"Files/a.yaml": a_map("a", "{kubevnfm.io/hook: soon}")},
            "Files/a.yaml, document 1: kubevnfm.io/hook: one of pre-apply",
        ),
        (
            "- {file: a.yaml}\nobjects: [{object: {kind: ConfigMap, name: a}, hook: pre-apply}]\n",
            {"Files/a.yaml": a_map("a", "{kubevnfm.io/hook: post-apply}")},
            "o.yaml:3: object: hook not expected beside kubevnfm.io/hook of Files/a.yaml, document 1",
        ),
    ],
)
def test_hooks_come_after_hooks_of_their_point_alone(artifacts: str, files: Mapping[str, str], problem: str) -> None:
    """MC-141."""
    assert problem in refusal(artifacts, files)


def test_a_chart_gives_objects_and_hooks_and_tests_among_them() -> None:
    """MC-048, MC-141: what comes after a chart comes after its objects; a file inside a chart is not ignored, but part of it."""
    artifacts = "- {chart: web, priority: 2}\n- {chart: more.tgz}\n- {file: a.yaml, after: [web]}\n"
    order = read(artifacts)
    assert (order.files, order.charts) == (("Files/a.yaml",), ("more.tgz", "Files/web"))
    assert order.ignored(FILES) == ("Files/b.yaml",)
    templates = [
        (
            "Files/web: web/templates/x.yaml",
            a_map("pre", '{helm.sh/hook: "pre-install,test", helm.sh/hook-weight: "-2"}'),
        ),
        ("Files/web: web/templates/y.yaml", a_map("test", "{helm.sh/hook: test}") + a_map("kept")),
    ]
    found = documents(artifacts, {"Files/a.yaml": a_map("a")}, {"Files/web": templates, "more.tgz": []})
    assert hooks(found)["pre"].weight == -2
    assert hooks(found)["pre"].points == {Point.PRE_APPLY, Point.TEST}
    assert hooks(found)["test"].points == {Point.TEST}
    assert [(each.body["metadata"]["name"], each.place, each.after) for each in found] == [
        ("a", "Files/a.yaml, document 1", frozenset({("Files/web", 0)})),
        ("kept", "Files/web: web/templates/y.yaml, document 3", None),
        ("pre", "Files/web: web/templates/x.yaml, document 1", None),
        ("test", "Files/web: web/templates/y.yaml, document 2", None),
    ]
    # A priority of the order takes the place of the weight.
    moved = f"{artifacts}objects:\n- {{object: {{kind: ConfigMap, name: pre}}, priority: 5}}\n"
    (pre, _) = (
        each.artifact
        for each in documents(moved, {"Files/a.yaml": a_map("a")}, {"Files/web": templates, "more.tgz": []})
        if each.artifact.hook is not None
    )
    assert (pre.priority, pre.hook and pre.hook.weight) == (5, None)
    # Before it is rendered, an object that is named may be one of it.
    named = f"{artifacts}objects:\n- {{object: {{kind: Job, name: x}}, priority: 1}}\n"
    assert len(documents(named, {"Files/a.yaml": a_map("a")})) == 1


@pytest.mark.parametrize(
    ("name", "point", "occasions"),
    [
        ("pre-install", Point.PRE_APPLY, {Occasion.CREATE}),
        ("post-upgrade", Point.POST_APPLY, {Occasion.UPDATE}),
        ("pre-rollback", Point.PRE_APPLY, {Occasion.ROLLBACK}),
        ("post-delete", Point.POST_DELETE, set(Occasion)),
        ("test", Point.TEST, set(Occasion)),
    ],
)
def test_helms_hooks_map_to_points_and_occasions(name: str, point: Point, occasions: set[Occasion]) -> None:
    """MC-141."""
    body = {"metadata": {"annotations": {"helm.sh/hook": f" {name.upper()} "}}}
    found = helm_hook(body)
    assert found is not None
    assert found.at == {(point, each) for each in occasions}
    assert found.delete == {HookDelete.BEFORE_CREATION}
    assert helm_hook({"metadata": {"annotations": None}}) is None
