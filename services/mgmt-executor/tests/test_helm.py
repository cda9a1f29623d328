"""Helm on the masters of a cluster, on the lab's machines (SEQ M17)."""

from __future__ import annotations

from typing import Final

import pytest
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_mgmt_executor.domain.errors import CommandUnsuccessful
from worlds.mgmt_lab import MgmtLab

PATH: Final = "Scripts/install_helm.sh"
ASKED: Final = {"helm_installation_script_path": PATH, "proxy": {"https_proxy": "http://proxy.example.com:3128"}}
SCRIPT: Final = """
program=$KUBEVNFM_SYSROOT/usr/local/bin/helm
printf '#!/bin/bash\\necho v3.5.4\\n' >"$program"
chmod 755 "$program"
echo "fetched through $https_proxy" >>"$KUBEVNFM_SYSROOT/root/helm-runs"
"""


def given(lab: MgmtLab, script: str) -> None:
    (lab.packages.root / "Scripts").mkdir(exist_ok=True)
    (lab.packages.root / PATH).write_text(script)


async def test_each_master_gets_helm_by_the_packages_script(lab: MgmtLab) -> None:
    """M17: a machine that has it already is left alone; workers get none."""
    given(lab, SCRIPT)
    nodes = [await lab.boot("master", 10, host="compute-0"), await lab.boot("worker", 20, host="compute-0")]
    asked = lab.command(nodes, changes=ASKED)
    await lab.run(asked)
    await lab.run(asked, fencing=2)
    master, worker = (lab.machine(node).root for node in nodes)
    assert (master / "root/helm-runs").read_text() == "fetched through http://proxy.example.com:3128\n"
    assert not (worker / "usr/local/bin/helm").exists()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'no such host' >&2; exit 6",
            "the package's script that installs Helm ended with exit code 6; its last output:\n| no such host",
        ),
        ("true", "the package's script ended well, but installed no helm that runs"),
    ],
)
async def test_a_script_that_does_not_install_helm_fails_the_phase(lab: MgmtLab, script: str, reason: str) -> None:
    given(lab, script)
    node = await lab.boot("master", 10, host="compute-0")
    with pytest.raises(CommandUnsuccessful) as failed:
        await lab.run(lab.command([node], changes=ASKED))
    assert reason in str(failed.value)
    assert "master10" in str(failed.value)


async def test_a_script_that_the_package_does_not_have_is_refused_before_a_machine_changes(lab: MgmtLab) -> None:
    node = await lab.boot("master", 10, host="compute-0")
    with pytest.raises(Unprocessable) as refused:
        await lab.run(lab.command([node], changes=ASKED))
    assert refused.value.field.endswith("/helm_installation_script_path")
    assert lab.news == []
