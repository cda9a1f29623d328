"""``/health/ready`` of the single process says whether code of packages is run."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest
from contracts.sandbox_kernel import needs_confinement
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_sandbox.seccomp import FilterUnavailable


async def shown(tmp_path: Path, *, trust_packages: bool = False) -> object:
    settings = Settings(port=0, data_dir=tmp_path, trust_packages=trust_packages)
    async with (
        single_node(settings) as node,
        aiohttp.ClientSession() as session,
        session.get(f"{node.url}/health/ready") as answer,
    ):
        assert answer.status == 200
        return (await answer.json())["packageCode"]


async def test_a_machine_that_can_confine_code_of_packages_says_so(tmp_path: Path) -> None:
    needs_confinement()
    assert await shown(tmp_path) == "confined"


@pytest.mark.parametrize(
    ("trust_packages", "state", "event"),
    [(False, "refused", "package_code_refused"), (True, "trusted", "package_code_not_confined")],
)
async def test_a_machine_that_cannot_says_at_start_and_in_its_health_what_it_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trust_packages: bool,
    state: str,
    event: str,
) -> None:
    def missing(**_: bool) -> bytes:
        raise FilterUnavailable("libseccomp.so.2 is not installed (Debian and Ubuntu: libseccomp2)")

    needs_confinement()
    monkeypatch.setattr("kubevnfm_sandbox.launcher_config.compiled", missing)
    assert await shown(tmp_path, trust_packages=trust_packages) == state
    said = "".join(capsys.readouterr())
    assert event in said
    assert "libseccomp.so.2 is not installed" in said
