"""Which tests of other programs `make test` leaves out: none that use something that has changed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
from plugins.unchanged import PROJECT, RECORD, Passed, contents, digests_of, left_out


@cache
def found() -> Mapping[Path, str]:
    held = contents()
    assert held is not None
    return held


@cache
def names(*changes: str) -> frozenset[str]:
    """The files of tests that are left out after changes, if all had passed before."""
    changed = {PROJECT / change: "changed" for change in changes}
    after = left_out({**found(), **changed}, digests_of(found()))
    return frozenset(str(path.relative_to(PROJECT)) for path in after)


def test_texts_for_readers_change_no_program() -> None:
    assert names("docs/speed.md", "CHANGELOG.md", "tests/passed.json") == names()
    assert {"tests/attack/test_ssh_server.py", "tests/fuzz/test_requests.py"} <= names()
    assert {name.split("/")[0] for name in names()} == {"deploy", "libs", "tests"}


@pytest.mark.parametrize(
    "change",
    [
        "pyproject.toml",
        "deploy/samples/vm/TOSCA-Metadata/TOSCA.meta",
        "deploy/samples/cluster/Scripts/kubernetes_mgmt.py",
        "tests/fixtures/scripts/record.py",
        "libs/kit/x.json",
    ],
)
def test_a_file_whose_use_is_unknown_leaves_nothing_out(change: str) -> None:
    assert names(change) == set()


@pytest.mark.parametrize(
    ("change", "user"),
    [
        ("tests/attack/test_ssh_server.py", "tests/attack/test_ssh_server.py"),
        ("services/mgmt-executor/kubevnfm_mgmt_executor/adapters/ssh.py", "tests/attack/test_ssh_server.py"),
        ("libs/kit/kubevnfm_kit/errors.py", "tests/attack/test_ssh_server.py"),
        ("tests/support/servers/hostile.py", "tests/attack/test_ssh_server.py"),
        ("tests/conftest.py", "tests/attack/test_ssh_server.py"),
        ("tests/support/plugins/plain_logs.py", "tests/attack/test_ssh_server.py"),
        # Programs, and modules that only they import, under another name too.
        ("libs/sandbox/kubevnfm_sandbox/runner.py", "libs/sandbox/tests/test_scripts.py"),
        ("libs/sandbox/kubevnfm_sandbox/connector.py", "tests/attack/test_scripts_and_vims.py"),
        ("libs/sandbox/kubevnfm_sandbox/tacker_shim/tacker/common/exceptions.py", "libs/sandbox/tests/test_scripts.py"),
        ("deploy/lab/kubevnfm_lab/__main__.py", "deploy/lab/tests/test_lab.py"),
        ("deploy/lab/tests/openstack/conftest.py", "deploy/lab/tests/openstack/test_openstack_clients.py"),
        ("services/vim-registry/kubevnfm_vim_registry/service.py", "tests/fuzz/test_requests.py"),
    ],
)
def test_what_uses_the_change_runs(change: str, user: str) -> None:
    assert user in names() - names(change)


def test_what_uses_nothing_of_the_change_is_left_out() -> None:
    change = "services/vim-registry/kubevnfm_vim_registry/wiring.py"
    assert {"tests/attack/test_ssh_server.py", "deploy/lab/tests/test_lab.py"} <= names(change)


@pytest.mark.parametrize(
    "deleted", ["libs/kit/kubevnfm_kit/back_off.py", "tests/support/servers/hostile.py", "pyproject.toml"]
)
def test_a_file_that_is_gone_is_a_change(deleted: str) -> None:
    after = {path: digest for path, digest in found().items() if path != PROJECT / deleted}
    assert PROJECT / "tests/attack/test_ssh_server.py" not in left_out(after, digests_of(found()))


def test_only_files_whose_tests_all_ran_and_passed_are_recorded() -> None:
    outcomes: Sequence[tuple[str, Literal["passed", "failed", "skipped"]]] = [
        ("tests/attack/test_ssh_server.py", "passed"),
        ("tests/fuzz/test_requests.py", "passed"),
        ("tests/fuzz/test_requests.py", "skipped"),
        ("deploy/lab/tests/test_lab.py", "failed"),
        ("deploy/lab/tests/test_lab.py", "passed"),
        ("tests/conformance/test_left_out.py", "passed"),  # of no other program
    ]
    passed = Passed(found())
    for name, outcome in outcomes:
        passed.pytest_runtest_logreport(pytest.TestReport(f"{name}::test", ("", None, ""), {}, outcome, None, "call"))
    assert set(passed.record()) == {"tests/attack/test_ssh_server.py"}
    assert left_out(found(), passed.record()) == {PROJECT / "tests/attack/test_ssh_server.py"}


def test_the_record_names_tests_of_other_programs() -> None:
    recorded = json.loads(RECORD.read_bytes())
    assert recorded.keys() <= digests_of(found()).keys()
