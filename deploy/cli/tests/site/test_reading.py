"""Site files: what they say, and how what is wrong in them is shown."""

from __future__ import annotations

import io
import json
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubevnfm_cli.site.difference import differences
from kubevnfm_cli.site.model import Key, Site, SiteRefused
from kubevnfm_cli.site.order import in_order, reversed_needs
from kubevnfm_cli.site.reading import read_site
from kubevnfm_cli.site.schema import problems, site_schema
from kubevnfm_cli.site.secrets import SecretText, digest, revealed, shown
from kubevnfm_cli.yaml_reader import DEEPEST, MOST_NODES, YamlRefused, read_yaml

WHOLE = """
site: plant
vims:
  cloud:
    type: openstack
    auth_url: http://keystone/v3
    auth_cred: {username: ada, password: {valueFrom: {env: CLOUD_PASSWORD}}, user_domain_name: Default}
packages:
  cluster: {file: cluster.zip}
---
site: plant
instances:
  k8s: {package: cluster, vim: cloud, flavourId: simple, scale: {worker: 2}}
  app: {package: cluster, vimOf: k8s, flavourId: simple}
subscriptions:
  alarms: {callbackUri: "http://receiver/", instances: [k8s]}
"""


def site_of(folder: Path, text: str, **environment: str) -> Site:
    (folder / "site.yaml").write_text(text)
    return read_site([str(folder / "site.yaml")], environment)


def lines_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(SiteRefused) as refusal:
        site_of(folder, text, CLOUD_PASSWORD="x")
    return [line.removeprefix(f"{folder}/") for line in refusal.value.lines]


def test_several_documents_are_one_site_in_the_order_of_its_references(tmp_path: Path) -> None:
    site = site_of(tmp_path, WHOLE, CLOUD_PASSWORD="s3cret")
    assert [str(key) for key in site.entries] == [
        "vim/cloud",
        "package/cluster",
        "vnf/k8s",
        "vnf/app",
        "subscription/alarms",
    ]
    needs = site.needs()
    assert needs[Key("instances", "app")] == {Key("packages", "cluster"), Key("instances", "k8s")}
    assert needs[Key("subscriptions", "alarms")] == set(), "names of instances are compared when something happens"
    assert reversed_needs(needs)[Key("instances", "k8s")] == {Key("instances", "app")}


def test_a_folder_and_standard_input_are_read(tmp_path: Path) -> None:
    for index, document in enumerate(WHOLE.split("---")):
        (tmp_path / f"{index}.yaml").write_text(document)
    (tmp_path / "notes.txt").write_text("no part of it")
    environment = {"CLOUD_PASSWORD": "x"}
    assert set(read_site([str(tmp_path)], environment).entries) == set(
        read_site(["-"], environment, stdin=io.BytesIO(WHOLE.encode())).entries
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("site: plant\nvims:\n  cloud: {typ: openstack, auth_url: u, auth_cred: {}}",
         ["site.yaml:3:3: type is missing", "site.yaml:3:11: typ is not known here; did you mean type?"]),
        ("site: plant\nvim: {}", ["site.yaml:2:1: vim is not known here; did you mean vims?"]),
        ("site: Plant_1", ["site.yaml:1:1: 1 to 40 lower-case letters, digits and hyphens expected"]),
        ("vims: {}", ["site.yaml:1:1: site is missing"]),
        ("site: plant\nsite: plant", ["site.yaml:2:1: site is given twice"]),
        ("site: plant\npackages:\n  a: {file: 7}", ["site.yaml:3:7: a text expected, found 7"]),
        ("site: plant\npackages:\n  a: {file: a.zip}\ninstances:\n  i: {package: b, flavourId: f}",
         ["site.yaml:5:7: b is not one of the packages of the site; there are a"]),
        ("site: plant\npackages:\n  cluster: {file: a.zip}\ninstances:\n  i: {package: clustr, flavourId: f}",
         ["site.yaml:5:7: clustr is not one of the packages of the site; did you mean cluster?"]),
        ("site: plant\npackages: {p: {file: f}}\ninstances:\n  a: {package: p, flavourId: f, vimOf: b}\n  b: {package: p, flavourId: f, vimOf: a}",
         ["site.yaml:4:3: vnf/a needs vnf/b needs vnf/a: nothing of this can be the first"]),
        ("site: plant\npackages: {p: {file: f}}\nvims: {}\ninstances:\n  a: {package: p, flavourId: f, vim: x, vimOf: a}",
         ["site.yaml:5:41: only one of vim, vimOf expected"]),
        ("site: plant\nvims:\n  c:\n    type: openstack\n    auth_url: u\n    auth_cred:\n      password:\n        valueFrom: {evn: X}",
         ["site.yaml:8:21: evn is not known here; did you mean env?"]),
        ("site: plant\nvims:\n  c: {type: openstack, auth_url: u, auth_cred: {password: {valueFrom: {env: NONE}}}}",
         ["site.yaml:3:49: the environment has no variable NONE"]),
        ("site: a\n---\nsite: b", ["site.yaml:3:1: site b, but {folder}/site.yaml:1:1 has a"]),
        ("site: a\npackages: {p: {file: f}}\n---\nsite: a\npackages: {p: {file: f}}",
         ["site.yaml:5:12: package/p is given twice, first at {folder}/site.yaml:2:12"]),
        ("site: a\npackages:\n  p: {file: f, userDefinedData: {kubevnfm_site: x}}",
         ["site.yaml:3:34: kubevnfm_site is the mark of the site: another name expected"]),
        ("site: [", ["site.yaml:2:1: did not find expected node content"]),
        ("site: a\nlinks:\n  l: {region: far, type: nad, spec: {}}",
         ["site.yaml:3:7: a region of the site, or an id <owner>/<region> expected"]),
        ("site: a\npackages:\n  p: {file: f, userDefinedData: {valueFrom: {env: X}}}",
         ["site.yaml:3:34: a map of attributes, each of which may have a value from outside, expected"]),
        ('site: "a\\n"\npackages:\n  "p\\n": {file: f}',
         ["site.yaml:1:1: 1 to 40 lower-case letters, digits and hyphens expected",
          "site.yaml:3:3: 1 to 63 letters, digits, -, _ and ., first and last a letter or digit expected"]),
    ],
)  # fmt: skip
def test_each_fault_has_file_line_and_column(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert lines_of(tmp_path, text) == [line.replace("{folder}", str(tmp_path)) for line in expected]


def test_a_value_from_outside_is_shown_by_nothing(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    text = WHOLE.replace("{env: CLOUD_PASSWORD}", "{file: token}")
    site = site_of(tmp_path, text)
    body = site.entries[Key("vims", "cloud")].body
    assert revealed(body)["auth_cred"]["password"] == "s3cret"
    assert "s3cret" not in f"{site!r} {body!r} {body['auth_cred']['password']}"
    assert shown(body["auth_cred"]["password"], ("x",)) == "***"
    changed = differences({"a": body["auth_cred"]["password"], "b": 1}, {"a": "***", "b": 2})
    assert [str(each) for each in changed] == ["b: 2 -> 1"]


def test_a_removal_needs_no_values_from_outside(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(WHOLE)
    assert read_site([str(tmp_path)], {}, needs_values=False).name == "plant"


def test_a_digest_knows_where_a_secret_comes_from_and_not_what_it_is() -> None:
    def hashed(text: str, origin: str = "env A", pin: str = "1") -> str:
        return digest({"replicas": 2, "x": SecretText(origin, text), "admin_password": pin})

    assert hashed("one") == hashed("two", pin="2")
    assert hashed("one") != hashed("one", "env B")
    assert digest({"replicas": 2}) != digest({"replicas": 3})


@pytest.mark.parametrize(
    "text",
    [
        "site: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        "a: &a [1,1,1,1,1,1,1,1]\n" + "".join(f"{n}: &{n} [{','.join([f'*{m}'] * 9)}]\n" for m, n in zip("abcdefg", "bcdefgh", strict=True)),
        "a: &a [*a]",
        "[" * 100_000,
        "a: !!python/object:os.system x",
        "a: !!binary aGk=",
        "? [a]\n: b",
        "a: " + "9" * 5000,
        "a: \x07",
        "- 1\n" * (MOST_NODES + 1),
    ],
    ids=["deep", "laughs", "itself", "brackets", "object", "binary", "key", "number", "bell", "many"],
)  # fmt: skip
def test_hostile_yaml_is_refused_within_its_limits(text: str) -> None:
    with pytest.raises(YamlRefused):
        read_yaml(text)


def test_scalars_are_those_of_yaml_1_2() -> None:
    (document,) = read_yaml(
        "{a: no, b: 12:30, c: 0o17, d: 1e3, e: ~, f: True, g: '1', h: !!str 2, i: 010, j: 2024-01-01}"
    )
    assert document.value == {
        "a": "no", "b": "12:30", "c": 15, "d": 1000.0, "e": None, "f": True, "g": "1", "h": "2", "i": 10, "j": "2024-01-01",
    }  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="ab:-[]{}&*<!?|>'\"# \n0", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        documents = read_yaml(text)
    except YamlRefused:
        return
    json.dumps([each.value for each in documents])


_NAMES = st.sampled_from(
    [
        "site",
        "vims",
        "cloud",
        "type",
        "auth_url",
        "auth_cred",
        "extra",
        "valueFrom",
        "env",
        "packages",
        "file",
        "version",
    ]
)
_TREES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["openstack", "plant", "plant\n", "", "X"])),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_NAMES, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TREES)
def test_the_verdict_is_that_of_the_published_schema(tree: Any) -> None:
    schema = site_schema()
    assert (not list(problems(tree, schema, schema))) == jsonschema_rs.is_valid(dict(schema), tree)


def test_work_is_done_in_order_bounded_and_without_what_failed() -> None:
    keys = [Key("instances", name) for name in "abcdef"]
    a, b, c, d, e, f = keys
    needs = {
        a: frozenset[Key](),
        b: frozenset({a}),
        c: frozenset({a}),
        d: frozenset({b, c}),
        e: frozenset(),
        f: frozenset({e}),
    }
    lock, order, running, most = threading.Lock(), list[Key](), set[Key](), 0
    skipped: list[tuple[Key, Key]] = []

    def work(key: Key) -> bool:
        nonlocal most
        with lock:
            running.add(key)
            most = max(most, len(running))
            assert needs[key] <= set(order)
        with lock:
            running.discard(key)
            order.append(key)
        return key is not b

    in_order(needs, work, lambda key, cause: skipped.append((key, cause)), stop=threading.Event(), at_once=2)
    assert set(order) == {a, b, c, e, f}
    assert skipped == [(d, b)]
    assert most <= 2


def test_an_interrupt_begins_nothing_more() -> None:
    needs = {Key("vims", str(number)): frozenset[Key]() for number in range(50)}
    stop, begun = threading.Event(), list[Key]()

    def work(key: Key) -> bool:
        begun.append(key)
        stop.set()
        return True

    in_order(needs, work, lambda *_: None, stop=stop, at_once=1)
    assert len(begun) == 1


def test_an_interrupt_ends_what_waits() -> None:
    failing, waiting, last = (Key("vims", name) for name in ("failing", "waiting", "last"))
    needs = {failing: frozenset[Key](), waiting: frozenset[Key](), last: frozenset({failing})}
    stop, was_stopped = threading.Event(), list[bool]()

    def work(key: Key) -> bool:
        if key == waiting:
            was_stopped.append(stop.wait(60))
        return key != failing

    def interrupted(*_: Key) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_order(needs, work, interrupted, stop=stop)
    assert was_stopped == [True]


def test_what_others_have_set_is_no_difference() -> None:
    wanted: dict[str, Any] = {"a": 1, "list": [{"x": 1}], "none": {}, "password": "p"}
    found: Sequence[Any] = [{"a": 1, "other": 2, "list": [{"x": 1, "y": 2}]}, {"a": True, "list": []}]
    assert list(differences(wanted, found[0])) == []
    assert [each.path for each in differences(wanted, found[1])] == [("a",), ("list",)]


def test_the_example_of_the_documentation_is_a_site(tmp_path: Path) -> None:
    page = (Path(__file__).parents[4] / "docs/site-files.md").read_text()
    example = page[page.index("    site: plant\n") : page.index("\n`deploy/samples/site/lab.yaml`")]
    site = site_of(tmp_path, textwrap.dedent(example), CLOUD_PASSWORD="x")
    assert [str(key) for key in site.entries] == ["vim/cloud", "package/machine", "vnf/web"]
