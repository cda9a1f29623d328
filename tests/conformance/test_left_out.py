"""Which tests of other programs `make test` leaves out: none that use something that has changed."""

from __future__ import annotations

from functools import cache

import pytest
from unchanged import PROJECT, left_out


@cache
def names(*changes: str) -> frozenset[str]:
    return frozenset(str(path.relative_to(PROJECT)) for path in left_out({PROJECT / change for change in changes}))


def test_texts_for_readers_change_no_program() -> None:
    assert names("docs/speed.md", "CHANGELOG.md") == names()
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
        "libs/kit/kubevnfm_kit/deleted.py",
        "tests/support/deleted.py",
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
        ("tests/support/hostile.py", "tests/attack/test_ssh_server.py"),
        ("tests/conftest.py", "tests/attack/test_ssh_server.py"),
        ("tests/support/plain_logs.py", "tests/attack/test_ssh_server.py"),
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
