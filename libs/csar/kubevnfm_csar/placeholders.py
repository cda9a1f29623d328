"""Placeholders in manifests, as clusterctl fills them in: ``${VAR}`` and forms with a default (capi.md CR-042).

Source: the documentation of ``clusterctl generate yaml`` and of the envsubst syntax that it refers to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from kubevnfm_kit.errors import InvalidInput

VARIABLES: Final = "additionalParams/capi/variables"
"""The field of the request that gives the values."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENING: Final = re.compile(r"\$\$|\$\{")
_WITH_DEFAULT: Final = (":=", ":-", "=")
_DEEPEST: Final = 10
"""Placeholders in defaults of placeholders."""
_MOST_PROBLEMS: Final = 20
"""The reading of a text ends with so many: each costs time, and the error names them all."""
_FORMS: Final = "${VAR}, ${VAR:=default}, ${VAR:-default} and ${VAR=default} are filled in, $${ stands for ${"


def fill_in(files: Sequence[tuple[str, str]], values: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    """Return the (name, text) pairs with their placeholders replaced, everywhere in the texts.

    A default takes the place of a value that is missing or empty, and may have placeholders itself.
    Raises InvalidInput naming all variables that have neither value nor default, and the forms that are not understood,
    with their files; never a value.
    """
    filled: list[tuple[str, str]] = []
    problems: list[str] = []
    for name, text in files:
        filling = _Filling(text, values)
        filled.append((name, filling.result()))
        problems += [f"{name}: {problem}" for problem in filling.problems]
    if problems:
        raise InvalidInput(VARIABLES, "; ".join(problems))
    return filled


class _Filling:
    """One text: its reader's position, and what was wrong."""

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        self._text, self._values = text, values
        self._at = self._depth = 0
        self._problems: dict[str, None] = {}

    @property
    def problems(self) -> Sequence[str]:
        """Each one once."""
        return list(self._problems)

    def result(self) -> str:
        """Return the text with its placeholders replaced."""
        return self._until_end(is_default=False)

    def _until_end(self, *, is_default: bool) -> str:
        """Return what follows, filled in: up to the brace that ends a default, or else up to the end of the text."""
        parts: list[str] = []
        while self._at < len(self._text):
            if is_default and self._text[self._at] == "}":
                return "".join(parts)
            opening = _OPENING.match(self._text, self._at)
            if opening is None:
                parts.append(self._plain(is_default))
            elif opening.group() == "$$":
                parts.append(self._escaped())
            else:
                parts.append(self._placeholder())
        return "".join(parts)

    def _plain(self, is_default: bool) -> str:
        begin = self._at
        stops = [self._text.find(each, begin + 1) for each in ("$}" if is_default else "$")]
        self._at = min((at for at in stops if at >= 0), default=len(self._text))
        return self._text[begin : self._at]

    def _escaped(self) -> str:
        # Only before a brace: a shell's own $$ is no placeholder.
        is_escape = self._text.startswith("{", self._at + 2)
        self._at += 3 if is_escape else 1
        return "${" if is_escape else "$"

    def _placeholder(self) -> str:
        begin = self._at
        self._at += 2
        found = NAME.match(self._text, self._at)
        if found is None or self._depth >= _DEEPEST:
            return self._refused(begin)
        name, self._at = found.group(), found.end()
        form = next((each for each in _WITH_DEFAULT if self._text.startswith(each, self._at)), "")
        self._at += len(form)
        self._depth += 1
        default = self._until_end(is_default=True) if form else None
        self._depth -= 1
        if not self._text.startswith("}", self._at):
            return self._refused(begin)
        self._at += 1
        value = self._values.get(name)
        if default is not None:
            return value or default
        if value is None:
            self._note(f"no value for {name}, which has no default")
        return value or ""

    def _refused(self, begin: int) -> str:
        line = self._text.count("\n", 0, begin) + 1
        shown = self._text[begin : begin + 40].partition("\n")[0]
        # The rest of it is plain text.
        self._at = max(self._at, begin + 2)
        self._note(f"line {line}: {shown} is not understood; {_FORMS}")
        return ""

    def _note(self, problem: str) -> None:
        self._problems[problem] = None
        if len(self._problems) >= _MOST_PROBLEMS:
            self._at = len(self._text)
