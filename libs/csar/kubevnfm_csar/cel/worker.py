"""The program of the process that compiles and evaluates expressions; `process` starts it.

Questions and answers are JSON. Its limits kill it, whatever the expression does: the library limits iterations (10,000)
and depth (32), but neither what a comparison costs nor how long a text becomes.
"""

from __future__ import annotations

import json
import signal
from typing import Any, Final

from cel_expr_python import cel
from kubevnfm_kit.child_main import close_output, serve

_LONGEST_S: Final = 0.1
"""The limit of processor time, so that a machine under load stops no expression."""
_MOST_PROGRAMS: Final = 100
_LONGEST_ERROR: Final = 4096
"""Characters. It repeats the expression, or a name of the object."""


class Programs:
    """The compiled expressions."""

    def __init__(self) -> None:
        self._environment = cel.NewEnv(variables={"object": cel.Type.DYN})
        self._compiled: dict[str, Any] = {}

    def problem_of(self, expression: str) -> str:
        """Return why an expression cannot be used; "" if it can."""
        try:
            result = self._program(expression).return_type()
        except RuntimeError as error:
            return str(error)[:_LONGEST_ERROR]
        is_right = result in (cel.Type.BOOL, cel.Type.DYN)
        return "" if is_right else f"an expression that returns a boolean expected, not {result.name()}"

    def evaluated(self, expression: str, body: object) -> tuple[bool, str]:
        """Return whether an expression holds for an object, and the error if that cannot be said."""
        try:
            value = self._program(expression).eval(data={"object": body})
        except RuntimeError as error:
            return False, str(error)[:_LONGEST_ERROR]
        if value.type() == cel.Type.BOOL:
            return bool(value.value()), ""
        if value.type() == cel.Type.ERROR:
            return False, str(value.plain_value())[:_LONGEST_ERROR]
        return False, f"a boolean expected, not {value.type().name()}"

    def _program(self, expression: str) -> Any:
        if expression not in self._compiled:
            if len(self._compiled) == _MOST_PROGRAMS:
                self._compiled.clear()
            self._compiled[expression] = self._environment.compile(expression)
        return self._compiled[expression]


def main() -> None:
    """Serve questions until the parent closes the socket."""
    programs = Programs()

    def answer(question: bytes) -> bytes:
        asked = json.loads(question)
        expression = asked["expression"]
        # The default action of its signal ends the process, also while the library runs.
        signal.setitimer(signal.ITIMER_PROF, _LONGEST_S)
        found: object = (
            programs.evaluated(expression, asked["object"]) if "object" in asked else programs.problem_of(expression)
        )
        signal.setitimer(signal.ITIMER_PROF, 0)
        return json.dumps(found).encode()

    close_output()
    serve(answer)


if __name__ == "__main__":
    main()
