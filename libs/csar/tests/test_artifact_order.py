"""The order artifact of a package (multicloud.md MC-010 to MC-016)."""

from __future__ import annotations

import pytest
from kubevnfm_csar.artifact_order import ArtifactOrder, find_order, limit_s
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.waits import Wait, WantedResult, WantedValue
from kubevnfm_kit.errors import Unprocessable

NAME = "Files/kubernetes/artifact-order.yaml"
FILES = frozenset(
    {
        NAME,
        "Definitions/v.yaml",
        "Files/kubernetes/a.yaml",
        "Files/kubernetes/b.yaml",
        "Files/kubernetes/more/c.json",
        "x.yaml",
    }
)


def read(text: str) -> ArtifactOrder:
    return read_order(NAME, text, FILES)


def problems(text: str) -> list[str]:
    with pytest.raises(Unprocessable) as caught:
        read(text)
    assert {field for field, _ in caught.value.places} == {"additionalParams/order_artifact"}
    return [reason for _, reason in caught.value.places]


@pytest.mark.parametrize(
    "path",
    [
        f"{folder}{name}"
        for folder in ("", "Artifacts/", "Files/kubernetes/")
        for name in ("artifact-order.yaml", "metadata.yaml")
    ],
)
def test_the_order_is_found_by_its_name_in_three_folders(path: str) -> None:
    """MC-010."""
    assert find_order({path, "Files/a.yaml", f"Other/{path}"}) == path


def test_a_package_without_an_order_has_none() -> None:
    """MC-015."""
    assert find_order({"Files/artifact-order.yaml", "Files/kubernetes/a.yaml"}) is None


def test_an_order_that_is_named_may_be_any_file_of_the_package() -> None:
    """MC-010."""
    assert find_order({"o/rank.yaml", "metadata.yaml"}, "o/rank.yaml") == "o/rank.yaml"
    for named in ("none.yaml", 5, ["metadata.yaml"]):
        with pytest.raises(Unprocessable, match="the path of a file in the package expected"):
            find_order({"metadata.yaml"}, named)


def test_two_orders_in_a_package_are_refused() -> None:
    """MC-010."""
    with pytest.raises(Unprocessable, match=r"Artifacts/metadata\.yaml, Files/kubernetes/artifact-order\.yaml"):
        find_order({"Artifacts/metadata.yaml", NAME})


def test_the_own_form_has_priorities_waits_limits_and_values() -> None:
    """MC-011: lower is earlier; artifacts of one priority stay as they are written; paths are relative or from the root."""
    order = read(
        "artifacts:\n"
        "- {file: b.yaml, priority: 7, wait: none, substitute: false}\n"
        "- {file: more/c.json, priority: 2, wait: exists, timeout: 86400}\n"
        "- {file: x.yaml}\n"
        "- {file: a.yaml, priority: 2}\n"
        "values: {db: {port: 5432}}\n"
        "foreign_namespaces: [shared]\n"
    )
    assert order.files == (
        "x.yaml",
        "Files/kubernetes/more/c.json",
        "Files/kubernetes/a.yaml",
        "Files/kubernetes/b.yaml",
    )
    assert [each.priority for each in order.artifacts] == [0, 2, 2, 7]
    assert [each.wait for each in order.artifacts] == [Wait.READY, Wait.EXISTS, Wait.READY, Wait.NONE]
    assert [each.timeout_s for each in order.artifacts] == [None, 86400, None, None]
    assert [each.is_filled_in for each in order.artifacts] == [True, True, True, False]
    assert order.values == {"db": {"port": 5432}}
    assert order.foreign_namespaces == {"shared"}
    # Each priority takes its longest wait.
    assert limit_s(order.artifacts, 500.0) == 500 + 86400 + 500


@pytest.mark.parametrize(
    ("wait", "status", "is_held"),
    [
        ("{jsonpath: '{.status.phase}', value: Up}", {"phase": "Up"}, True),
        ("{jsonpath: .status.phase, value: Up}", {"phase": "Down"}, False),
        ("{jsonpath: 'status.phase'}", {"phase": "any"}, True),
        ("{jsonpath: 'status.phase'}", {}, False),
        ("{jsonpath: 'status.parts[1].ready', value: true}", {"parts": [{}, {"ready": True}]}, True),
        ("{jsonpath: \"status['a.b']\", value: 3}", {"a.b": 3}, True),
        ("{jsonpath: 'status.count', value: '3'}", {"count": 3}, True),
    ],
)
def test_a_wait_may_name_a_path_and_its_value(wait: str, status: object, is_held: bool) -> None:
    """MC-011: as kubectl wait reads it; the value is compared as text; without one, the path has to exist."""
    (found,) = read(f"artifacts: [{{file: a.yaml, wait: {wait}}}]").artifacts
    assert found.wait is Wait.PATH
    assert isinstance(found.wanted, WantedValue)
    assert found.wanted.holds({"status": status}) is is_held


def test_a_wait_may_be_an_expression() -> None:
    """MC-011."""
    wait = "{cel: 'object.status.n > 1', failed: 'object.status.n < 0'}"
    (found,) = read(f"artifacts: [{{file: a.yaml, wait: {wait}}}]").artifacts
    assert found.wait is Wait.EXPRESSION
    assert found.wanted == WantedResult("object.status.n > 1", "object.status.n < 0")


def test_the_number_of_expressions_is_limited() -> None:
    artifacts = ", ".join(f"{{file: {name}.yaml, wait: {{cel: 'true'}}}}" for name in "ab")
    assert len(read(f"artifacts: [{artifacts}]").artifacts) == 2
    many = ", ".join(f"{{file: {number}.yaml, wait: {{cel: '{number} == 1'}}}}" for number in range(101))
    with pytest.raises(Unprocessable, match="at most 100 different expressions expected"):
        read_order(NAME, f"artifacts: [{many}]", {f"{number}.yaml" for number in range(101)})


@pytest.mark.parametrize(
    "text",
    [
        "resources:\n- deployment: [a.yaml]\n- service: [b.yaml, x.yaml]\n",
        "resources:\n  deployment: [a.yaml]\n  service: [b.yaml, x.yaml]\n",
    ],
)
def test_both_forms_of_onap_have_priorities_by_position(text: str) -> None:
    """MC-012: the map form is read in the order in which it is written."""
    order = read(text)
    assert [(each.file, each.priority, each.kind) for each in order.artifacts] == [
        ("Files/kubernetes/a.yaml", 1, "deployment"),
        ("Files/kubernetes/b.yaml", 2, "service"),
        ("x.yaml", 2, "service"),
    ]


def test_files_that_the_order_does_not_list_are_ignored() -> None:
    """MC-016: those beside it and below; its own folder has no definitions."""
    assert read("artifacts: [{file: a.yaml}]").ignored(FILES) == (
        "Files/kubernetes/b.yaml",
        "Files/kubernetes/more/c.json",
    )
    schema = "Files/kubernetes/values.schema.json"
    assert schema not in read("artifacts: [{file: a.yaml}]").ignored({*FILES, schema}), (
        "requests are checked against it"
    )
    assert read_order("x.yaml", "artifacts: [{file: Files/kubernetes/a.yaml}]", FILES).ignored(FILES) == (
        NAME,
        "Files/kubernetes/b.yaml",
        "Files/kubernetes/more/c.json",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("artifacts: [{file: a.yaml}]\nother: 1", f"{NAME}:2: other: no such member"),
        ("artifacts:\n- {file: none.yaml}", f"{NAME}:2: file: the package has no file none.yaml"),
        ("artifacts:\n- {file: ../../x}", f"{NAME}:2: file: the package has no file ../../x"),
        ("artifacts:\n- {priority: 1}", f"{NAME}:2: file: a path in the package expected"),
        ("artifacts:\n- file: a.yaml\n  hue: 1", f"{NAME}:3: hue: no such member"),
        *(
            (f"artifacts:\n- file: a.yaml\n  {member}", f"{NAME}:3: {reason}")
            for member, reason in (
                ("apply: x", "apply: one of server-side, create-only, read-only expected"),
                ("keep: on-delete", "keep: a list of on-delete and on-change expected"),
                ("keep: []", "keep: a list of"),
                ("ignore_fields: /spec", "ignore_fields: a list of JSON Pointers expected"),
                (
                    f"ignore_fields: {[f'/a{number}' for number in range(51)]}",
                    "ignore_fields: at most 50 JSON Pointers",
                ),
                ("ignore_fields: [/kind]", "ignore_fields: /kind: not expected; of the metadata only labels"),
                ("ignore_fields: [/metadata/name]", "ignore_fields: /metadata/name: not expected"),
                (
                    "ignore_fields: [/metadata/labels/kubevnfm.io~1vnf-instance-id]",
                    "ignore_fields: /metadata/labels/kub",
                ),
                ("ignore_fields: [/a~2]", "ignore_fields: ~0 or ~1 expected after each ~"),
                ("ignore_fields: [/spec/]", "ignore_fields: a JSON Pointer such as"),
            )
        ),
        (
            "artifacts:\n- {file: a.yaml, apply: read-only, keep: [on-delete]}",
            f"{NAME}:2: keep: not expected with apply: read-only",
        ),
        (
            "artifacts:\n- {file: a.yaml, apply: create-only, ignore_fields: [/a]}",
            f"{NAME}:2: ignore_fields: not expected with apply: create-only",
        ),
        (
            "artifacts:\n- file: a.yaml\n  priority: 1.5",
            f"{NAME}:3: priority: a whole number from 0 to 1000000 expected",
        ),
        ("artifacts:\n- file: a.yaml\n  priority: -1", f"{NAME}:3: priority"),
        ("artifacts:\n- file: a.yaml\n  priority: 1000001", f"{NAME}:3: priority"),
        ("artifacts:\n- file: a.yaml\n  priority: yes", f"{NAME}:3: priority"),
        (
            "artifacts:\n- file: a.yaml\n  wait: soon",
            f"{NAME}:3: wait: one of none, exists, ready, or an object with cel or jsonpath",
        ),
        ("artifacts:\n- file: a.yaml\n  wait: [ready]", f"{NAME}:3: wait"),
        ("artifacts:\n- file: a.yaml\n  wait:\n    value: x", f"{NAME}:4: wait/jsonpath: a path such as"),
        ("artifacts:\n- file: a.yaml\n  wait:\n    cel: object.a.b ==", f"{NAME}:4: wait/cel: 1:14: Syntax error"),
        (
            "artifacts:\n- file: a.yaml\n  wait: {cel: 'true', failed: '1'}",
            f"{NAME}:3: wait/failed: an expression that",
        ),
        ("artifacts:\n- file: a.yaml\n  wait: {cel: 1}", f"{NAME}:3: wait/cel: an expression of at most 4096 bytes"),
        (
            f"artifacts:\n- file: a.yaml\n  wait: {{cel: '{'1' * 4097}'}}",
            f"{NAME}:3: wait/cel: an expression of at most",
        ),
        ("artifacts:\n- file: a.yaml\n  wait: {failed: 'true'}", f"{NAME}:3: failed: no such member"),
        ("artifacts:\n- file: a.yaml\n  wait: {cel: 'true', value: 1}", f"{NAME}:3: value: no such member"),
        ("artifacts:\n- file: a.yaml\n  wait: {jsonpath: '{.a[}'}", f"{NAME}:3: wait/jsonpath: a path such as"),
        ("artifacts:\n- file: a.yaml\n  wait: {jsonpath: '{.a}', value: []}", f"{NAME}:3: wait/value: a text"),
        (
            "artifacts:\n- file: a.yaml\n  wait: {jsonpath: '{.a}', cel: x}",
            f"{NAME}:3: wait: cel or jsonpath expected, not both",
        ),
        ("artifacts:\n- file: a.yaml\n  timeout: 0", f"{NAME}:3: timeout: a whole number from 1 to 86400 expected"),
        ("artifacts:\n- file: a.yaml\n  timeout: 86401", f"{NAME}:3: timeout"),
        ("artifacts:\n- file: a.yaml\n  substitute: 1", f"{NAME}:3: substitute: true or false expected"),
        ("artifacts: [{file: a.yaml}]\nresources: []", f"{NAME}:2: artifacts or resources expected, not both"),
        ("artifacts: [{file: a.yaml}, {file: ./a.yaml}]", f"{NAME}: Files/kubernetes/a.yaml is listed twice"),
        ("artifacts: {}", f"{NAME}:1: artifacts: a list expected"),
        ("artifacts: [a.yaml]", f"{NAME}:1: artifacts: objects with file or chart expected"),
        ("artifacts: []", f"{NAME}: at least one artifact expected"),
        ("values: {}", f"{NAME}: artifacts: a list expected"),
        ("artifacts: [{file: a.yaml}]\nvalues: []", f"{NAME}:2: values: an object expected"),
        (
            "artifacts: [{file: a.yaml}]\nforeign_namespaces: x",
            f"{NAME}:2: foreign_namespaces: a list of names expected",
        ),
        ("resources: 5", f"{NAME}:1: resources: a list or an object expected"),
        ("resources: [a.yaml]", f"{NAME}:1: resources: objects from kind to list of files expected"),
        ("resources:\n- deployment: a.yaml", f"{NAME}:2: resources/deployment: a list of files expected"),
        ("resources:\n- deployment: [q.yaml]", f"{NAME}:2: file: the package has no file q.yaml"),
        ("[]", f"{NAME}: an object with artifacts or resources expected"),
        ("", f"{NAME}: an object with artifacts or resources expected"),
        ("a: b: c", f"{NAME}:1: invalid YAML"),
        ("artifacts: [{file: a.yaml}]\nartifacts: []", f"{NAME}:2: invalid YAML: key artifacts given twice"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, expected: str) -> None:
    """MC-011, chapter 4, Bad input."""
    assert problems(text)[0].startswith(expected)


def test_all_wrong_places_are_in_one_error() -> None:
    """MC-006."""
    found = problems(
        "artifacts:\n- {file: a.yaml, priority: x}\n- {file: q.yaml}\n- {file: b.yaml, wait: x, timeout: 0}\n"
    )
    assert [each.partition(": ")[0] for each in found] == [f"{NAME}:2", f"{NAME}:3", f"{NAME}:4", f"{NAME}:4"]


def test_a_long_list_is_refused() -> None:
    assert "at most 1000 artifacts expected" in problems("artifacts: [" + "{file: a.yaml}," * 1001 + "]")[0]


def test_outputs_name_values_of_objects() -> None:
    """MC-138: what is wrong is named with its line; the object is looked for later."""
    text = "artifacts: [{file: a.yaml}]\noutputs:\n"
    (found,) = read(f"{text}  ip: {{object: {{kind: Service, name: web}}, jsonpath: 'status.ip'}}\n").outputs
    assert (found.wanted.name, found.wanted.kind, found.place) == ("ip", "Service", f"{NAME}:3")
    wrong = {
        "a": "{object: {kind: Secret, name: web}, jsonpath: x}",
        "b": "{object: {kind: Service, name: web}, jsonpath: 'x[*]'}",
        "c": "{object: {kind: Service, name: web}}",
        "d": "5",
        "token": "{object: {kind: Service, name: web}, jsonpath: x}",
    }
    with pytest.raises(Unprocessable) as refused:
        read(text + "".join(f"  {name}: {value}\n" for name, value in wrong.items()))
    for number, name in enumerate(wrong, start=3):
        assert f"{NAME}:{number}: outputs/{name}" in str(refused.value)
    for many in ("[]", "{" + ", ".join(f"o{number}: 1" for number in range(65)) + "}"):
        with pytest.raises(Unprocessable, match="at most 64 members expected"):
            read(f"artifacts: [{{file: a.yaml}}]\noutputs: {many}\n")
