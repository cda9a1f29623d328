"""YAML of others: what the limits admit, what is one above, and the shapes that cost more than they look."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from kubevnfm_kit.foreign_yaml.heat import read_heat_yaml
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml, read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import (
    DEEPEST,
    LARGEST,
    LONGEST_NUMBER,
    MOST_DIRECTIVES,
    MOST_NODES,
    Budget,
    YamlRefused,
    YamlTooLarge,
)
from kubevnfm_kit.foreign_yaml.tosca import WrittenFloat, WrittenInt, read_tosca_yaml
from kubevnfm_kit.foreign_yaml.writing import write_yaml, write_yaml_documents

Reader = Callable[..., list[Any]]
READERS: list[Reader] = [read_kubernetes_yaml, read_tosca_yaml, read_heat_yaml]
both = pytest.mark.parametrize("read", READERS)

MERGE_BOMB = "\n".join(
    ["m0: &m0 {a: 1}", *(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}], k{n}: 1}}" for n in range(1, 9))]
)
ALIAS_BOMB = "\n".join(["a0: &a0 [xxxxxxxx]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))])
KEY_BOMB = "a: &a {<<: *a}"


def block(levels: int) -> str:
    return "".join(f"{' ' * level}a:\n" for level in range(levels - 1)) + f"{' ' * (levels - 1)}a: b\n"


DEEP: dict[str, Callable[[int], str]] = {
    "lists in flow": lambda levels: "[" * levels + "]" * levels,
    "maps in flow": lambda levels: "{a: " * levels + "b" + "}" * levels,
    "maps in block": block,
    "lists in block": lambda levels: "- " * levels + "a",
    "lists in block, with anchors": lambda levels: (
        "".join(f"{' ' * n}- &a{n}\n" for n in range(levels - 1)) + f"{' ' * (levels - 1)}- x"
    ),
    "keys": lambda levels: "? " * levels + "a",
    "keys in flow": lambda levels: "{? " * levels + "a" + "}" * levels,
}


@both
@pytest.mark.parametrize("shape", [name for name in DEEP if "keys" not in name])
def test_nesting_up_to_the_limit_is_read(read: Reader, shape: str) -> None:
    assert len(read(DEEP[shape](DEEPEST))) == 1


@both
@pytest.mark.parametrize("levels", [DEEPEST + 1, 30_000])
@pytest.mark.parametrize("shape", DEEP)
def test_deeper_nesting_is_refused_with_its_line(read: Reader, shape: str, levels: int) -> None:
    """30,000 levels overflow the stack of libyaml's composer. In block they are 3,000: their indents are a square."""
    if "block" in shape and levels > DEEPEST + 1:
        levels = 3_000
    with pytest.raises(YamlTooLarge, match=f"nested more than {DEEPEST} deep") as refused:
        read("# a line\n" + DEEP[shape](levels))
    assert refused.value.line is not None
    assert refused.value.line >= 2


@both
def test_nodes_up_to_the_limit_are_read(read: Reader) -> None:
    budget = Budget(nodes=10)
    # The document, the list, eight scalars.
    assert read(f"[{','.join('x' * 8)}]", budget) == [["x"] * 8]
    assert budget.nodes == 0
    with pytest.raises(YamlTooLarge, match="more than 10 nodes"):
        read(f"[{','.join('x' * 9)}]", Budget(nodes=10))


@both
def test_an_alias_counts_as_a_copy(read: Reader) -> None:
    text = "[&a [x, y], *a, *a]"
    # The document, the outer list, three lists of two.
    assert read(text.replace("y", "z"), Budget(nodes=11)) == [[["x", "z"]] * 3]
    with pytest.raises(YamlTooLarge):
        read(text, Budget(nodes=10))


@both
def test_merged_maps_count_as_copies(read: Reader) -> None:
    text = "a: &a {x: q, z: q}\nb: {<<: [*a, *a]}"
    # Document and map; a key and a map of four; a key, a map, a merge key, a list, two maps of four.
    nodes = 2 + 6 + 4 + 10
    assert read(text, Budget(nodes=nodes)) == [{"a": {"x": "q", "z": "q"}, "b": {"x": "q", "z": "q"}}]
    with pytest.raises(YamlTooLarge):
        read(text, Budget(nodes=nodes - 1))


@both
@pytest.mark.parametrize("bomb", [MERGE_BOMB, ALIAS_BOMB])
def test_bombs_of_aliases_are_refused_before_they_are_built(read: Reader, bomb: str) -> None:
    budget = Budget()
    with pytest.raises(YamlTooLarge, match=f"more than {MOST_NODES} nodes once its aliases are written out"):
        read(bomb, budget)
    assert budget.nodes == 0


@both
def test_characters_of_aliases_are_counted(read: Reader) -> None:
    text = f"a: &a {'x' * 100}\nb: [{', '.join(['*a'] * 9)}]"
    # The keys, and ten texts.
    assert read(text, Budget(characters=1002))
    with pytest.raises(YamlTooLarge, match="more than 1001 characters once its aliases are written out"):
        read(text, Budget(characters=1001))


@both
@pytest.mark.parametrize("text", ["&a [*a]", KEY_BOMB, "a: &a {b: &b [*a]}"])
def test_an_alias_that_contains_itself_is_refused(read: Reader, text: str) -> None:
    with pytest.raises(YamlRefused, match="an alias that contains itself"):
        read(text)


@both
def test_texts_that_are_read_together_share_a_budget(read: Reader) -> None:
    budget = Budget(nodes=5)
    read("[x]", budget)
    with pytest.raises(YamlTooLarge):
        read("[x]", budget)


@both
def test_documents_are_counted(read: Reader) -> None:
    assert len(read("---\n" * 5, Budget(nodes=10))) == 5
    with pytest.raises(YamlTooLarge):
        read("---\n" * 6, Budget(nodes=10))


@both
def test_the_size_is_counted_in_bytes(read: Reader) -> None:
    assert read("#" * LARGEST) == []
    for text in ("#" * (LARGEST + 1), "#" + "ä" * (LARGEST // 2)):
        with pytest.raises(YamlTooLarge, match="larger than"):
            read(text)


@both
def test_processor_time_is_bounded(read: Reader) -> None:
    with pytest.raises(YamlTooLarge, match="processor time"):
        read("[" + "x," * 20_000 + "]", Budget(cpu_s=0))


@both
def test_directives_that_libyaml_compares_with_one_another_are_bounded(read: Reader) -> None:
    directives = [f"%TAG !a{n}! x\n" for n in range(MOST_DIRECTIVES + 1)]
    assert read("".join(directives[:-1]) + "--- a") == ["a"]
    with pytest.raises(YamlTooLarge, match="%TAG"):
        read("".join(directives) + "--- a")


@both
@pytest.mark.parametrize("start", ["", "0x", "0b1", "1.", "-"])
def test_long_numbers_are_refused_before_they_are_converted(read: Reader, start: str) -> None:
    text = start + "1" * (LONGEST_NUMBER + 1)
    if read is read_tosca_yaml and start == "0b1":  # YAML 1.2 has no numbers of base 2
        assert read(f"a: {text}") == [{"a": text}]
        return
    with pytest.raises(YamlRefused, match="a number of at most"):
        read(f"a: {text}")


def test_a_long_number_of_base_60_is_refused() -> None:
    with pytest.raises(YamlRefused, match="a number of at most"):
        read_heat_yaml("a: 1" + ":1" * LONGEST_NUMBER)
    assert read_heat_yaml("a: 1:30") == [{"a": 90}]


@both
@pytest.mark.parametrize("text", ["x " * 500_000, '"' + "\\n" * 500_000 + '"', "|\n" + "  x\n" * 200_000, "x" * 10**6])
def test_long_scalars_are_texts(read: Reader, text: str) -> None:
    (found,) = read("a: " + text)
    assert isinstance(found["a"], str)


@both
def test_many_anchors_are_no_fault(read: Reader) -> None:
    (found,) = read("".join(f"- &a{n} x\n- *a{n}\n" for n in range(20_000)))
    assert len(found) == 40_000


@both
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "line 2, column 1"),
        ("a: *b", "no anchor b before this alias"),
        ("a: &x 1\n---\nb: *x", "line 3, column 4: no anchor x"),
        ("a: {<<: 1}", "a map, or a list of maps, expected with <<"),
        ("a: {<<: [1]}", "a map, or a list of maps, expected with <<"),
        ("? {a: 1}\n: x", "a text expected as a key"),
        ("a: !!python/object/apply:os.system [ls]", "a value that JSON has expected"),
        ("a: !mine x", "!mine: a value that JSON has expected"),
        ("a: !!omap []", "a value that JSON has expected"),
        ("a: !!int x", "x is not of the type !!int"),
        ("a: \0", "control characters"),
        ("a: \ud800", "surrogates"),
        ("a: !" + "x" * 10_000 + " y", "a value that JSON has expected"),
    ],
)
def test_what_is_not_plain_data_is_refused(read: Reader, text: str, says: str) -> None:
    with pytest.raises(YamlRefused, match=says) as refused:
        read(text)
    assert not isinstance(refused.value, YamlTooLarge)
    assert len(str(refused.value)) < 600


@both
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", []),
        ("---\n", [None]),
        ("a: !!str 12", [{"a": "12"}]),
        ("a: !!float 3", [{"a": 3.0}]),
        ("a: !!int 3", [{"a": 3}]),
        ("a: !!bool true", [{"a": True}]),
        ("a: !!null ''", [{"a": None}]),
        ("a: !!map {}\nb: !!seq []", [{"a": {}, "b": []}]),
        ("a: <<", [{"a": "<<"}]),
        ('"<<": 1', [{"<<": 1}]),
        ("x: &a {p: 1}\nw: &a {p: 2}\nz: *a", [{"x": {"p": 1}, "w": {"p": 2}, "z": {"p": 2}}]),
        ("&a a: *a", [{"a": "a"}]),
        ("a: &a {x: 1}\nb: &b {x: 2, w: 2}\nc: {<<: [*a, *b], z: 3}", None),
    ],
)
def test_plain_data_is_read(read: Reader, text: str, value: Any) -> None:
    found = read(text)
    if value is None:
        assert list(found[0]["c"].items()) == [("x", 1), ("w", 2), ("z", 3)]
    else:
        assert found == value


def test_the_readers_differ_in_plain_scalars_and_repeated_keys() -> None:
    text = "a: 22:30\nb: 2013-05-23\nc: 0o17\nd: no"
    assert read_heat_yaml(text) == [{"a": 1350, "b": "2013-05-23", "c": "0o17", "d": False}]
    assert read_kubernetes_yaml(text) == [{"a": "22:30", "b": "2013-05-23", "c": 15, "d": False}]
    assert read_tosca_yaml(text) == [{"a": "22:30", "b": "2013-05-23", "c": 15, "d": "no"}]
    assert read_heat_yaml("a: 1\na: 2") == [{"a": 2}]
    for read in (read_kubernetes_yaml, read_tosca_yaml, partial(read_heat_yaml, is_repeated_key_refused=True)):
        with pytest.raises(YamlRefused, match="line 3, column 1: key a given twice"):
            read("a: 1\nb: 1\na: 2")


@pytest.mark.parametrize("text", ["NO", "on", "yes", "y", "True", "FALSE", "1:30", "1_0", "0b1", "1.2.3", "2001-12-14",
                                  "1e", ".", "+", ".inf", "-.INF", ".nan", "1e400", "9" * 25, "0o8", "0xG", "+0x1",
                                  "0X1", "0O7", "nUll", "=", "<", "٣"])  # fmt: skip
def test_a_descriptor_has_texts_where_yaml_1_2_has_no_booleans_and_numbers(text: str) -> None:
    assert read_tosca_yaml(f"a: {text}") == [{"a": text}]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.10", 1.1), ("010", 10), ("+1", 1), ("-0", 0), ("0x1F", 31), ("0o17", 15), ("1e3", 1000.0), (".5", 0.5),
     ("1.", 1.0), ("12", 12), ("-7", -7), ("2.5", 2.5), ("1.0", 1.0), ("-1.50E+2", -150.0)],
)  # fmt: skip
def test_a_number_of_a_descriptor_has_its_text_as_written(text: str, value: float) -> None:
    (found,) = read_tosca_yaml(f"a: {text}\n{text}: b")
    number = found["a"]
    assert (number, isinstance(number, int), str(number), f"{number}") == (value, isinstance(value, int), text, text)
    assert found[text] == "b"
    for copied in (copy.deepcopy(number), pickle.loads(pickle.dumps(number))):
        assert (copied, str(copied)) == (value, text)
    assert json.loads(json.dumps(number)) == value
    assert isinstance(number, WrittenInt | WrittenFloat) == (str(value) != text)


def test_one_document_is_one() -> None:
    assert read_one_kubernetes_yaml("") is None
    assert read_one_kubernetes_yaml("a: 1") == {"a": 1}
    with pytest.raises(YamlRefused, match="2 documents; one expected"):
        read_one_kubernetes_yaml("a: 1\n---\nb: 1")


def test_what_is_written_is_read() -> None:
    documents = [{"b": "yes", "a": ["22:30", 1, None, True, "1e3"]}, {"x": "a\nb"}]
    assert read_kubernetes_yaml(write_yaml_documents(documents)) == documents
    assert read_one_kubernetes_yaml(write_yaml(documents[0])) == documents[0]
    assert write_yaml(documents[0]).startswith("b:")
