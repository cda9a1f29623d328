"""A user of kubevnfm: only HTTP requests to the gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import aiohttp
from clouds.lab_process import LabProcess
from clouds.shown_resources import Inventory, disagreements
from patience import until
from real.real_cloud import REAL_CLOUD, RealCloud
from servers.installations import Installation
from servers.processes import PROJECT

from callers.documented import judge

ApiVersion = Literal["v1", "v2"]
VERSION: Final[Mapping[ApiVersion, str]] = {"v1": "1.3.0", "v2": "2.0.0"}
OPERATION_S: Final = 300.0 if REAL_CLOUD is None else 600.0
"""A generous limit for one operation."""
RESTING: Final = frozenset({"COMPLETED", "FAILED_TEMP", "FAILED", "ROLLED_BACK"})
CONSISTENT: Final = frozenset({"COMPLETED", "ROLLED_BACK"})
"""The states after which an instance shows exactly the resources that its VIM has."""
DRIFT: Final = "kubevnfm_drift"
"""The key of an instance's metadata that shows its drift."""
SAMPLES: Final = PROJECT / "deploy" / "samples"
PACKED: Final = PROJECT / ".run" / "samples"


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def detail(self) -> str:
        """The ``detail`` of a ProblemDetails."""
        return str(self.json["detail"])

    def must(self, status: int) -> Answer:
        """Return the answer itself. Raises AssertionError with the body if the status differs."""
        assert self.status == status, f"{status} expected, got {self.status}: {self.text[:2000]}"
        return self


class User:
    """A client of one API version. An async context manager."""

    def __init__(self, installation: Installation, version: ApiVersion = "v2", *, url: str | None = None) -> None:
        """``url``: the gateway to call, if the installation has several."""
        self.installation, self.version, self._url = installation, version, url or installation.url
        self.heard: list[str] = []
        """The headers and body of every response, for tests that search them."""
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=60, sock_connect=5)
        self._session = aiohttp.ClientSession(timeout=timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._open.close()

    @property
    def _open(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    # --- any call -----------------------------------------------------------------------------------------------------

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        """Send a request with exactly these headers and those of aiohttp; return the response whatever its status."""
        async with self._open.request(method, f"{self._url}{path}", json=body, data=data, headers=headers) as response:
            raw = await response.read()
            answer = Answer(response.status, response.headers, raw.decode(errors="replace"))
        judge(method, path, answer.status, answer.headers, raw)
        self.heard.append(f"{dict(answer.headers)} {answer.text}")
        return answer

    async def lcm(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Call below ``/vnflcm/<version>`` with the matching ``Version`` header."""
        sent = {"Version": VERSION[self.version], **(headers or {})}
        return await self.call(method, f"/vnflcm/{self.version}{path}", body, headers=sent)

    # --- packages -----------------------------------------------------------------------------------------------------

    async def upload(self, archive: Path | bytes) -> dict[str, Any]:
        """Create a package, upload its content, wait until it was checked; return the package, ONBOARDED or ERROR."""
        package = (await self.call("POST", "/vnfpkgm/v1/vnf_packages", {})).must(201).json
        return await self.upload_into(package["id"], archive)

    async def upload_into(self, package_id: str, archive: Path | bytes) -> dict[str, Any]:
        """Upload content into an existing package; return the package once the content was checked."""
        content = archive if isinstance(archive, bytes) else await asyncio.to_thread(archive.read_bytes)
        path = f"/vnfpkgm/v1/vnf_packages/{package_id}"
        sent = await self.call(
            "PUT", f"{path}/package_content", data=content, headers={"Content-Type": "application/zip"}
        )
        sent.must(202)

        async def checked() -> dict[str, Any] | None:
            package: dict[str, Any] = (await self.call("GET", path)).must(200).json
            return package if package["onboardingState"] in {"ONBOARDED", "ERROR"} else None

        return await until(checked)

    async def sample(self, name: str) -> str:
        """Return the VNFD id of a sample package, uploaded at the first call."""
        known = self.installation.vnfd_id_by_sample
        if name not in known:
            package = await self.upload(PACKED / f"{name}.zip")
            assert package["onboardingState"] == "ONBOARDED", package
            known[name] = package["vnfdId"]
        return known[name]

    # --- VNF instances ------------------------------------------------------------------------------------------------

    async def create(self, vnfd_id: str, **fields: Any) -> str:
        """Create a VNF instance; return its id."""
        made = (await self.lcm("POST", "/vnf_instances", {"vnfdId": vnfd_id, **fields})).must(201)
        return str(made.json["id"])

    async def instance(self, instance_id: str) -> dict[str, Any]:
        """Return a VNF instance."""
        shown: dict[str, Any] = (await self.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json
        return shown

    async def delete(self, instance_id: str) -> None:
        """Delete a VNF instance."""
        (await self.lcm("DELETE", f"/vnf_instances/{instance_id}")).must(204)

    def cluster(self, *, level: str = "smallest", request: str = "instantiate") -> dict[str, Any]:
        """Return the request for a cluster on the lab's machines; ``request``: ``instantiate_complex`` has three masters."""
        return cluster_body(self.installation.lab, level=level, request=request)

    async def vim_of_cluster(self, cluster_id: str) -> dict[str, Any]:
        """Return the entry of an instantiated cluster's ``vimConnectionInfo`` that CNFs are deployed on."""
        connections = (await self.instance(cluster_id))["vimConnectionInfo"].values()
        found: dict[str, Any] = next(each for each in connections if each["vimType"] == "ETSINFV.KUBERNETES.V_1")
        return found

    def on_vim(self, body: Mapping[str, Any], vim: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request for a CNF on that VIM, in the form of the user's API version."""
        named = {name: vim[name] for name in ("vimId", "vimType")}
        connections: Any = [{"id": "cluster", **named}] if self.version == "v1" else {"cluster": named}
        return {**body, "vimConnectionInfo": connections}

    # --- operations ---------------------------------------------------------------------------------------------------

    async def ask(self, instance_id: str, task: str, body: Mapping[str, Any]) -> Answer:
        """Request an operation; return the response, whatever its status."""
        return await self.lcm("POST", f"/vnf_instances/{instance_id}/{task}", body)

    async def start(self, instance_id: str, task: str, body: Mapping[str, Any]) -> str:
        """Request an operation that must be accepted; return the id of its occurrence."""
        accepted = (await self.ask(instance_id, task, body)).must(202)
        return accepted.headers["Location"].rsplit("/", 1)[-1]

    async def rest(self, operation_id: str, *, timeout_s: float = OPERATION_S) -> dict[str, Any]:
        """Wait until the operation rests, also while the gateway is unavailable; return kubevnfm's view of it.

        Raises AssertionError if it has succeeded and the instance shows other resources than the cloud has.
        """

        async def rests() -> dict[str, Any] | None:
            try:
                answer = await self.call("GET", f"/kubevnfm/v1/operations/{operation_id}")
            except (aiohttp.ClientError, TimeoutError):
                return None
            view: dict[str, Any] | None = answer.json if answer.status == 200 else None
            return view if view is not None and view["state"] in RESTING else None

        view = await until(rests, timeout_s=timeout_s)
        if view["state"] in CONSISTENT:
            await self._compare_with_cloud(view)
        return view

    async def _compare_with_cloud(self, view: dict[str, Any]) -> None:
        answer = await self.lcm("GET", f"/vnf_instances/{view['vnfInstanceId']}")
        # An instance with drift says itself that it differs.
        if answer.status == 200 and DRIFT not in answer.json.get("metadata", {}):
            wrong = disagreements(answer.json, await self._cloud())
            assert not wrong, f"after {view['operation']} {view['state']}: {wrong}"

    async def _cloud(self) -> Inventory:
        lab = self.installation.lab
        if isinstance(lab, RealCloud):
            return await lab.inventory()
        async with self._open.get(f"{lab.control_url}/inventory") as response:
            found: Inventory = await response.json()
            return found

    async def do(
        self, instance_id: str, task: str, body: Mapping[str, Any], *, timeout_s: float = OPERATION_S
    ) -> dict[str, Any]:
        """Carry out an operation that must complete; return kubevnfm's view of it."""
        view = await self.rest(await self.start(instance_id, task, body), timeout_s=timeout_s)
        assert view["state"] == "COMPLETED", json.dumps(view.get("error", view), indent=1)
        return view

    async def act(self, operation_id: str, action: str, *, timeout_s: float = OPERATION_S) -> dict[str, Any]:
        """Retry, roll back or fail an operation in FAILED_TEMP; return kubevnfm's view of it when it rests again."""
        (await self.lcm("POST", f"/vnf_lcm_op_occs/{operation_id}/{action}")).must(200 if action == "fail" else 202)
        return await self.rest(operation_id, timeout_s=timeout_s)

    async def occurrence(self, operation_id: str) -> dict[str, Any]:
        """Return the operation occurrence in the form of SOL003."""
        shown: dict[str, Any] = (await self.lcm("GET", f"/vnf_lcm_op_occs/{operation_id}")).must(200).json
        return shown

    async def drifted(self, instance_id: str, state: str | None) -> dict[str, Any]:
        """Return the instance's mark of drift once it has the state; None: an empty one once the mark is gone."""

        async def found() -> dict[str, Any] | None:
            mark: dict[str, Any] = (await self.instance(instance_id)).get("metadata", {}).get(DRIFT, {})
            return mark if mark.get("state") == state else None

        return await until(found)

    async def alarm(self, instance_id: str, *, is_open: bool) -> dict[str, Any]:
        """Wait until the only alarm of the instance is there, or is cleared; return it."""

        async def found() -> dict[str, Any] | None:
            path = f"/vnffm/v1/alarms?filter=(eq,managedObjectId,{instance_id})"
            alarms = (await self.call("GET", path, headers={"Version": "1.5.0"})).must(200).json
            assert len(alarms) < 2, alarms
            return next((each for each in alarms if ("alarmClearedTime" not in each) is is_open), None)

        return await until(found)

    async def log(self, operation_id: str) -> str:
        """Return the output of the machines."""
        return (await self.call("GET", f"/kubevnfm/v1/operations/{operation_id}/log")).must(200).text

    async def terminate(self, instance_id: str, *, forceful: bool = False) -> None:
        """Terminate and delete a VNF instance."""
        await self.do(instance_id, "terminate", GRACEFUL if not forceful else FORCEFUL)
        await self.delete(instance_id)

    # --- VIMs and events ----------------------------------------------------------------------------------------------

    async def vims(self) -> dict[str, dict[str, Any]]:
        """Return the registered VIMs by name."""
        listed = (await self.call("GET", "/v1.0/vims")).must(200).json["vims"]
        return {vim["name"]: vim for vim in listed}

    async def register_lab(self) -> None:
        """Register the lab's OpenStack as the default VIM, if it is not registered yet."""
        if "lab" not in await self.vims():
            (await self.call("POST", "/v1.0/vims", {"vim": self.installation.lab.vim()})).must(201)

    async def events(self, **query: str) -> AsyncIterator[dict[str, Any] | None]:
        """Yield server-sent events as they arrive; the first item is None and means that the stream is open."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        async with self._open.get(f"{self._url}/kubevnfm/v1/events", params=query, timeout=timeout) as response:
            assert response.status == 200
            async for raw in response.content:
                line = raw.decode().rstrip("\n")
                self.heard.append(line)
                if line == ": connected":
                    yield None
                elif line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


GRACEFUL: Final = {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0}
FORCEFUL: Final = {"terminationType": "FORCEFUL"}


def sample_body(sample: str, request: str) -> dict[str, Any]:
    """Return a request body of a sample package."""
    return dict(json.loads((SAMPLES / sample / "requests" / f"{request}.json").read_text()))


def cluster_body(lab: LabProcess, *, level: str = "smallest", request: str = "instantiate") -> dict[str, Any]:
    """Return an instantiate request of the sample cluster; ``smallest`` is one master and one worker."""
    body = {**sample_body("cluster", request), "instantiationLevelId": level}
    install = body["additionalParams"]["k8s_cluster_installation_param"]
    for role in ("master_node", "worker_node"):
        install[role]["password"] = lab.machine_password
    return body
