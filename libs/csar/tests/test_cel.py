"""Expressions in CEL: what they may do, and that no expression blocks or ends the process that asks (multicloud.md MC-011)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import kubevnfm_csar
import kubevnfm_kit
import psutil
import pytest
from kubevnfm_csar.cel.process import LARGEST_OBJECT, CelProcess, Evaluated

OBJECT: dict[str, Any] = {
    "spec": {"replicas": 2},
    "status": {"phase": "Up", "replicas": 2, "conditions": [{"type": "Ready", "status": "True"}], "ok": True},
}
STOPPED = Evaluated(False, "the expression takes more than 100 ms")


@pytest.fixture(scope="module")
def cel() -> Iterator[CelProcess]:
    with CelProcess() as started:
        yield started


@pytest.mark.parametrize(
    ("expression", "holds"),
    [
        ("object.status.phase == 'Up'", True),
        ("object.status.replicas < object.spec.replicas", False),
        ("object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", True),
        ("has(object.status.phase) && object.status.phase.startsWith('U')", True),
        ("!has(object.status.parts) || size(object.status.parts) == 0", True),
        ("object.status.ok", True),
    ],
)
def test_an_expression_sees_the_object(cel: CelProcess, expression: str, holds: bool) -> None:
    assert cel.problem_of(expression) == ""
    assert cel.evaluate(expression, OBJECT) == Evaluated(holds)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("object.status.address == 'x'", 'Key not found in map : "address"'),
        ("object.status.phase", "a boolean expected, not STRING"),
        ("object.status.phase > 1", "No matching overloads found"),
        ("object.status.replicas / 0 > 1", "divide by zero"),
    ],
)
def test_an_expression_without_a_result_says_why(cel: CelProcess, expression: str, error: str) -> None:
    found = cel.evaluate(expression, OBJECT)
    assert not found.holds
    assert error in found.error
    assert "\n" not in found.error


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("object.status.phase ==", "1:23: Syntax error: "),
        ("true &&\n  objekt.status", "2:9: undeclared reference to 'objekt.status'"),
        ("'Up'", "an expression that returns a boolean expected, not STRING"),
        ("size(object.status.parts)", "an expression that returns a boolean expected, not INT"),
        ("object.status.phase.shout() == 'UP'", "1:26: undeclared reference to 'shout'"),
        ("(" * 2000 + "true" + ")" * 2000, "Expression recursion limit exceeded"),
        ("", "1:1: Syntax error: "),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_with_its_place(
    cel: CelProcess, expression: str, problem: str
) -> None:
    assert cel.problem_of(expression).startswith(problem)


@pytest.mark.parametrize(
    "expression",
    [
        # Each is within the library's limits of iterations and depth.
        "object.l.all(a, object.l == object.l)",
        "object.l.all(a, object.text.matches('(x+x+)+y') || true)",
    ],
)
def test_an_expression_is_stopped_after_100_ms_of_processor_time(cel: CelProcess, expression: str) -> None:
    body = {"l": [{"a": "x" * 40, "n": each} for each in range(9000)], "text": "x" * 500_000}
    assert cel.problem_of(expression) == ""
    assert cel.evaluate(expression, body) == STOPPED
    assert cel.evaluate("object.status.ok", OBJECT) == Evaluated(True)


def test_an_expression_cannot_take_the_memory_of_the_machine(cel: CelProcess) -> None:
    grown = "object.text"
    for _ in range(3):
        grown = f"[{grown}].map(a, {'+'.join('aaaaaaaaaaaa')})[0]"
    found = cel.evaluate(f"size({grown}) > 0", {"text": "x" * 1_000_000})
    assert found in (STOPPED, Evaluated(False, "the expression takes too much memory"))
    assert cel.evaluate("object.status.ok", OBJECT) == Evaluated(True)


def test_nested_iterations_are_limited(cel: CelProcess) -> None:
    nested = "object.l.all(a, object.l.all(b, object.l.all(c, a + b + c >= 0)))"
    assert cel.evaluate(nested, {"l": list(range(300))}).error == "Iteration budget exceeded"


def test_an_object_that_no_api_server_takes_is_not_evaluated(cel: CelProcess) -> None:
    found = cel.evaluate("true", {"text": "x" * LARGEST_OBJECT})
    assert found.error == f"the expression is not evaluated for an object of more than {LARGEST_OBJECT} bytes"


def test_a_service_of_an_image_finds_the_library(cel: CelProcess) -> None:
    """Its packages are in a folder that PYTHONPATH names, and not in the interpreter's own."""
    program = (
        "from kubevnfm_csar.cel.process import CelProcess\n"
        "with CelProcess() as cel: print(repr(cel.problem_of('object.ok')))"
    )
    members = [str(each.parent) for each in map(Path, [*kubevnfm_csar.__path__, *kubevnfm_kit.__path__])]
    done = subprocess.run(
        [Path(sys.executable).resolve(), "-c", program],
        env={"PYTHONPATH": os.pathsep.join([*members, *sys.path])},
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "''\n"


def workers() -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for each in psutil.Process().children():
        # A child of an earlier test may have ended and not be waited for yet.
        with suppress(psutil.NoSuchProcess):
            found += [each] * ("kubevnfm_csar.cel.worker" in each.cmdline())
    return found


def test_a_process_that_was_ended_from_outside_costs_no_result(cel: CelProcess) -> None:
    """A result is asked for once a version of the object: one that another process's end took away never came."""
    assert cel.evaluate("object.status.ok", OBJECT) == Evaluated(True)
    (worker,) = workers()
    assert not {"HOME", "LANG"} & worker.environ().keys()
    # Without memory, the kernel ends it and not the service.
    assert Path(f"/proc/{worker.pid}/oom_score_adj").read_text(encoding="ascii") == "1000\n"
    worker.kill()
    assert cel.evaluate("object.status.ok", OBJECT) == Evaluated(True)
    assert not worker.is_running()
