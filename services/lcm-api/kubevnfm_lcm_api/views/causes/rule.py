"""A row of the table of causes: the reports that it knows, and the words of an engineer for them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Task = Literal["retry", "rollback", "fail"]
NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._:/@-]{0,198}[A-Za-z0-9])?"
"""The name of an object, an image, a host: bounded, and without a space."""
OBJECT: Final = r"[a-z0-9][a-z0-9.-]{0,252}"
"""The name of a Kubernetes object."""
ON_NODES: Final = r"0/(?P<nodes>\d{1,6}) nodes are available:.{0,600}?"
"""How the scheduler begins."""
BEGIN: Final = r"(?<![\w./:@-])"
"""Before a `NAME` with which a pattern begins: one try for each word, so that a search takes linear time."""


@dataclass(frozen=True)
class Rule:
    """One cause: a report fits if its code is one of ``codes`` (none: any) and ``text``, if there is one, is found in its text."""

    slug: str
    """Stable: clients and the page of errors name it."""
    says: str
    """The sentence; names in braces are the groups of ``text`` and ``then``, and the facts of the report (`finding.facts_of`)."""
    do: str
    """The work of a person before the operation can go on: one or two sentences without a full stop at the end."""
    codes: frozenset[str] = frozenset()
    text: re.Pattern[str] | None = None
    then: re.Pattern[str] | None = None
    """A pattern that is found behind ``text``, too. A pattern of its own: two gaps in one pattern take quadratic time."""
    about: str = ""
    """The kind of the object that it is about; empty: the object that the report names."""
    named: str = ""
    """The fact that has the name of that object."""
    best: Task = "retry"
    """The task that leads on most often."""
    is_shallow: bool = False
    """Whether it says that something took too long, and no reason: any other rule that fits a report is deeper."""
    words: Mapping[str, str] = field(default_factory=dict)
    """``{why}`` in ``says``: the text for the first key, a regular expression, that is found from ``text`` on."""


def rule(
    slug: str,
    says: str,
    do: str,
    *,
    code: str = "",
    text: str = "",
    then: str = "",
    about: str = "",
    named: str = "",
    best: Task = "retry",
    is_shallow: bool = False,
    words: Mapping[str, str] | None = None,
) -> Rule:
    """Return a row; ``code``: error codes by spaces."""
    return Rule(
        slug=slug,
        says=says,
        do=do,
        codes=frozenset(code.split()),
        text=re.compile(text, re.DOTALL) if text else None,
        then=re.compile(then) if then else None,
        about=about,
        named=named,
        best=best,
        is_shallow=is_shallow,
        words=words or {},
    )
