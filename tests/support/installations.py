"""kubevnfm installed in its two wirings, for tests that see it from outside only."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Final

from lab_process import LabProcess
from processes import PROJECT, Process, await_answer
from servers.ferretdb import FerretServer
from servers.ports import free_port
from servers.rabbitmq import RabbitServer
from six_processes import SERVICES, SixProcesses

PAGE_SIZE: Final = 10
"""What a list answers at once: small, so that a test of paging needs few documents."""
LEASE_S: Final = 2.0
"""How long a command stays a killed process's: short, so that tests of kills are."""


SUBSCRIBERS: Final = "127.0.0.0/8"
"""Where the tests' own subscribers listen."""


class Installation(ABC):
    """kubevnfm, running. Ended and started again it goes on where it was."""

    def __init__(self, folder: Path, lab: LabProcess) -> None:
        self.folder, self.lab = folder, lab
        self.vnfd_id_by_sample: dict[str, str] = {}
        """The sample packages that were uploaded already; see `user.User.sample`."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The gateway."""

    @property
    @abstractmethod
    def processes(self) -> tuple[str, ...]:
        """The names of what can be killed."""

    @abstractmethod
    def start(self) -> None:
        """Return when all is ready."""

    @abstractmethod
    def stop(self) -> None:
        """End all in good order."""

    @abstractmethod
    def kill(self, process: str) -> None:
        """End one process as a power cut would (SIGKILL)."""

    @abstractmethod
    def start_one(self, process: str) -> None:
        """Start one that was killed; return when it is ready."""

    @abstractmethod
    def stored_files(self) -> list[Path]:
        """Return every file that holds its documents, messages or packages' facts."""

    @abstractmethod
    def log_files(self) -> list[Path]:
        """Return every log that was written so far."""


class SingleInstallation(Installation):
    """One process, SQLite, the bus in process; ``settings`` are more of its environment."""

    def __init__(self, folder: Path, lab: LabProcess, **settings: str) -> None:
        super().__init__(folder, lab)
        folder.mkdir(parents=True, exist_ok=True)
        self._port = free_port()
        self._process = Process(
            "kubevnfm",
            [sys.executable, "-m", "kubevnfm.cli", "run"],
            log=folder / "kubevnfm.log",
            environment={
                "KUBEVNFM_PORT": str(self._port),
                "KUBEVNFM_DATA_DIR": str(folder / "data"),
                "KUBEVNFM_SSH_PORT": str(lab.ssh_port),
                "KUBEVNFM_PAGE_SIZE": str(PAGE_SIZE),
                "KUBEVNFM_LEASE_S": str(LEASE_S),
                "KUBEVNFM_CONFIG": os.devnull,
                "KUBEVNFM_ALLOWED_NETWORKS": SUBSCRIBERS,
                **settings,
            },
        )

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

    def start_one(self, process: str) -> None:
        self.start()

    def stored_files(self) -> list[Path]:
        return sorted((self.folder / "data").glob("kubevnfm.db*"))

    def log_files(self) -> list[Path]:
        return [self._process.log]


class SixInstallation(Installation):
    """Six processes, RabbitMQ, FerretDB."""

    def __init__(self, folder: Path, lab: LabProcess, rabbit: RabbitServer, ferret: FerretServer) -> None:
        super().__init__(folder, lab)
        self.rabbit, self._ferret = rabbit, ferret
        self._six = SixProcesses(
            folder,
            amqp_url=rabbit.url,
            mongo_url=ferret.url,
            ssh_port=lab.ssh_port,
            lease_s=LEASE_S,
            more={"lcm-api": {"PAGE_SIZE": str(PAGE_SIZE), "ALLOWED_NETWORKS": SUBSCRIBERS}},
        )

    @property
    def url(self) -> str:
        return self._six.url

    @property
    def processes(self) -> tuple[str, ...]:
        return SERVICES

    def start(self) -> None:
        self._six.start()
        self._ferret.index_ids()

    def stop(self) -> None:
        self._six.stop()

    def kill(self, process: str) -> None:
        self._six.kill(process)

    def start_one(self, process: str) -> None:
        self._six.start_one(process)

    def start_twin(self, process: str) -> tuple[str, Process]:
        """Start one more process of a service; return where it listens."""
        return self._six.start_twin(process)

    def stored_files(self) -> list[Path]:
        return sorted(self._ferret.folder.glob("kubevnfm_*.sqlite*"))

    def log_files(self) -> list[Path]:
        return sorted(self._six.logs.glob("*.log"))


class GivenInstallation(Installation):
    """One that somebody else runs, in containers for example: told by its address, and only used.

    ``$KUBEVNFM_E2E_URL`` is its gateway. ``$KUBEVNFM_E2E_LAB`` is what its lab tells when it starts, as JSON, with the
    ``control_url`` that is reached from here and the ``auth_url`` that is reached from there. Lists of it must be
    answered ``PAGE_SIZE`` at a time. ``$KUBEVNFM_E2E_CALLBACK_HOST``: see `subscriber`. Its files and logs are out of
    reach, and its passwords are words like any other, so ``test_secrets`` is not for it.
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
        """It runs already; look which samples an earlier run of the tests left there."""
        for request in (PROJECT / "deploy" / "samples").glob("*/requests/create.json"):
            vnfd_id = json.loads(request.read_text())["vnfdId"]
            query = f"{self._url}/vnfpkgm/v1/vnf_packages?filter=(eq,vnfdId,{vnfd_id})"
            with urllib.request.urlopen(query, timeout=10) as answer:
                if json.load(answer):
                    self.vnfd_id_by_sample[request.parents[1].name] = vnfd_id

    def stop(self) -> None:
        """It goes on."""

    def kill(self, process: str) -> None:
        raise AssertionError(f"{process} is not ours to kill")

    def start_one(self, process: str) -> None:
        raise AssertionError(f"{process} is not ours to start")

    def stored_files(self) -> list[Path]:
        return []

    def log_files(self) -> list[Path]:
        return []
