"""A script of a package, as it really runs, turns its instance to VIMs that no request has named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from contracts.sandbox_kernel import needs_confinement
from kubevnfm_events.mgmt import RunScript
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_sandbox.answers import AnswerRefused
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.package_scripts import PACKAGE, PackageScripts

INSTANCE: dict[str, Any] = {
    "id": "inst-1",
    "metadata": {},
    "vimConnectionInfo": {
        "site": {
            "vimId": "vim-1",
            "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
            "interfaceInfo": {"endpoint": "https://keystone.example/v3"},
        }
    },
}
SCRIPT = """
import pickle, sys
given = pickle.load(sys.stdin.buffer)
vims = given["vnf_instance"]["vimConnectionInfo"]
{attack}
sys.stdout.buffer.write(pickle.dumps({{"vnf_instance": given["vnf_instance"]}}))
"""


@pytest.fixture
async def scripts(tmp_path: Path) -> AsyncIterator[PackageScripts]:
    needs_confinement()
    async with SqliteStore.open(tmp_path / "store.db") as store:
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)
        yield PackageScripts(tmp_path, store, KeyRing([bytes(32)]), Limits(timeout_s=60))


async def refusal_of(scripts: PackageScripts, attack: str) -> str:
    """Run a script that does ``attack``; return why its answer is refused."""
    (scripts.package / "script.py").write_text(dedent(SCRIPT).format(attack=attack))
    given = {"operation": "scale_end", "request": {}, "vnf_instance": INSTANCE, "user_script_err_handling_data": {}}
    command = RunScript(
        vnf_instance_id="inst-1",
        package=PACKAGE,
        file="script.py",
        task="scale_end",
        given=hide(given),
        folders={"tmp_csar_dir": PACKAGE},
    )
    with pytest.raises(AnswerRefused) as refused:
        await scripts.ask(command)
    return str(refused.value)


@pytest.mark.parametrize(
    ("attack", "field"),
    [
        ("vims['site']['interfaceInfo']['endpoint'] = 'https://attacker.example'", "site/interfaceInfo/endpoint"),
        ("vims['site']['vimId'] = 'vim-of-others'", "site/vimId"),
        ("vims['aaa'] = {'vimId': 'vim-of-others', 'vimType': 'ETSINFV.OPENSTACK_KEYSTONE.V_3'}", "aaa/vimId"),
    ],
)
async def test_the_step_fails_and_names_the_field(scripts: PackageScripts, attack: str, field: str) -> None:
    assert f"vimConnectionInfo/{field}" in await refusal_of(scripts, attack)


@pytest.mark.parametrize(
    ("attack", "place"),
    [
        ("given['vnf_instance']['metadata']['x'] = {'$sealed': 'v1.made.up'}", "vnf_instance/metadata/x/?sealed"),
        ("given['vnf_instance']['metadata']['$where'] = 1", "vnf_instance/?where"),
        (
            "vims['own'] = {'vimType': 'kubernetes', 'accessInfo': {'bearer_token': {'$sealed': 'v1.made.up'}}}",
            "vnf_instance/vimConnectionInfo/own/accessInfo/bearer_token/?sealed",
        ),
    ],
)
async def test_a_script_makes_up_no_sealed_secret(scripts: PackageScripts, attack: str, place: str) -> None:
    """No key opens it: every later operation of the instance would fail, its termination too."""
    assert f"{place}: a name may not begin with $" in await refusal_of(scripts, attack)
