"""Every service and every lib stands wherever the tree lists them.

Most lists are globs or are derived from the folders. A new service needs these files outside its folder, no others:

1. ``pyproject.toml``: its source in ``[tool.uv.sources]``, its folder in ``mypy_path``
2. ``.importlinter``: its package under root packages, layers, apart from the lab, and without a YAML reader of its own
3. ``docker-compose.yml``: its container
4. ``deploy/single/pyproject.toml`` and 5. ``deploy/single/kubevnfm/single.py``: its place in the single process
6. ``deploy/base/locks/<name>.lock``: written by ``make lock``
"""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
import yaml
from kubevnfm_events import CancelStep, queues
from kubevnfm_events.contract import commands
from kubevnfm_kit.settings import ProcessSettings
from servers.processes import PROJECT
from servers.six_processes import SERVICES, package_of, settings_of

LIBS: Final = sorted(path.parent.name for path in (PROJECT / "libs").glob("*/pyproject.toml"))
MEMBERS: Final = [*(f"libs/{name}" for name in LIBS), *(f"services/{name}" for name in SERVICES)]
NAMES: Final = [*LIBS, *SERVICES]
ONE_READER: Final = ("importlinter:contract:yaml", "source_modules")
LAB_ALONE: Final = ("importlinter:contract:lab-alone", "forbidden_modules")

every_service = pytest.mark.parametrize("service", SERVICES)


def toml(path: str) -> dict[str, object]:
    return tomllib.loads((PROJECT / path).read_text(encoding="utf-8"))


def linted() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(PROJECT / ".importlinter", encoding="utf-8")
    return parser


def words(section: str, option: str) -> list[str]:
    return re.findall(r"\w+", linted().get(section, option))


def sources(service: str) -> str:
    """Return the service's product code as one text."""
    return "\n".join(path.read_text(encoding="utf-8") for path in folder(service).rglob("*.py"))


def folder(service: str) -> Path:
    return PROJECT / "services" / service / package_of(service)


@every_service
def test_a_service_has_the_files_of_the_template(service: str) -> None:
    root = PROJECT / "services" / service
    assert (root / "README.md").exists()
    assert list((root / "tests").rglob("test_*.py"))
    for name in ("__main__.py", "settings.py", "wiring.py", "py.typed"):
        assert (folder(service) / name).exists(), name


@every_service
def test_a_service_starts_by_the_template(service: str) -> None:
    settings = settings_of(service)
    assert issubclass(settings, ProcessSettings)
    assert settings.model_config.get("env_prefix") == f"{package_of(service).upper()}_"
    assert "run_service(SERVICE, Settings, wire)" in (folder(service) / "__main__.py").read_text(encoding="utf-8")
    assert f'SERVICE = "{service}"' in (folder(service) / "wiring.py").read_text(encoding="utf-8")


@every_service
def test_no_part_of_the_settings_replaces_a_check_of_another_part(service: str) -> None:
    # Only the check of the first base runs, if two bases have one with the same name.
    checks = Counter(
        name
        for part in settings_of(service).__mro__
        if part.__module__.startswith("kubevnfm")
        for name in vars(part)
        if name.startswith("_") and not name.startswith("__") and callable(getattr(part, name))
    )
    assert [name for name, count in checks.items() if count > 1] == []


@every_service
def test_the_image_of_a_service_is_built_from_its_own_lock(service: str) -> None:
    dockerfile = (PROJECT / "services" / service / "Dockerfile").read_text(encoding="utf-8")
    for line in (
        f"deploy/base/locks/{service}.lock ",
        f"install.sh packages {service}\n",
        f"install.sh members {service}\n",
        f'CMD ["python", "-m", "{package_of(service)}"]',
    ):
        assert line in dockerfile
    lock = (PROJECT / "deploy" / "base" / "locks" / f"{service}.lock").read_text(encoding="utf-8")
    assert f"./services/{service}\n" in lock


@every_service
def test_the_image_of_a_service_has_all_that_its_code_imports(service: str) -> None:
    """The environment of tests has every member and package, the image those of its lock alone."""
    lock = (PROJECT / "deploy" / "base" / "locks" / f"{service}.lock").read_text(encoding="utf-8")
    members = [PROJECT / line for line in lock.splitlines() if line.startswith("./")]
    of_all = {
        path.name
        for pattern in ("libs/*", "services/*", "proto-events")
        for path in PROJECT.glob(f"{pattern}/kubevnfm_*")
    }
    packages = {path.name for member in members for path in member.glob("kubevnfm_*")}
    locked = {path.replace("_", "-") for path in packages} | set(re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE))
    for member in members:
        for path in member.glob("kubevnfm_*/**/*.py"):
            code = path.read_text(encoding="utf-8")
            imported = set(re.findall(r"^ *(?:from|import) (kubevnfm_\w+)", code, re.MULTILINE))
            assert imported & of_all <= packages, path
        project = tomllib.loads((member / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert {re.split(r"[^\w-]", each)[0].lower() for each in project["dependencies"]} <= locked, member


def test_no_lock_is_left_of_a_service_that_is_gone() -> None:
    locks = {path.stem for path in (PROJECT / "deploy" / "base" / "locks").glob("*.lock")}
    assert locks == {*SERVICES, "lab"}


@every_service
def test_docker_compose_runs_a_service(service: str) -> None:
    composed = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))["services"][service]
    assert composed["build"]["dockerfile"] == f"services/{service}/Dockerfile"
    prefix = settings_of(service).model_config["env_prefix"]
    fields = {f"{prefix}{name}".upper() for name in settings_of(service).model_fields}
    given = set(composed["environment"])
    assert given <= fields
    assert {f"{prefix}{name}" for name in ("AMQP_URL", "MONGO_URL", "INTERNAL_TOKEN", "KEYS")} <= given


@every_service
def test_docker_compose_gives_a_service_users_of_its_own(service: str) -> None:
    composed = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    environment, prefix = composed[service]["environment"], settings_of(service).model_config["env_prefix"]
    name, database = service.replace("-", "_").upper(), package_of(service)
    assert environment[f"{prefix}AMQP_URL"] == f"amqp://{service}:${{RABBITMQ_{name}_PASSWORD}}@rabbitmq:5672/"
    assert environment[f"{prefix}AMQP_DECLARES"] == "false"
    assert (
        environment[f"{prefix}MONGO_URL"]
        == f"mongodb://{service}:${{MONGODB_{name}_PASSWORD}}@mongodb:27017/{database}"
    )
    assert environment[f"{prefix}MONGO_DATABASE"] == database
    for server in ("rabbitmq", "mongodb"):
        assert f"{server.upper()}_{name}_PASSWORD" in composed[f"{server}-users"]["environment"]
        assert composed[service]["depends_on"][f"{server}-users"] == {"condition": "service_completed_successfully"}
    called = {peer for peer in SERVICES if f"{peer.replace('-', '_')}_url" in settings_of(service).model_fields}
    called.discard("credentials-receiver")  # vim-registry calls it, with a token that no other service has (CR-071)
    given = str(environment[f"{prefix}PEER_TOKENS"]).split(",")
    assert set(given) == {f"{peer}=${{KUBEVNFM_TOKEN_{peer.replace('-', '_').upper()}}}" for peer in called}
    others = [other for other in SERVICES if other != service]
    assert not any(f"_{other.replace('-', '_').upper()}_PASSWORD" in str(environment) for other in others)


def test_docker_compose_gives_the_token_for_kubeconfigs_to_two_services_only() -> None:
    """CR-071."""
    composed = yaml.safe_load((PROJECT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
    having = {name for name, one in composed.items() if "KUBEVNFM_CREDENTIALS_TOKEN" in str(one.get("environment"))}
    assert having == {"vim-registry", "credentials-receiver"}
    assert {one for one in SERVICES if "credentials_token" in settings_of(one).model_fields} == having


@every_service
def test_a_service_consumes_events_by_queues_of_the_contract_only(service: str) -> None:
    """The rights of its user on the broker are made from that list (`kubevnfm_events/queues.py`)."""
    listed = {name for name, queue in vars(queues).items() if isinstance(queue, queues.EventQueue)}
    consumed = re.findall(r"\bconsume_events\(\s*(?:queues\.)?([^,\s]+)", sources(service))
    assert {one.removesuffix(".name") for one in consumed} <= listed
    assert len(consumed) == len([queue for queue in queues.EVENT_QUEUES if queue.service == service])


@every_service
def test_the_single_process_runs_a_service(service: str) -> None:
    assert f"kubevnfm-{service}" in str(toml("deploy/single/pyproject.toml")["project"])
    single = (PROJECT / "deploy" / "single" / "kubevnfm" / "single.py").read_text(encoding="utf-8")
    assert f"from {package_of(service)}.wiring import" in single


@pytest.mark.parametrize("member", MEMBERS)
def test_the_workspace_knows_a_member(member: str) -> None:
    root = toml("pyproject.toml")["tool"]
    assert isinstance(root, dict)
    assert f"kubevnfm-{Path(member).name}" in root["uv"]["sources"]
    assert member in root["mypy"]["mypy_path"]


@pytest.mark.parametrize("name", NAMES)
def test_the_import_rules_know_a_package(name: str) -> None:
    package = package_of(name)
    assert package in words("importlinter", "root_packages")
    assert package in words("importlinter:contract:layers", "layers")
    apart = ("importlinter:contract:lab", "modules") if name in SERVICES else LAB_ALONE
    assert package in words(*apart)
    assert package in words(*ONE_READER)


@pytest.mark.parametrize("lib", LIBS)
def test_no_lib_is_without_tests(lib: str) -> None:
    assert list((PROJECT / "libs" / lib / "tests").glob("test_*.py"))


@every_service
def test_every_command_to_a_service_has_a_handler_there(service: str) -> None:
    written = sources(service)
    for command in commands():
        if command.service == service and not issubclass(command, CancelStep):  # the worker handles cancellations
            assert re.search(rf"\bhandle(_direct)?\({command.__name__},", written), command.type


def test_every_command_is_addressed_to_a_service_that_exists() -> None:
    assert {command.service for command in commands()} <= set(SERVICES)


def test_no_source_is_read_for_docstrings_when_a_model_is_imported() -> None:
    """`kubevnfm_kit.json_schema` reads them when a schema is made; pydantic's setting costs each start of a service a sixth."""
    modules = (
        path
        for member in [*MEMBERS, "proto-events", "deploy/single"]
        for path in (PROJECT / member).glob("kubevnfm*/**/*.py")
    )
    ways = [path for path in modules if "use_attribute_docstrings" in path.read_text(encoding="utf-8")]
    assert ways == [PROJECT / "libs/kit/kubevnfm_kit/json_schema.py"]


_STARTED = """
import json, sys
import kubevnfm_lcm_api.__main__
from pydantic import BaseModel

def below(model):
    return {model}.union(*map(below, model.__subclasses__()))

models = [model for model in below(BaseModel) if model.__module__.startswith("kubevnfm")]
built = [model for model in models if model.__pydantic_complete__]
print(json.dumps({"modules": list(sys.modules), "models": len(models), "built": len(built)}))
"""


def test_lcm_api_has_only_what_it_uses_in_memory_after_its_imports() -> None:
    """Its processes for packages import what reads them; the rules of a model are built when it is first used."""
    ran = subprocess.run([sys.executable, "-c", _STARTED], capture_output=True, check=True, timeout=120)
    found = json.loads(ran.stdout)
    of_children = {"jsonschema_rs", "tarfile", "kubevnfm_csar.bundles", "kubevnfm_lcm_api.packages.adapters.unpacking"}
    assert not of_children & set(found["modules"])
    assert found["built"] < found["models"] / 3


_EACH_ALONE = """
import os, runpy, sys
import aio_pika, aiohttp.web, motor.motor_asyncio, prometheus_client, pydantic_settings, structlog

assert not [name for name in sys.modules if name.startswith("kubevnfm_")]
for module in sys.argv[1:]:
    if os.fork() == 0:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    _, status = os.wait()
    print(module, os.waitstatus_to_exitcode(status), file=sys.stderr)
"""


def test_each_service_starts_by_itself_and_names_the_settings_that_it_lacks() -> None:
    """In other tests, a service is forked from a Python that has imported others. The test above starts lcm-api."""
    modules = [package_of(service) for service in SERVICES if service != "lcm-api"]
    ran = subprocess.run(
        [sys.executable, "-c", _EACH_ALONE, *modules], env={}, capture_output=True, text=True, check=False, timeout=120
    )
    said = ran.stderr.splitlines()
    for module, line, code in zip(modules, said[::2], said[1::2], strict=True):
        assert f"{module.upper()}_INTERNAL_TOKEN: Field required" in line
        assert code == f"{module} 1"
