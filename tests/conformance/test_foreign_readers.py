"""No regular expression comes from outside, and foreign JSON has one reader: the rules of docs/security.md that no linter has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[2]
_CALLS: Final = ("compile", "match", "search", "fullmatch", "sub", "subn", "split", "finditer", "findall")
_OWN_PATTERNS: Final = {
    # Functions whose pattern is an argument: their callers pass constants.
    "libs/cluster/kubevnfm_cluster/forms.py",
    "services/lcm-api/kubevnfm_lcm_api/views/causes/rule.py",
    # The words of the rules, which are constants too.
    "services/lcm-api/kubevnfm_lcm_api/views/causes/finding.py",
    # It compiles a bounded pattern, to leave it out if it means another thing elsewhere; none is run there.
    "libs/csar/kubevnfm_csar/hot_parameters.py",
    # The words of secrets, each escaped.
    "libs/secrets/kubevnfm_secrets/masking.py",
}
_OWN_JSON: Final = {
    "libs/kit/kubevnfm_kit/foreign_json.py": "the reader itself",
    "services/lcm-api/kubevnfm_lcm_api/packages/adapters/schema_child.py": "written by its parent process",
    "services/lcm-api/kubevnfm_lcm_api/packages/adapters/schema_process.py": "written by its child process, within a limit",
    "libs/csar/kubevnfm_csar/cel/process.py": "a line of its own program, which writes at most 4096 characters of any text",
    "libs/csar/kubevnfm_csar/cel/worker.py": "written by its parent process",
    "libs/sandbox/kubevnfm_sandbox/answers.py": "once more, after its reader, for a name that is given twice",
    "libs/sandbox/kubevnfm_sandbox/connector.py": "written by its parent process",
    "libs/sandbox/kubevnfm_sandbox/launcher.py": "written by its parent process",
    "libs/sandbox/kubevnfm_sandbox/runner.py": "written by its parent process",
    "libs/sandbox/kubevnfm_sandbox/process.py": "what confines reports, not foreign code",
    "libs/store/kubevnfm_store/sqlite/text.py": "a stored document",
    "libs/store/kubevnfm_store/sqlite/store.py": "a stored message",
    "libs/store/kubevnfm_store/mongo/documents.py": "a stored message, and what was just written",
    "services/lcm-api/kubevnfm_lcm_api/http/markers.py": "sealed by the key ring",
    "services/lcm-api/kubevnfm_lcm_api/notifications/event_log.py": "its own text, which it has just made or has stored",
    "services/lcm-api/kubevnfm_lcm_api/page/grants.py": "sealed by the key ring",
    "services/lcm-api/kubevnfm_lcm_api/page/openid.py": "sealed by the key ring",
    "services/lcm-api/kubevnfm_lcm_api/page/sessions.py": "sealed by the key ring",
    "services/infra-k8s/kubevnfm_infra_k8s/adapters/stored_hooks.py": "sealed by the key ring",
    "services/infra-openstack/kubevnfm_infra_openstack/domain/snapshots.py": "sealed by the key ring",
    "deploy/single/kubevnfm/demo.py": "files of this project",
    "proto-events/examples/consumer.py": "an example without the libs",
}


@cache
def sources() -> list[str]:
    folders = ("libs", "services", "proto-events", "deploy/single")
    files = (path for folder in folders for path in (PROJECT / folder).rglob("*.py"))
    names = (path.relative_to(PROJECT).as_posix() for path in files)
    return sorted(name for name in names if "/tests/" not in name and "tacker_shim" not in name)


def nodes(name: str, word: str) -> Iterator[ast.AST]:
    """Yield the nodes of a file; none if it does not have the word."""
    text = (PROJECT / name).read_text(encoding="utf-8")
    return ast.walk(ast.parse(text)) if word in text else iter(())


def calls(name: str, module: str, functions: tuple[str, ...]) -> Iterator[ast.Call]:
    for node in nodes(name, f"import {module}\n"):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"{module}.{each}" for each in functions}:
            yield node


def is_own(pattern: ast.expr) -> bool:
    """Whether a pattern is a constant, or made of constants and of texts that are escaped."""
    if isinstance(pattern, ast.Constant):
        return True
    if isinstance(pattern, ast.Name):
        return re.fullmatch("_?[A-Z][A-Z0-9_]*", pattern.id) is not None
    if isinstance(pattern, ast.JoinedStr):
        return all(is_own(part.value if isinstance(part, ast.FormattedValue) else part) for part in pattern.values)
    if isinstance(pattern, ast.BinOp):
        return is_own(pattern.left) and is_own(pattern.right)
    return isinstance(pattern, ast.Call) and ast.unparse(pattern.func) == "re.escape"


def test_no_regular_expression_comes_from_outside() -> None:
    """`pattern` of TOSCA and `allowed_pattern` of HOT are run by the process that judges values alone; those of definitions by none."""
    foreign = [
        f"{name}:{call.lineno}"
        for name in sources()
        if name not in _OWN_PATTERNS
        for call in calls(name, "re", _CALLS)
        if not is_own(call.args[0])
    ]
    assert foreign == []


def test_json_of_others_is_read_by_its_reader() -> None:
    found = {name for name in sources() if any(calls(name, "json", ("load", "loads")))}
    assert found - set(_OWN_JSON) == set()


def test_no_answer_is_read_by_its_client() -> None:
    """`json()` of aiohttp has no limits; that of requests has those of libs/keystone."""
    found = [
        f"{name}:{node.lineno}"
        for name in sources()
        for node in nodes(name, ".json()")
        if isinstance(node, ast.Await) and ast.unparse(node.value).endswith(".json()")
    ]
    assert found == []


@pytest.mark.parametrize("name", sorted([*_OWN_JSON, *_OWN_PATTERNS]))
def test_each_exception_is_still_needed(name: str) -> None:
    assert (PROJECT / name).exists()
