"""The Helm chart agrees with the services: their settings, ports, calls and images. No Helm is needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import jsonschema_rs
import pytest
import yaml
from chart.setting_values import BY_CHART, WITHDRAWN, key_of
from chart.values_schema import CHART, PAGE, SCHEMA, as_text, page_with, schema, table
from pydantic import SecretStr
from servers.processes import PROJECT
from servers.six_processes import SERVICES, settings_of

MADE: Final = schema()
DEFAULTS: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
HELPERS: Final = (CHART / "templates/_helpers.tpl").read_text(encoding="utf-8")


def services() -> dict[str, dict[str, Any]]:
    """The table of services in the chart."""
    found = re.search(r'define "kubevnfm.services" -}}\n(.*?){{- end }}', HELPERS, re.DOTALL)
    assert found is not None
    return dict(yaml.safe_load(found[1]))


def test_the_schema_is_made_from_the_settings_classes_of_today() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == as_text(MADE), "make schemas"


def test_the_page_shows_the_values_of_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with(table(), page), "make schemas"


@pytest.mark.parametrize("service", SERVICES)
def test_every_setting_is_a_value_of_the_chart_or_set_by_it(service: str) -> None:
    values = MADE["properties"][key_of(service)]["properties"]
    plain, secret = values["settings"]["properties"], values["secretSettings"]["properties"]
    fields = settings_of(service).model_fields
    assert {*plain, *secret} == {name for name in fields if name not in BY_CHART and name not in WITHDRAWN}
    for name in plain:
        assert SecretStr.__name__ not in str(fields[name].annotation), name
    for name in secret:
        assert SecretStr.__name__ in str(fields[name].annotation), name


@pytest.mark.parametrize("service", SERVICES)
def test_the_chart_knows_port_calls_and_folders_of_a_service(service: str) -> None:
    row, fields = services()[service], settings_of(service).model_fields
    listener = row.get("listener", "")
    assert row["port"] == fields[f"{listener}port".lower()].default
    assert set(row["calls"]) == {peer for peer in SERVICES if f"{peer.replace('-', '_')}_url" in fields}
    assert bool(row.get("data")) == ("data_dir" in fields)
    assert bool(row.get("cache")) == ("cache_dir" in fields)
    assert bool(row.get("code")) == ("trust_packages" in fields)
    assert bool(row.get("access")) == ("auth_modes" in fields)
    assert (row.get("sends") == "credentials-receiver") == ("receiver_url" in fields)
    assert row["key"] == key_of(service)


def test_every_value_has_a_description_a_type_and_bounds() -> None:
    for path, one in parts(MADE, ()):
        assert one.get("description") or path[-1:] == ("additionalProperties",), path
        match one["type"]:
            case "object" if path != ("global",):
                assert "additionalProperties" in one, path
                assert one["additionalProperties"] is not True, path
            case "string":
                assert "enum" in one or "maxLength" in one, path
            case "integer" | "number":
                assert "maximum" in one, path
            case "array":
                assert "maxItems" in one, path


def test_the_default_of_every_value_is_written_down() -> None:
    """Without a default a template would read a value that is not there."""
    for path, one in parts(MADE, ()):
        inner = {"settings", "secretSettings", "requests", "limits", "global", "items", "additionalProperties"}
        if one["type"] == "object" and "properties" in one and not inner & set(path):
            given = value_in(DEFAULTS, path)
            assert isinstance(given, dict), path
            assert set(given) == set(one["properties"]) - {"global"}, path


def test_the_version_of_the_chart_is_that_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    versions = set(
        re.findall(r'^version = "(.*)"', (PROJECT / "services/lcm-api/pyproject.toml").read_text(), re.MULTILINE)
    )
    assert {chart["version"], chart["appVersion"]} == versions


def test_the_port_of_an_image_is_that_of_its_pods() -> None:
    for service, row in services().items():
        image = (PROJECT / "services" / service / "Dockerfile").read_text(encoding="utf-8")
        assert re.findall(r"^EXPOSE (\d+)$", image, re.MULTILINE) == [str(row["port"])]
        user = re.findall(r"useradd --uid (\d+)", image)
        assert user == [str(DEFAULTS["podSecurity"]["runAsUser"])]


def test_a_value_of_the_wrong_form_is_refused_with_its_path() -> None:
    """All of them at once: the validator names each fault."""
    validator = jsonschema_rs.validator_for(MADE)
    wrong = wrong_values()
    found = {tuple(map(str, error.instance_path)) for error in validator.iter_errors(wrong)}
    missing = [path for path in leaves(wrong, ()) if not any(path[: len(each)] == each for each in found if each)]
    assert not missing
    assert len(found) > 300
    assert not list(validator.iter_errors(DEFAULTS))


@pytest.mark.parametrize("service", SERVICES)
def test_a_value_that_the_chart_does_not_have_is_refused(service: str) -> None:
    validator = jsonschema_rs.validator_for(MADE)
    for values in (
        {"replica": 2},
        {"settings": {"pagesize": 3}},
        {"settings": {"keys": "x"}},
        {"image": {"name": "x"}},
    ):
        assert list(validator.iter_errors({key_of(service): values}))


def test_variables_of_kubevnfm_are_no_extra_variables() -> None:
    validator = jsonschema_rs.validator_for(MADE)
    assert list(validator.iter_errors({"lcmApi": {"extraEnv": [{"name": "KUBEVNFM_LCM_API_PAGE_SIZE", "value": "3"}]}}))
    assert not list(
        validator.iter_errors({"lcmApi": {"extraEnv": [{"name": "HTTPS_PROXY", "value": "http://p:3128"}]}})
    )


def parts(one: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Each schema of a value, with its path."""
    yield path, one
    for name, inner in one.get("properties", {}).items():
        yield from parts(inner, (*path, name))
    for name in ("items", "additionalProperties"):
        if isinstance(one.get(name), dict) and name == "items" and "properties" in one[name]:
            yield from parts(one[name], (*path, name))


def value_in(given: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        given = given[name]
    return given


def wrong_values() -> dict[str, Any]:
    """Values that are all of a wrong form; those of objects are wrong within."""
    return dict(_wrong(MADE))


def _wrong(one: Mapping[str, Any]) -> Any:
    if "properties" in one:
        return {name: _wrong(inner) for name, inner in one["properties"].items() if name != "global"}
    match one["type"]:
        case "string":
            return 7
        case "integer" | "number":
            return -1 if "minimum" in one or "exclusiveMinimum" in one else "many"
        case "boolean":
            return "maybe"
        case _:
            return "neither a list nor a mapping"


def leaves(given: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(given, dict):
        yield path
        return
    for name, inner in given.items():
        yield from leaves(inner, (*path, name))


def test_the_content_of_the_files_is_that_of_the_project() -> None:
    """They are links, so that nothing is there twice."""
    for name, target in {"rabbitmq": "base/rabbitmq", "mongodb": "base/mongodb", "monitoring": "monitoring"}.items():
        assert (CHART / "files" / name).resolve() == PROJECT / "deploy" / target
    assert json.loads((CHART / "files/rabbitmq/definitions.json").read_text())["queues"]
