"""Invalid settings end the process with one line that shows no value."""

from __future__ import annotations

import pytest
from kubevnfm_kit.settings import ProcessSettings, ServiceSettings
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict


class _Settings(ServiceSettings):
    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_SAMPLE_")

    port: int = Field(default=1, ge=0)
    token: SecretStr
    log_level: str = "INFO"


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SAMPLE_PORT", "7")
    monkeypatch.setenv("KUBEVNFM_SAMPLE_TOKEN", "word")
    monkeypatch.setenv("KUBEVNFM_SAMPLE_LOG_LEVEL", "debug")
    settings = _Settings.read_or_exit()
    assert (settings.port, settings.token.get_secret_value(), settings.log_level) == (7, "word", "debug")


def test_one_line_names_each_variable_that_is_wrong_or_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SAMPLE_PORT", "seven")
    monkeypatch.setenv("KUBEVNFM_SAMPLE_LOG_LEVEL", "loud")
    with pytest.raises(SystemExit) as ended:
        _Settings.read_or_exit()
    line = str(ended.value.code)
    assert "\n" not in line
    for name in ("KUBEVNFM_SAMPLE_PORT", "KUBEVNFM_SAMPLE_TOKEN", "KUBEVNFM_SAMPLE_LOG_LEVEL"):
        assert name in line
    for value in ("seven", "loud"):
        assert value not in line


class _Process(ProcessSettings):
    model_config = SettingsConfigDict(env_prefix="KUBEVNFM_SAMPLE_")


def test_a_service_calls_each_peer_with_the_token_of_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SAMPLE_INTERNAL_TOKEN", "own")
    monkeypatch.setenv("KUBEVNFM_SAMPLE_KEYS", "k")
    assert _Process.read_or_exit().token_for("lcm-api") == "own"
    monkeypatch.setenv("KUBEVNFM_SAMPLE_PEER_TOKENS", "lcm-api=a=1, vim-registry=b")
    settings = _Process.read_or_exit()
    assert [settings.token_for(peer) for peer in ("lcm-api", "vim-registry", "other")] == ["a=1", "b", "own"]
    assert "a=1" not in repr(settings)


@pytest.mark.parametrize("given", ["swordfish", "lcm-api=", "=swordfish", "lcm-api=a,swordfish"])
def test_wrong_tokens_of_peers_are_refused_without_showing_them(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"INTERNAL_TOKEN": "own", "KEYS": "k", "PEER_TOKENS": given}.items():
        monkeypatch.setenv(f"KUBEVNFM_SAMPLE_{name}", value)
    with pytest.raises(SystemExit, match=r"PEER_TOKENS: .*<service>=<token> expected") as ended:
        _Process.read_or_exit()
    assert "swordfish" not in str(ended.value)
