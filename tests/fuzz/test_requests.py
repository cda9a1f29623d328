"""Requests generated from the served OpenAPI document: none causes a crash, and every response is as documented.

`make test` sends the same few requests for each operation; `make test-fuzz` sends many, different ones each time.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import requests
import schemathesis
from callers.documented import Documented
from callers.user import User, sample_body
from clouds.lab_process import LabProcess
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.core import NOT_SET
from schemathesis.core.result import Ok
from servers.installations import SingleInstallation

EXAMPLES: Final = int(os.environ.get("KUBEVNFM_FUZZ_EXAMPLES", "0"))
"""The number of requests for each operation; 0 means a few, the same each time."""
FEW: Final = 2
ENDLESS: Final = frozenset({"/kubevnfm/v1/events"})
KNOWN_BY_PATH: Final = {
    "/vnf_instances/": "instance",
    "/vnf_lcm_op_occs/": "operation",
    "/kubevnfm/v1/operations/": "operation",
    "/vnf_packages/": "package",
    "/onboarded_vnf_packages/": "vnfd",
    "subscriptions/": "subscription",
    "/v1.0/vims/": "vim",
}
TIMEOUT_S: Final = 300.0

pytestmark = pytest.mark.timeout(3600 if EXAMPLES else 1800)


@pytest.fixture(scope="module")
def installation(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SingleInstallation]:
    """A separate installation, because the generated requests change its state."""
    running = SingleInstallation(
        tmp_path_factory.mktemp("fuzzed"), lab_process, KUBEVNFM_ALLOWED_NETWORKS="127.0.0.0/8"
    )
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def known(installation: SingleInstallation) -> Mapping[str, str]:
    """The ids of existing resources, by kind."""
    return asyncio.run(_made(installation))


async def _made(installation: SingleInstallation) -> Mapping[str, str]:
    async with User(installation) as user:
        await user.register_lab()
        instance = await user.create(await user.sample("vm"), metadata={"key": "value"})
        operation = await user.start(instance, "instantiate", sample_body("vm", "instantiate"))
        await user.rest(operation)
        packages = (await user.call("GET", "/vnfpkgm/v1/vnf_packages")).must(200).json
        return {
            "instance": instance,
            "operation": operation,
            "package": packages[0]["id"],
            "vnfd": packages[0]["vnfdId"],
            "vim": (await user.vims())["lab"]["id"],
        }


def _how_many() -> settings:
    return settings(
        max_examples=EXAMPLES or FEW,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )


def _id_of(path: str, known: Mapping[str, str]) -> str | None:
    return next((known[what] for part, what in KNOWN_BY_PATH.items() if part in path and what in known), None)


def test_no_request_breaks_anything_and_every_answer_is_as_documented(
    installation: SingleInstallation, known: Mapping[str, str]
) -> None:
    """API-011, API-152."""
    document = requests.get(f"{installation.url}/openapi.json", timeout=TIMEOUT_S).json()
    judge = Documented(document)
    schema = schemathesis.openapi.from_dict(document)
    asked = 0
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.path in ENDLESS:
            continue

        @_how_many()
        @given(case=operation.as_strategy(), is_known=st.booleans())
        def ask(case: Any, is_known: bool) -> None:
            nonlocal asked
            resource = _id_of(case.path, known)
            name = next((each for each in ("id", "vnfdId") if each in case.path_parameters), None)
            if is_known and resource is not None and name is not None:
                case.path_parameters[name] = resource
            answer = case.call(base_url=installation.url, timeout=TIMEOUT_S)
            asked += 1
            sent = f"{case.method} {case.formatted_path} {case.query} {case.headers} {_short(case.body)}"
            assert answer.status_code < 500 or answer.status_code == 504, f"{sent}: {answer.content[:500]!r}"
            path = answer.request.path_url
            # if the path has become another one for the server, no operation documents its response
            if case.path.count("/") == path.partition("?")[0].count("/"):
                judge.check(case.method, path, answer.status_code, _first(answer.headers), answer.content)

        ask()
    assert asked > FEW * 50


def _first(headers: Mapping[str, list[str]]) -> Mapping[str, str]:
    return {name.title(): values[0] for name, values in headers.items()}


def _short(body: Any) -> str:
    return "" if body is NOT_SET else json.dumps(body, default=repr)[:500]


def test_the_log_has_no_crash(installation: SingleInstallation) -> None:
    """Runs after the requests: the log would contain each unexpected error with its traceback."""
    (log,) = installation.log_files()
    assert "request_failed" not in Path(log).read_text(encoding="utf-8")
