"""Invalid settings end the process with one line that shows no value."""

from __future__ import annotations

import pytest
from kubevnfm_kit.otlp_settings import OtlpSettings
from kubevnfm_kit.settings import ProcessSettings, ServiceSettings
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict
from servers.connect_proxy import environment


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


def test_a_proxy_that_cannot_be_read_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SAMPLE_TOKEN", "word")
    with (
        environment(HTTPS_PROXY="socks5://ada:swordfish@proxy", no_proxy="10.0.0.0/33", http_proxy="proxy:3128"),
        pytest.raises(SystemExit) as ended,
    ):
        _Settings.read_or_exit()
    line = str(ended.value.code)
    assert line.startswith(
        "HTTPS_PROXY: http://HOST:PORT expected; proxies of other kinds (socks5) are not used; no_proxy: 10.0.0.0/33: a name"
    )
    assert "swordfish" not in line


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("KUBEVNFM_SAMPLE_PROT", "no such setting: did you mean KUBEVNFM_SAMPLE_PORT?"),
        ("kubevnfm_sample_tokn", "no such setting: did you mean KUBEVNFM_SAMPLE_TOKEN?"),
        ("KUBEVNFM_DATA_DIR", "no such setting"),
        ("KUBEVNFM_LCMAPI_PORT", "no such setting"),
        ("KUBEVNFM_", "no such setting"),
    ],
)
def test_a_variable_that_nothing_reads_is_an_error(name: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_SAMPLE_TOKEN", "word")
    monkeypatch.setenv(name, "swordfish")
    with pytest.raises(SystemExit) as ended:
        _Settings.read_or_exit()
    line = str(ended.value.code)
    assert line.startswith(f"{name}: {said}")
    assert "swordfish" not in line


def test_the_variables_of_the_other_programs_of_the_project_are_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The six services may share one environment, in which the command line is used, too."""
    for name in (
        "SAMPLE_TOKEN",
        "LCM_API_PORT",
        "INFRA_K8S_ANY",
        "URL",
        "CONTEXT",
        "CLIENT_USER",
        "HEALTH_PORT",
        "CONFIG",
    ):
        monkeypatch.setenv(f"KUBEVNFM_{name}", "word")
    monkeypatch.setenv("KUBE_VNFM", "word")
    assert _Settings.read_or_exit().token.get_secret_value() == "word"


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


@pytest.mark.parametrize("variable", ["AMQP_URL", "MONGO_URL"])
@pytest.mark.parametrize(
    "rest",
    [
        "user:word-9/x@broker:1/", "user:8/word-9@broker:1/", "user:word-9@x@broker:1/", "user:word-9:x@broker:1/", "user:word-9@broker:x/",
        "user:word-9[@broker:1/", "us[er:word-9]@broker:1/", "user:word-9@/", "word-9#x@broker:1/", "",
    ],
)  # fmt: skip
def test_an_address_of_broker_or_database_that_cannot_be_read_is_refused_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, rest: str
) -> None:
    """API-199: the client libraries would wait for ever, or quote a part of it."""
    for name, value in (("INTERNAL_TOKEN", "t"), ("KEYS", "k")):
        monkeypatch.setenv(f"KUBEVNFM_SAMPLE_{name}", value)
    scheme = variable.partition("_")[0].lower().replace("mongo", "mongodb")
    for given in (f"{scheme}://{rest}", f"http://user:word-9@{rest}"):
        monkeypatch.setenv(f"KUBEVNFM_SAMPLE_{variable}", given)
        with pytest.raises(SystemExit) as ended:
            _Process.read_or_exit()
        assert str(ended.value).startswith(
            f"KUBEVNFM_SAMPLE_{variable}: {scheme}://<user>:<password>@<host>:<port>/ expected"
        )
        assert "word-9" not in str(ended.value) + "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://127.0.0.1:27017", "mongodb://u:p%40%2F@a:1,b.example:2,[fd12::1]:3/db?replicaSet=r&tlsCAFile=/etc/a@b.pem",
        "mongodb+srv://u:p@cluster.example/?x=1", "mongodb://%2Ftmp%2Fmongodb-27017.sock", "mongodb://mongo_db:27017/",
    ],
)  # fmt: skip
def test_addresses_of_databases_are_accepted(url: str) -> None:
    given = _Process(internal_token=SecretStr("t"), keys=SecretStr("k"), mongo_url=SecretStr(url))
    assert given.mongo_url.get_secret_value() == url


@pytest.mark.parametrize(
    "given",
    ["http://c:99999", "http://c:abc", "http://c:0", "http://[::1", "http://a b", "http://c\n", "http://@c", "ftp://c"],
)
def test_the_address_of_a_service_that_no_call_can_reach_is_refused_by_the_name_of_its_setting(given: str) -> None:
    with pytest.raises(ValidationError, match="otlp_endpoint: an http or https URL without credentials"):
        OtlpSettings(otlp_endpoint=given)
    assert OtlpSettings(otlp_endpoint="https://[::1]:4318/a").traces_url == "https://[::1]:4318/a/v1/traces"
