"""Paths, names that a database cannot hold, and changes of a document by path."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_store.changes import change, check_apart, without
from kubevnfm_store.mongo import documents
from kubevnfm_store.names import Alphabet, read_name, read_tree
from kubevnfm_store.query import names_of, path_of
from kubevnfm_store.sqlite import text

NAMES = [
    "a",
    "",
    "%",
    "%25",
    "%[",
    "a.b",
    "$set",
    "$",
    "0",
    "10",
    "a0",
    'q"u',
    "b\\s",
    "t\tn\n",
    "~",
    "~1",
    "e/f",
    "ä",
    "a%b",
]
ALPHABETS = pytest.mark.parametrize("alphabet", [documents.ALPHABET, text.ALPHABET], ids=["mongodb", "sqlite"])


@pytest.mark.parametrize("name", NAMES)
def test_a_path_holds_any_name(name: str) -> None:
    assert names_of(path_of("before", name, "after")) == ["before", name, "after"]


@ALPHABETS
@pytest.mark.parametrize("name", NAMES)
def test_a_written_name_has_nothing_unsafe_and_reads_as_it_was(alphabet: Alphabet, name: str) -> None:
    written = alphabet.written(name)
    assert written
    assert not alphabet.unsafe.search(written.replace("%", "_"))
    assert read_name(written) == name


@ALPHABETS
def test_different_names_are_written_differently(alphabet: Alphabet) -> None:
    assert len({alphabet.written(name) for name in NAMES}) == len(NAMES)


def a_tree(dice: random.Random, depth: int) -> Any:
    roll = dice.random()
    if depth == 0 or roll < 0.3:
        return dice.choice([None, True, 1, 1.5, "", "%5b", "text"])
    if roll < 0.6:
        return [a_tree(dice, depth - 1) for _ in range(dice.randrange(4))]
    return {name: a_tree(dice, depth - 1) for name in dice.sample(NAMES, dice.randrange(5))}


@ALPHABETS
@pytest.mark.parametrize("seed", range(50))
def test_a_written_tree_reads_as_it_was(alphabet: Alphabet, seed: int) -> None:
    tree = a_tree(random.Random(seed), 4)
    assert read_tree(json.loads(json.dumps(alphabet.tree(tree)))) == tree


@pytest.mark.parametrize("seed", range(50))
def test_a_body_as_text_reads_as_it_was(seed: int) -> None:
    body = {"top": a_tree(random.Random(seed), 4)}
    assert text.loaded(text.dumped(body)) == body


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", "\ud800"])
def test_what_is_no_json_is_refused(value: object) -> None:
    for write in (text.dumped, documents.written):
        with pytest.raises(InvalidInput, match="body"):
            write({"a": value})


def test_fields_are_set_and_removed_by_path() -> None:
    body: dict[str, Any] = {"keep": 1, "gone": 2, "obj": {"in": {"x": 1, "y": 2}}}
    change(body, {"obj/in/x": 5, "new/deep": True, "e~1f": 0}, ["gone", "obj/in/y", "not/there"])
    assert body == {"keep": 1, "obj": {"in": {"x": 5}}, "new": {"deep": True}, "e/f": 0}


@pytest.mark.parametrize("stored", [1, "text", None, [{}]])
def test_a_field_inside_something_that_is_no_object_is_refused(stored: object) -> None:
    with pytest.raises(InvalidInput, match="a/b"):
        change({"a": stored}, {"a/b": 1}, [])


@pytest.mark.parametrize("paths", [["a", "a"], ["a/b/c", "a/b"], ["x", "a/b", "a"]])
def test_paths_inside_one_another_are_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidInput, match="changed twice"):
        check_apart(paths)


def test_paths_beside_one_another_are_accepted() -> None:
    check_apart(["a/b", "a/c", "ab", "a~1b", "b"])


def test_an_excluded_attribute_is_left_out_of_every_element() -> None:
    body: dict[str, Any] = {"list": [{"x": 1, "y": 2}, "text", {"y": 3}], "obj": {"x": 4}, "x": 5}
    for path in ("list/x", "obj/x", "none/x"):
        without(body, path)
    assert body == {"list": [{"y": 2}, "text", {"y": 3}], "obj": {}, "x": 5}
