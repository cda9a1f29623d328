"""One process's settings: environment before file, and one line for a file that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kubevnfm.keys import KeysDamaged, key_ring
from kubevnfm.settings import SERVICES, Settings
from kubevnfm_clients.peers import peers_of
from kubevnfm_kit.settings import ServiceSettings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is read; it does not exist yet."""
    path = tmp_path / "kubevnfm.toml"
    monkeypatch.setenv("KUBEVNFM_CONFIG", str(path))
    return path


def _line(*others: type[ServiceSettings]) -> str:
    with pytest.raises(SystemExit) as ended:
        Settings.read_or_exit(*others)
    line = str(ended.value.code)
    assert "\n" not in line
    return line


def test_the_environment_goes_before_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('port = 1234\ndata_dir = "/somewhere"\n')
    monkeypatch.setenv("KUBEVNFM_PORT", "4321")
    settings = Settings.read_or_exit()
    assert (settings.port, settings.data_dir) == (4321, Path("/somewhere"))


def test_a_fault_names_the_file_or_the_variable(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text('prt = 1\nlease_s = -1\nport = "x"\n')
    monkeypatch.setenv("KUBEVNFM_PORT", "seven")
    monkeypatch.setenv("KUBEVNFM_LCM_API_PAGESIZE", "7")
    monkeypatch.setenv("KUBEVNFM_AUTH_MODE", "basic")
    faults = _line(*SERVICES).split("; ")
    assert f"{file}: prt: no such setting: did you mean port?" in faults
    assert any(each.startswith(f"{file}: lease_s: ") and "greater than 0" in each for each in faults)
    assert any(each.startswith("KUBEVNFM_PORT: ") and "integer" in each for each in faults)
    assert "KUBEVNFM_LCM_API_PAGESIZE: no such setting: did you mean KUBEVNFM_LCM_API_PAGE_SIZE?" in faults
    assert "KUBEVNFM_AUTH_MODE: no such setting: did you mean KUBEVNFM_AUTH_MODES?" in faults
    assert len(faults) == 5


def test_a_fault_of_a_setting_is_said_by_the_program_before_it_starts(tmp_path: Path) -> None:
    """One line and code 1; a variable of one service, too."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
    for name, said in (
        ("KUBEVNFM_PRT", "did you mean KUBEVNFM_PORT?"),
        ("KUBEVNFM_INFRA_K8S_WATCHES", "no such setting"),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "kubevnfm.cli", "run"],
            env={**environment, name: "1"}, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
        assert ended.stderr.startswith(f"{name}: no such setting")
        assert said in ended.stderr


def test_every_server_of_the_settings_is_a_peer_that_packages_may_not_reach(file: Path) -> None:
    named = {
        "public_url": "https://vnfm.example",
        "nfvo_url": "https://nfvo.example",
        "nfvo_token_url": "https://tokens.example",
        "auth_keystone_url": "https://keystone.example/v3",
        "auth_bearer_issuer": "https://issuer.example",
        "auth_bearer_jwks_url": "https://keys.example",
        "receiver_hosts": "receiver.example:8443, other.example",
    }
    file.write_text("".join(f'{name} = "{value}"\n' for name, value in named.items()))
    found = {peer.setting for peer in peers_of(Settings.read_or_exit()) if peer.host.endswith(".example")}
    assert found == set(named)
    # A setting that names a server by another type would not be found.
    texts = {
        name: str(field.annotation)
        for name, field in Settings.model_fields.items()
        if "url" in name or "issuer" in name
    }
    assert all("str" in text.lower() for text in texts.values()), texts


@pytest.mark.parametrize("name", ["vnf_networks", "vnf_networks_except", "allowed_networks"])
def test_a_wrong_network_is_refused_with_the_name_of_its_setting(name: str, file: Path) -> None:
    file.write_text(f'{name} = "10.0.0.1/8"\n')
    assert f"{file}: {name}: " in _line()


def test_a_rule_about_several_settings_begins_with_their_names(file: Path) -> None:
    file.write_text('host = "0.0.0.0"\n')
    assert _line().startswith("host: without authentication only loopback is served")


def test_a_wrong_setting_of_one_part_ends_the_start_with_one_line(file: Path, tmp_path: Path) -> None:
    file.write_text(f'data_dir = "{tmp_path / "data"}"\nport = 0\n')
    environment = {**os.environ, "KUBEVNFM_CONFIG": str(file), "KUBEVNFM_INFRA_K8S_FETCH_INNER_ADDRESSES": "true"}
    # A process of its own: `run` configures the log.
    command = [sys.executable, "-m", "kubevnfm.cli", "run"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    last = ended.stderr.strip().splitlines()[-1]
    assert ended.returncode == 1
    assert last.startswith("kubevnfm: fetch_inner_addresses: replaced by allowed_networks")
    assert "input_value" not in ended.stderr


def test_a_file_that_is_named_has_to_be_there(file: Path) -> None:
    assert str(file) in _line()


@pytest.mark.parametrize("content", [b"port = = 1\n", b"port = \xff\n"])
def test_a_file_that_is_no_toml_is_named(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert str(file) in _line()


def test_keys_are_made_once_and_damaged_ones_are_not_overwritten(tmp_path: Path) -> None:
    sealed = key_ring(tmp_path).seal("word")
    assert key_ring(tmp_path).open(sealed) == "word"
    assert (tmp_path / "keys").stat().st_mode & 0o077 == 0
    (tmp_path / "keys").write_text("rubbish")
    with pytest.raises(KeysDamaged, match=str(tmp_path / "keys")):
        key_ring(tmp_path)
    assert (tmp_path / "keys").read_text() == "rubbish"
