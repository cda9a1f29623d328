"""Reads the member ``wait`` of an order artifact (multicloud.md MC-011)."""

from __future__ import annotations

from typing import Any, Final

from kubevnfm_csar.cel.process import CelProcess
from kubevnfm_csar.json_path import as_text, parse_path
from kubevnfm_csar.order_members import OrderMembers
from kubevnfm_csar.waits import LONGEST_EXPRESSION, WORDS, Wait, WantedResult, WantedValue

MOST_EXPRESSIONS: Final = 100
"""Different ones of an order. Each is compiled when the order is read."""


class WaitReader:
    """The waits of one order artifact."""

    def __init__(self, members: OrderMembers) -> None:
        self._members = members
        self._expressions: dict[str, tuple[int | None, str]] = {}
        """The line and the member of each expression that is first to have it."""

    def read(self, artifact: dict[str, Any]) -> tuple[Wait, WantedValue | WantedResult | None]:
        """Return the wait of an artifact, and what it waits for."""
        given = artifact.get("wait", Wait.READY.value)
        if not isinstance(given, dict):
            return self._word(artifact, given), None
        line = self._members.line(given) or self._members.line(artifact, "wait")
        if "cel" in given:
            result = self._result(given, line)
            return Wait.EXPRESSION if result else Wait.READY, result
        value = self._value(given, line)
        return Wait.PATH if value else Wait.READY, value

    def check_expressions(self) -> None:
        """Compile the expressions that were read."""
        if len(self._expressions) > MOST_EXPRESSIONS:
            self._members.wrong(None, f"at most {MOST_EXPRESSIONS} different expressions expected")
            return
        with CelProcess() as process:
            for expression, (line, member) in self._expressions.items():
                problem = process.problem_of(expression)
                if problem:
                    self._members.wrong(line, f"{member}: {problem}")

    def _word(self, artifact: dict[str, Any], value: object) -> Wait:
        if not isinstance(value, str) or value not in WORDS:
            named = ", ".join(WORDS)
            line = self._members.line(artifact, "wait")
            self._members.wrong(line, f"wait: one of {named}, or an object with cel or jsonpath expected")
            return Wait.READY
        return Wait(value)

    def _value(self, given: dict[str, Any], line: int | None) -> WantedValue | None:
        self._members.check_names(given, ("jsonpath", "value"))
        path, value = given.get("jsonpath"), given.get("value")
        if not isinstance(path, str):
            self._members.wrong(line, "wait/jsonpath: a path such as {.status.phase} expected")
            return None
        if isinstance(value, dict | list):
            self._members.wrong(line, "wait/value: a text, a number, true or false expected")
            return None
        try:
            return WantedValue(tuple(parse_path(path)), path, as_text(value))
        except ValueError as error:
            self._members.wrong(line, f"wait/jsonpath: {error}")
            return None

    def _result(self, given: dict[str, Any], line: int | None) -> WantedResult | None:
        if "jsonpath" in given:
            self._members.wrong(line, "wait: cel or jsonpath expected, not both")
            return None
        self._members.check_names(given, ("cel", "failed"))
        expressions = [self._expression(given, name) for name in ("cel", "failed") if name in given]
        found = [each for each in expressions if each is not None]
        return WantedResult(*found) if len(found) == len(expressions) else None

    def _expression(self, given: dict[str, Any], name: str) -> str | None:
        value, line = given[name], self._members.line(given, name)
        if not isinstance(value, str) or len(value.encode()) > LONGEST_EXPRESSION:
            self._members.wrong(line, f"wait/{name}: an expression of at most {LONGEST_EXPRESSION} bytes expected")
            return None
        self._expressions.setdefault(value, (line, f"wait/{name}"))
        return value
