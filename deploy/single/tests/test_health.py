"""The single process shows its health: whether code of packages is run, and its metrics."""

from __future__ import annotations

import re
from pathlib import Path

import aiohttp
import pytest
import yaml
from callers.documented import judge
from callers.users import basic
from contracts.sandbox_kernel import needs_confinement
from kubevnfm.settings import Settings
from kubevnfm.single import single_node
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_sandbox.seccomp import FilterUnavailable
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families
from servers.processes import PROJECT

METRICS = "/kubevnfm/v1/metrics"
PAGE = PROJECT / "docs" / "monitoring.md"
RULES = PROJECT / "deploy" / "monitoring" / "kubevnfm.rules.yml"


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


async def test_a_reader_gets_the_metrics_that_the_page_about_monitoring_has(tmp_path: Path) -> None:
    """MC-136: all of them at the gateway, each once, with the type of the page; each alert finds its metrics and its heading."""
    users = tmp_path / "users.toml"
    users.write_text(f'[users.prometheus]\nroles = ["reader"]\npassword = "{PasswordHash.from_password("p")}"\n')
    settings = Settings(port=0, data_dir=tmp_path / "data", auth_modes=("basic",), auth_users_file=users)
    async with single_node(settings) as node, aiohttp.ClientSession() as session:
        async with session.get(f"{node.url}{METRICS}") as refused:
            assert refused.status == 401
        # As Prometheus asks.
        accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}
        async with session.get(f"{node.url}{METRICS}", headers={**basic("prometheus", "p"), **accept}) as answer:
            raw = await answer.read()
            judge("GET", METRICS, answer.status, answer.headers, raw)
            assert (answer.status, answer.content_type) == (200, "application/openmetrics-text")
            assert raw.endswith(b"\n# EOF\n")
        async with session.get(f"{node.url}{METRICS}", headers=basic("prometheus", "p")) as answer:
            plain = await answer.read()
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        async with session.get(f"{node.url}/made-up/{'x' * 100}") as unknown:
            assert unknown.status == 404
        async with session.request("PROPFIND", node.url) as unknown:
            assert unknown.status == 405
        async with session.get(f"{node.url}{METRICS}", headers=basic("prometheus", "p")) as answer:
            again = (await answer.text()).splitlines()
    # The numbers of the other services, which are in the same answer, are apart.
    page, counted, of = PAGE.read_text(), "kubevnfm_http_requests_total", 'service="lcm-api"'
    assert f'{counted}{{method="GET",route="{METRICS}",{of},status="4xx"}} 1.0' in again
    assert f'{counted}{{method="GET",route="{METRICS}",{of},status="2xx"}} 2.0' in again
    assert f'{counted}{{method="GET",route="none",{of},status="4xx"}} 1.0' in again
    assert f"kubevnfm_http_requests_running{{{of}}} 1.0" in again
    assert f'{counted}{{method="other",route="none",{of},status="4xx"}} 1.0' in again
    assert not any("made-up" in line or "PROPFIND" in line for line in again)
    families = list(text_string_to_metric_families(plain.decode()))
    opened = openmetrics_families(raw.decode())  # type: ignore[no-untyped-call]
    assert {each.name for each in opened} == {each.name for each in families}
    served = {f"{each.name}{'_total' * (each.type == 'counter')}": each.type for each in families}
    assert len(served) == len(families)
    assert served == dict(re.findall(r"^\| `((?:kubevnfm|process)_\w+)` \| (\w+) \|", page, re.MULTILINE))
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    named = re.findall(r"\b(?:kubevnfm|process)_\w+", "".join(rule["expr"] for rule in rules))
    assert {re.sub(r"_(bucket|sum|count)$", "", name) for name in named} <= served.keys()
    headings = [f"docs/monitoring.md#{each.lower()}" for each in re.findall(r"^### (Kubevnfm\w+)$", page, re.MULTILINE)]
    assert [rule["annotations"]["runbook"] for rule in rules] == headings
