"""The settings classes read what the chart renders, and every setting can be a value."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from chart.pods import COMPONENT, Cluster
from chart.rendering import BASE, CASES, cases, program, rendered
from chart.setting_values import key_of, setting_schemas
from kubevnfm_kit.settings import ProcessSettings, unknown_variables
from kubevnfm_secrets import KeyRing
from servers.certificates import Authority
from servers.six_processes import SERVICES, settings_of

HELM: Final = program("helm") or program("helm4")

pytestmark = pytest.mark.skipif(
    HELM is None, reason="NOT TESTED, there is no Helm: `make test-chart` builds it, or KUBEVNFM_TEST_HELM names one"
)


@pytest.mark.parametrize("case", cases())
def test_the_services_read_what_the_chart_renders(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = rendered(str(HELM), CASES / f"{case}.yaml")
    read = dict(settings_from(objects, tmp_path, monkeypatch))
    assert set(read) == set(SERVICES)
    for service, settings in read.items():
        row = {name: value for name, value in settings.model_dump().items() if name.endswith("_url")}
        scheme = "https" if case == "tls" else "http"
        for peer in SERVICES:
            if (name := f"{peer.replace('-', '_')}_url") in row:
                assert str(row[name]).startswith(f"{scheme}://127.0.0.1:"), (service, name)
        assert settings.mongo_database == f"kubevnfm_{service.replace('-', '_')}"


def test_every_setting_can_be_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has its default here, in the form of the values; it is read as that again."""
    values: dict[str, Any] = yaml.safe_load((CASES / f"{BASE}.yaml").read_text(encoding="utf-8"))
    given: dict[str, dict[str, Any]] = {}
    for service in SERVICES:
        defaults = {
            name: one.get("default") for name, one in settings_of(service).model_json_schema()["properties"].items()
        }
        plain, _ = setting_schemas(service)
        given[service] = {name: defaults[name] for name in plain["properties"] if defaults.get(name) is not None}
        given[service] |= {"auth_modes": ["basic"]} if "auth_modes" in given[service] else {}
        values[key_of(service)] = {"settings": given[service]}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    read = dict(settings_from(rendered(str(HELM), file), tmp_path, monkeypatch))
    assert sum(map(len, given.values())) > 150
    for service, settings in read.items():
        found = settings.model_dump(mode="json")
        assert {name: found[name] for name in given[service]} == given[service]


def settings_from(
    objects: list[dict[str, Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, ProcessSettings]]:
    """The settings that each Deployment gives its service, with Secrets that a user would have made."""
    cluster = Cluster([*objects, *secrets_for(objects, folder)], folder)
    for name, deployment in cluster.named("Deployment").items():
        service = deployment["metadata"]["labels"][COMPONENT]
        environment = cluster.container(name, deployment["spec"]["template"]).environment
        kind = settings_of(service)
        assert not unknown_variables(environment, kind.variables())
        with monkeypatch.context() as patched:
            for variable, value in environment.items():
                patched.setenv(variable, value)
            yield service, kind()


def secrets_for(objects: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    """The Secrets and ConfigMaps that the pods name and the chart does not make, each with the keys that are asked for."""
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    pair = Authority(folder).issue("one")
    wanted: dict[tuple[str, str], dict[str, str]] = {}
    for each in objects:
        if each["kind"] != "Deployment":
            continue
        pod = each["spec"]["template"]["spec"]
        service = each["metadata"]["labels"][COMPONENT]
        for volume in pod["volumes"]:
            if "secret" in volume:
                files = {
                    "tls.crt": pair.certificate.read_text(),
                    "tls.key": pair.key.read_text(),
                    "ca.crt": pair.certificate.read_text(),
                }
                wanted.setdefault(("Secret", volume["secret"]["secretName"]), {}).update(files)
        for variable in pod["containers"][0]["env"]:
            for form, reference in variable.get("valueFrom", {}).items():
                kind = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}[form]
                content = value_for(variable["name"], service)
                wanted.setdefault((kind, reference["name"]), {})[reference["key"]] = content
    return [form_of(kind, name, data) for (kind, name), data in wanted.items() if (kind, name) not in there]


def value_for(variable: str, service: str) -> str:
    if variable.endswith("AMQP_URL"):
        return f"amqp://{service}:word@broker:5672/"
    if variable.endswith("MONGO_URL"):
        return f"mongodb://{service}:word@database:27017/"
    return KeyRing.new_key() if variable.endswith("_KEYS") else f"word-of-{variable.lower()}"


def form_of(kind: str, name: str, data: dict[str, str]) -> dict[str, Any]:
    if kind == "Secret":
        data = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"kind": kind, "metadata": {"name": name}, "data": data}
