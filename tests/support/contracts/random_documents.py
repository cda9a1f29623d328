"""Random documents, and random filters over them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, Exists, Filter, HasKey, Json, Op, path_of

NAMES: Final = ["a", "b", "c.d", "0", "$x", "e/f", "~1", ""]
SCALARS: Final[list[Json]] = [None, True, False, 0, 1, 1.5, -3, "", "a", "ab", "B", "1", "ä%_", "true"]


def a_value(dice: random.Random, depth: int) -> object:
    roll = dice.random()
    if depth == 0 or roll < 0.4:
        return dice.choice(SCALARS)
    if roll < 0.7:
        return [a_value(dice, depth - 1) for _ in range(dice.randrange(4))]
    return an_object(dice, depth - 1)


def an_object(dice: random.Random, depth: int) -> dict[str, object]:
    return {name: a_value(dice, depth) for name in dice.sample(NAMES, dice.randrange(len(NAMES)))}


def a_path(dice: random.Random) -> str:
    return path_of(*(dice.choice(NAMES) for _ in range(dice.choice([1, 1, 2, 2, 3]))))


def a_filter(dice: random.Random, depth: int) -> Filter:
    some = range(dice.randrange(1, 4))
    kinds: list[Callable[[], Filter]] = [
        lambda: Compare(a_path(dice), dice.choice(list(Op)), [dice.choice(SCALARS) for _ in some]),
        lambda: Exists(a_path(dice), exists=dice.random() < 0.5),
        lambda: HasKey(a_path(dice), dice.sample(NAMES, len(some)), present=dice.random() < 0.5),
    ]
    if depth:
        kinds += [
            lambda: Element(a_path(dice), a_filter(dice, depth - 1)),
            lambda: AllOf([a_filter(dice, depth - 1) for _ in some]),
            lambda: AnyOf([a_filter(dice, depth - 1) for _ in some]),
        ]
    return dice.choice(kinds)()
