"""Judges what code of a package has answered: it may write anything to the descriptor of the answer.

Bounded are the bytes (while they are read), the depth, the number of values, each text, each name and each number. The form is
a model of the caller's. Every deviation is an AnswerRefused; none is another exception.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, TypeVar

from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.foreign_json import read_foreign
from pydantic import BaseModel, ConfigDict, ValidationError

ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Largest accepted answer. Heat accepts templates of up to 512 KiB (max_template_size)."""
MOST_VALUES: Final = 200_000
LONGEST_NAME: Final = 1024
"""Characters of a name in an object."""
LONGEST_TEXT: Final = 4 * 1024 * 1024
"""Characters of a text, unless the reader says otherwise: a template of Heat, whose own limit an operator may raise."""
_LARGEST: Final = 2**63
"""Databases store whole numbers of 64 bits."""
_SHOWN_NAME: Final = 64
_EXPECTED: Final = {
    "model_type": "a dict expected",
    "dict_type": "a dict expected",
    "list_type": "a list expected",
    "string_type": "a text expected",
    "int_type": "a whole number expected",
    "bool_type": "a Boolean expected",
    "extra_forbidden": "no such attribute is known",
    "missing": "missing",
}
"""Texts for the authors of packages, by pydantic's type of error."""


class AnswerRefused(VnfmError, code="script-answer-refused", title="Answer of the package's code refused"):
    """The answer of a package's code cannot be read, or has another form than expected."""

    def __init__(self, reason: str, *, remains: BaseModel | None = None) -> None:
        """``remains``: what was accepted of the answer all the same."""
        super().__init__(reason)
        self.remains = remains


class Answer(BaseModel):
    """The base of the models of answers: no further attributes, and no conversion of values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FailedAnswer(Answer):
    """Code of the package has raised; runner.py has written that, or the code itself."""

    error: str
    """Text of the package's code, at most ANSWER_BYTES."""


A = TypeVar("A", bound=BaseModel)


def read_answer(raw: bytes, form: type[A], *, longest: int = LONGEST_TEXT) -> A | FailedAnswer:
    """Return the answer. Raises AnswerRefused with the attribute that is malformed. ``longest``: characters of each text."""
    value = read_plain(raw, longest=longest)
    if isinstance(value, dict) and "error" in value:
        return judged(value, FailedAnswer)
    return judged(value, form)


def judged(value: object, form: type[A]) -> A:
    """Return the value in its form. Raises AnswerRefused."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        reason = _EXPECTED.get(first["type"], first["msg"])
        raise AnswerRefused(f"{place_of(first['loc']) or 'the answer'}: {reason}") from None


def read_plain(raw: bytes, *, longest: int = LONGEST_TEXT) -> Any:
    """Return the value of a JSON text that can be stored and sent. Raises AnswerRefused."""
    if not raw:
        raise AnswerRefused("the answer is empty")
    if len(raw) > ANSWER_BYTES:
        raise AnswerRefused(f"the answer has more than {ANSWER_BYTES} bytes")
    try:
        value = read_foreign(raw)
        # Again, for the names: a JSON text that has one twice says something else to another reader.
        json.loads(raw, object_pairs_hook=_check_names)
    except AnswerRefused:
        raise
    except ValueError as error:
        # JSONDecodeError has a constant text and a position, and read_foreign the limit.
        reason = f"{error.msg} at byte {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise AnswerRefused(f"the answer is not JSON that can be read: {reason[:200]}") from None
    _check_values(value, longest)
    return value


def place_of(path: tuple[int | str, ...]) -> str:
    """Return a path of an answer as errors name it. Its names are foreign: what could be read as a sentence becomes ``?``."""
    return "/".join(re.sub(r"[^A-Za-z0-9_.:@-]", "?", str(part))[:_SHOWN_NAME] for part in path[:8])


def _check_names(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise AnswerRefused(f"{place_of((name,))}: an object of the answer has this name twice")
        if len(name) > LONGEST_NAME or "\0" in name:
            raise AnswerRefused(
                f"{place_of((name,))}: a name of at most {LONGEST_NAME} characters without NUL expected"
            )
        seen.add(name)


def _check_values(value: object, longest: int) -> None:
    """Raise AnswerRefused for what can be read, but not stored."""
    waiting, seen = [value], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen + len(waiting) > MOST_VALUES:
            raise AnswerRefused(f"the answer has more than {MOST_VALUES} values")
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, str):
            if len(node) > longest:
                raise AnswerRefused(f"the answer has a text of more than {longest} characters")
            if "\0" in node:
                raise AnswerRefused("the answer has a text with a NUL character")
        elif isinstance(node, float):
            if not math.isfinite(node):
                raise AnswerRefused("the answer has a number that is too large")
        elif isinstance(node, int) and not -_LARGEST <= node < _LARGEST:
            raise AnswerRefused("the answer has a whole number of more than 64 bits")
