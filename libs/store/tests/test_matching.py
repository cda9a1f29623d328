"""The meaning of filters: rules that hold for every document, tried on random ones.

tests/contract/store holds the adapters to this meaning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from contracts.random_documents import SCALARS, a_filter, a_path, an_object
from kubevnfm_store.matching import fits, kind_of
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Op, by


def for_many_seeds(check: Callable[[int], None]) -> Callable[[], None]:
    """Return a test that runs the check on many random examples."""

    def test() -> None:
        for seed in range(200):
            check(seed)

    return test


@for_many_seeds
def test_all_and_any_are_and_and_or(seed: int) -> None:
    dice = random.Random(seed)
    body, filters = an_object(dice, 3), [a_filter(dice, 1) for _ in range(dice.randrange(4))]
    assert fits(AllOf(filters), body) == all(fits(one, body) for one in filters)
    assert fits(AnyOf(filters), body) == any(fits(one, body) for one in filters)


@for_many_seeds
def test_a_value_equals_or_differs_or_has_no_such_type(seed: int) -> None:
    dice = random.Random(seed)
    stored, value = dice.choice(SCALARS), dice.choice(SCALARS)
    is_equal, differs = (fits(Compare("x", op, [value]), {"x": stored}) for op in (Op.EQ, Op.NEQ))
    assert is_equal + differs == (kind_of(stored) == kind_of(value))


@for_many_seeds
def test_order_is_total_within_a_type_and_empty_between_types(seed: int) -> None:
    dice = random.Random(seed)
    stored, value = dice.choice(SCALARS), dice.choice(SCALARS)
    less, equal, more, at_most, at_least = (
        fits(Compare("x", op, [value]), {"x": stored}) for op in (Op.LT, Op.EQ, Op.GT, Op.LTE, Op.GTE)
    )
    if kind_of(stored) == kind_of(value) and kind_of(value) in {"text", "number"}:
        assert less + equal + more == 1
        assert (at_most, at_least) == (less or equal, more or equal)
    else:
        assert not any((less, more, at_most, at_least))


@for_many_seeds
def test_in_is_one_equality_and_nin_its_complement_within_the_types(seed: int) -> None:
    dice = random.Random(seed)
    stored, values = dice.choice(SCALARS), [dice.choice(SCALARS) for _ in range(3)]
    is_in, is_not_in = (fits(Compare("x", op, values), {"x": stored}) for op in (Op.IN, Op.NIN))
    assert is_in == any(fits(Compare("x", Op.EQ, [value]), {"x": stored}) for value in values)
    assert is_in + is_not_in == (kind_of(stored) in {kind_of(value) for value in values})


@for_many_seeds
def test_a_missing_attribute_matches_no_comparison(seed: int) -> None:
    dice = random.Random(seed)
    body = an_object(dice, 3)
    for op in Op:
        assert not fits(Compare("missing", op, SCALARS), body)
    assert fits(Exists("missing", exists=False), body)


@for_many_seeds
def test_an_array_fits_if_one_of_its_elements_does(seed: int) -> None:
    dice = random.Random(seed)
    values = [dice.choice(SCALARS) for _ in range(dice.randrange(4))]
    sought = Compare("x", dice.choice(list(Op)), [dice.choice(SCALARS)])
    assert fits(sought, {"x": values}) == any(fits(sought, {"x": value}) for value in values)
    on_the_way = {"list": [{"x": value} for value in values]}
    assert fits(Compare("list/x", sought.op, sought.values), on_the_way) == fits(sought, {"x": values})


@for_many_seeds
def test_exists_and_its_negation_exclude_each_other(seed: int) -> None:
    dice = random.Random(seed)
    body, path = an_object(dice, 3), a_path(dice)
    assert fits(Exists(path), body) != fits(Exists(path, exists=False), body)


CASES: Final[list[tuple[Filter, Mapping[str, object], bool]]] = [
    (by(a=1, b="x"), {"a": 1, "b": "x", "c": 0}, True),
    (by(a=1, b="x"), {"a": 1}, False),
    (by(a=1), {"a": True}, False),
    (by(a=None), {"a": None}, True),
    (by(a=None), {}, False),
    (Exists("a"), {"a": None}, False),
    (Compare("a", Op.CONT, ["ell", "x"]), {"a": "hello"}, True),
    (Compare("a", Op.NCONT, ["ell", "x"]), {"a": "hello"}, False),
    (Compare("a", Op.NCONT, ["z"]), {"a": 7}, False),
    (HasKey("map", ["k", "m"]), {"map": {"m": None}}, True),
    (HasKey("map", ["k"], present=False), {"map": {}}, True),
    (HasKey("map", ["k"], present=False), {}, False),
    (Element("l", AllOf([by(a=1), by(b=2)])), {"l": [{"a": 1}, {"b": 2}]}, False),
    (Element("l", AllOf([by(a=1), by(b=2)])), {"l": [{"a": 1, "b": 2}]}, True),
    (AllOf([Compare("l/a", Op.EQ, [1]), Compare("l/b", Op.EQ, [2])]), {"l": [{"a": 1}, {"b": 2}]}, True),
    (by(a=1), {"a": [[1]]}, False),
]


@pytest.mark.parametrize(("sought", "body", "wanted"), CASES)
def test_a_case(sought: Filter, body: Mapping[str, object], wanted: bool) -> None:
    assert fits(sought, body) is wanted
