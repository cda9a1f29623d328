"""Installations of kubevnfm in both wirings, for tests that use only its external interfaces."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clouds.lab_process import LabProcess

from servers.mongodb import MongoServer
from servers.ports import free_port
from servers.processes import PROJECT, Process, await_answer
from servers.rabbitmq import RabbitServer
from servers.six_processes import SERVICES, SixProcesses

PAGE_SIZE: Final = 10
"""The page size of lists: small, so that a test of paging needs few documents."""
DRIFT_EVERY_S: Final = 5.0
"""How often deleted resources are looked for: often, to keep tests of it short, and not more, because each look reads all idle
instances."""
LEASE_S: Final = 2.0
"""The time after which another process takes over a killed process's command: short, to keep kill tests short."""

AUTOMATIC: Final[Mapping[str, str]] = {
    "AUTOMATIC_HEAL_AFTER_S": "2",
    "AUTOMATIC_HEAL_COOLDOWN_S": "0",
    "AUTOMATIC_SCALE_COOLDOWN_S": "0",
    "PM_SAMPLE_S": "1",
    "PM_SAMPLE_DELAY_S": "1",
    "THRESHOLD_PERIOD_S": "1",
}
"""The pauses of automatic operations and of measurements: short, and none between scalings."""
SUBSCRIBERS: Final = "127.0.0.0/8"
"""The network in which the tests' own subscribers listen."""


class Installation(ABC):
    """A running kubevnfm. Its state survives a stop and a start."""

    def __init__(self, folder: Path, lab: LabProcess) -> None:
        self.folder, self.lab = folder, lab
        self.vnfd_id_by_sample: dict[str, str] = {}
        """The sample packages that were uploaded already; see `user.User.sample`."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The base URL of the gateway."""

    @property
    @abstractmethod
    def processes(self) -> tuple[str, ...]:
        """The names of the processes that `kill` accepts."""

    @abstractmethod
    def start(self) -> None:
        """Start every process; return when all are ready."""

    @abstractmethod
    def stop(self) -> None:
        """Stop every process in an orderly way."""

    @abstractmethod
    def kill(self, process: str) -> None:
        """End one process as a power cut would (SIGKILL)."""

    @abstractmethod
    def start_one(self, process: str) -> None:
        """Start a killed process again; return when it is ready."""

    def kill_all(self) -> None:
        """End all processes as a power cut would."""
        for process in self.processes:
            self.kill(process)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables by which a backup finds the data; they have secrets."""
        raise AssertionError("the tests did not start it")

    @abstractmethod
    def stored_files(self) -> list[Path]:
        """Return every file that stores documents, messages or facts about packages."""

    @abstractmethod
    def log_files(self) -> list[Path]:
        """Return every log file that exists."""


class SingleInstallation(Installation):
    """One process with SQLite and the in-process bus; ``settings`` are additional environment variables."""

    def __init__(self, folder: Path, lab: LabProcess, **settings: str) -> None:
        super().__init__(folder, lab)
        folder.mkdir(parents=True, exist_ok=True)
        self._port = int(settings.get("KUBEVNFM_PORT") or free_port())
        self._settings = {
            "KUBEVNFM_PORT": str(self._port),
            "KUBEVNFM_DATA_DIR": str(folder / "data"),
            "KUBEVNFM_SSH_PORT": str(lab.ssh_port),
            "KUBEVNFM_PAGE_SIZE": str(PAGE_SIZE),
            "KUBEVNFM_LEASE_S": str(LEASE_S),
            "KUBEVNFM_DRIFT_EVERY_S": str(DRIFT_EVERY_S),
            **{f"KUBEVNFM_{name}": value for name, value in AUTOMATIC.items()},
            "KUBEVNFM_CONFIG": os.devnull,
            # The packages are our own, and the tests must run on every kernel.
            "KUBEVNFM_TRUST_PACKAGES": "true",
            "KUBEVNFM_ALLOWED_NETWORKS": SUBSCRIBERS,
            "KUBEVNFM_VNF_NETWORKS": lab.vnf_networks,
            **settings,
        }
        command = [sys.executable, "-m", "kubevnfm.cli", "run"]
        self._process = Process("kubevnfm", command, log=folder / "kubevnfm.log", environment=self._settings)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def processes(self) -> tuple[str, ...]:
        return ("kubevnfm",)

    def start(self) -> None:
        self._process.start()
        await_answer(f"{self.url}/health/ready", self._process)

    def stop(self) -> None:
        self._process.stop()

    def kill(self, process: str) -> None:
        self._process.kill()

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: self._settings[name] for name in ("KUBEVNFM_DATA_DIR", "KUBEVNFM_CONFIG")}

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._process.pid

    def start_one(self, process: str) -> None:
        self.start()

    def stored_files(self) -> list[Path]:
        return sorted((self.folder / "data").glob("kubevnfm.db*"))

    def log_files(self) -> list[Path]:
        return [self._process.log]


class SixInstallation(Installation):
    """Six processes with RabbitMQ and mongo-java-server."""

    def __init__(self, folder: Path, lab: LabProcess, rabbit: RabbitServer, mongodb: MongoServer) -> None:
        super().__init__(folder, lab)
        self.rabbit, self._mongodb = rabbit, mongodb
        self._six = SixProcesses(
            folder,
            amqp_url=rabbit.service_urls(),
            mongo_url=mongodb.url,
            ssh_port=lab.ssh_port,
            vnf_networks=lab.vnf_networks,
            lease_s=LEASE_S,
            more={
                "lcm-api": {
                    "PAGE_SIZE": str(PAGE_SIZE),
                    "ALLOWED_NETWORKS": SUBSCRIBERS,
                    "DRIFT_EVERY_S": str(DRIFT_EVERY_S),
                    **AUTOMATIC,
                }
            },
        )

    @property
    def url(self) -> str:
        return self._six.url

    @property
    def environment(self) -> Mapping[str, str]:
        return {name: value for each in self._six.environments.values() for name, value in each.items()}

    @property
    def listeners(self) -> Mapping[str, tuple[int, int]]:
        """The port and the pid of each service."""
        pids = self._six.pids
        return {service: (self._six.port_by_service[service], pids[service]) for service in SERVICES}

    @property
    def processes(self) -> tuple[str, ...]:
        return SERVICES

    def start(self) -> None:
        self._six.start()

    def stop(self) -> None:
        self._six.stop()

    def kill(self, process: str) -> None:
        self._six.kill(process)

    def start_one(self, process: str) -> None:
        self._six.start_one(process)

    def start_twin(self, process: str) -> tuple[str, Process]:
        """Start one more process of a service; return its URL and the process."""
        return self._six.start_twin(process)

    def stored_files(self) -> list[Path]:
        return [] if self._mongodb.file is None else [self._mongodb.file]

    def log_files(self) -> list[Path]:
        return sorted(self._six.logs.glob("*.log"))


class GivenInstallation(Installation):
    """An installation that runs already, for example in containers. The tests use it but do not start or stop it.

    ``$KUBEVNFM_E2E_URL`` is the URL of its gateway, which must know the host in it (loopback, or ``allowed_hosts``).
    ``$KUBEVNFM_E2E_LAB`` is the JSON that its lab prints at its start; ``control_url`` must be reachable from the tests
    and ``auth_url`` from the installation. The page size of its lists must be ``PAGE_SIZE``. For
    ``$KUBEVNFM_E2E_CALLBACK_HOST`` see `subscriber`. Its files and logs cannot be read, and its passwords are common
    words, so ``test_secrets`` skips it.
    """

    def __init__(self, folder: Path, lab: LabProcess, url: str) -> None:
        super().__init__(folder, lab)
        self._url = url.rstrip("/")

    @property
    def url(self) -> str:
        return self._url

    @property
    def processes(self) -> tuple[str, ...]:
        return ()

    def start(self) -> None:
        """Look up the samples that an earlier test run has uploaded; the installation runs already."""
        for request in (PROJECT / "deploy" / "samples").glob("*/requests/create.json"):
            vnfd_id = json.loads(request.read_text())["vnfdId"]
            query = f"{self._url}/vnfpkgm/v1/vnf_packages?filter=(eq,vnfdId,{vnfd_id})"
            with urllib.request.urlopen(query, timeout=10) as answer:
                if json.load(answer):
                    self.vnfd_id_by_sample[request.parents[1].name] = vnfd_id

    def stop(self) -> None:
        """Do nothing: the installation keeps running."""

    def kill(self, process: str) -> None:
        raise AssertionError(f"cannot kill {process}: the tests did not start it")

    def start_one(self, process: str) -> None:
        raise AssertionError(f"cannot start {process}: the tests do not manage it")

    def stored_files(self) -> list[Path]:
        return []

    def log_files(self) -> list[Path]:
        return []
