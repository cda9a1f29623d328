"""The pods that the chart describes, as processes on loopback: their arguments, environment, files and probes.

Three things differ from a cluster: a name of a Service becomes a port of loopback, a mounted folder but /tmp is below the folder of the test, and
of what confines containers there is only the root that cannot be written, where the test may mount.
"""

from __future__ import annotations

import base64
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from clouds.lab_process import LabProcess
from servers.installations import Installation
from servers.ports import free_port
from servers.processes import PROJECT, Process, await_answer

COMPONENT: Final = "app.kubernetes.io/component"
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True)
class Container:
    """A container that can be run as a process."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    probes: Mapping[str, Mapping[str, Any]]
    tmp: Path | None
    """The folder that is /tmp in it."""


class Cluster:
    """The objects of a release, and those that its user has made, with what a cluster makes of them."""

    def __init__(self, objects: Sequence[Mapping[str, Any]], folder: Path) -> None:
        self._objects = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        self._folder = folder
        self.port_by_service = {name: free_port() for kind, name in self._objects if kind == "Service"}

    def named(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """Return the objects of a kind, by name."""
        return {name: one for (found, name), one in self._objects.items() if found == kind}

    def container(self, owner: str, template: Mapping[str, Any]) -> Container:
        """Return the one container of a pod. ``owner`` names its Deployment or Job."""
        (one,) = template["spec"]["containers"]
        folder_by_path = self._mounted(owner, template["spec"], one)
        environment = {
            name: self._on_loopback(value, folder_by_path) for name, value in self._environment(one["env"]).items()
        }
        for port in one.get("ports", ()):
            own = str(self.port_by_service[owner])
            environment |= {
                name: own
                for name, value in environment.items()
                if name.endswith("_PORT") and value == str(port["containerPort"])
            }
        arguments = [self._on_loopback(argument, folder_by_path) for argument in one["args"]]
        probes = {name: one[f"{name}Probe"] for name in ("startup", "liveness", "readiness") if f"{name}Probe" in one}
        given = [sys.executable if each == "python" else each for each in arguments]
        return Container(given, environment, probes, folder_by_path.get("/tmp"))

    def _environment(self, variables: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """Resolve references, and ``$(NAME)`` by variables that stand before, as the kubelet does."""
        found: dict[str, str] = {}
        for variable in variables:
            if "valueFrom" in variable:
                found[variable["name"]] = self._referenced(variable["valueFrom"])
            else:
                found[variable["name"]] = re.sub(
                    r"\$\((\w+)\)", lambda match: found.get(match[1], match[0]), variable["value"]
                )
        return found

    def _referenced(self, source: Mapping[str, Any]) -> str:
        ((form, reference),) = source.items()
        kind = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}[form]
        return self._content(kind, reference["name"])[reference["key"]].decode()

    def _content(self, kind: str, name: str) -> dict[str, bytes]:
        one = self._objects[kind, name]
        if kind == "ConfigMap":
            return {key: text.encode() for key, text in one["data"].items()}
        return {
            **{key: base64.b64decode(text) for key, text in one.get("data", {}).items()},
            **{key: text.encode() for key, text in one.get("stringData", {}).items()},
        }

    def _mounted(self, owner: str, pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, Path]:
        """Make the folders of the volumes; return each by its path in the container."""
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        found = {}
        for mount in container["volumeMounts"]:
            volume, folder = volumes[mount["name"]], self._folder / owner / mount["name"]
            folder.mkdir(parents=True, exist_ok=True)
            content: Mapping[str, bytes] = {}
            if "secret" in volume:
                content = self._content("Secret", volume["secret"]["secretName"])
            elif "configMap" in volume:
                content = self._content("ConfigMap", volume["configMap"]["name"])
            elif "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in self.named("PersistentVolumeClaim")
            else:
                assert "emptyDir" in volume
            for name, data in content.items():
                (folder / name).write_bytes(data)
            found[mount["mountPath"]] = folder
        return found

    def _on_loopback(self, value: str, folder_by_path: Mapping[str, Path]) -> str:
        for path, folder in folder_by_path.items():
            value = re.sub(rf"(?<![\w.-]){re.escape(path)}(?=/|$)", str(folder), value)
        for name, service in self.named("Service").items():
            for port in service["spec"]["ports"]:
                value = value.replace(f"//{name}:{port['port']}", f"//127.0.0.1:{self.port_by_service[name]}")
        return value


def with_fixed_root(container: Container) -> list[str]:
    """Return the command of a container; where the test may mount, with a root that cannot be written and a /tmp of its own."""
    tmp = container.tmp
    if tmp is None or not may_mount() or tmp.is_relative_to("/tmp"):
        return list(container.arguments)
    mounts = 'mount --bind "$0" /tmp && mount -o remount,bind,ro / && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, str(tmp), *container.arguments]


@cache
def may_mount() -> bool:
    """Return whether a process of the test can have mounts of its own."""
    command = ["unshare", "--mount", "--propagation", "private", "mount", "-o", "remount,bind,ro", "/"]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


class PodProcesses(Installation):
    """The Deployments of a release as processes."""

    def __init__(self, folder: Path, lab: LabProcess, objects: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(folder, lab)
        self.cluster = Cluster(objects, folder)
        (folder / "logs").mkdir(parents=True, exist_ok=True)
        self.containers: dict[str, Container] = {}
        self._name_by_service: dict[str, str] = {}
        self._processes: dict[str, Process] = {}
        for name, deployment in self.cluster.named("Deployment").items():
            service = deployment["metadata"]["labels"][COMPONENT]
            container = self.cluster.container(name, deployment["spec"]["template"])
            self.containers[service], self._name_by_service[service] = container, name
            self._processes[service] = Process(
                service,
                with_fixed_root(container),
                log=folder / "logs" / f"{service}.log",
                environment=container.environment,
            )

    @property
    def url(self) -> str:
        return self._url_of("lcm-api")

    @property
    def processes(self) -> tuple[str, ...]:
        return tuple(self._processes)

    def run_jobs(self) -> list[str]:
        """Run the Jobs to their end; return what they print."""
        said = []
        for name, job in self.cluster.named("Job").items():
            container = self.cluster.container(name, job["spec"]["template"])
            done = subprocess.run(
                container.arguments, env={"PATH": os.environ["PATH"], **container.environment},
                capture_output=True, text=True, check=False, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            said.append(done.stdout)
        return said

    def start(self) -> None:
        for process in self._processes.values():
            process.start()
        for service in self._processes:
            self._await_probes(service)

    def stop(self) -> None:
        with ThreadPoolExecutor(len(self._processes)) as threads:
            list(threads.map(Process.stop, self._processes.values()))

    def kill(self, process: str) -> None:
        self._processes[process].kill()

    def start_one(self, process: str) -> None:
        self._processes[process].start()
        self._await_probes(process)

    def stored_files(self) -> list[Path]:
        return []

    def log_files(self) -> list[Path]:
        return sorted((self.folder / "logs").iterdir())

    def _await_probes(self, service: str) -> None:
        """Return when each probe succeeds, as the kubelet asks it: it verifies no certificate, and has none."""
        for probe in self.containers[service].probes.values():
            if "exec" in probe:
                self._await_command(service, probe["exec"]["command"])
                continue
            get = probe["httpGet"]
            assert get["scheme"].lower() == self._scheme_of(service)
            await_answer(f"{self._url_of(service)}{get['path']}", self._processes[service], context=_unverified())

    def _await_command(self, service: str, command: Sequence[str]) -> None:
        programs = {"python": sys.executable, "/opt/kubevnfm/healthy.py": str(PROJECT / "deploy/base/healthy.py")}
        port = str(self.cluster.port_by_service[self._name_by_service[service]])
        # The image has its port in its environment.
        environment = {**self.containers[service].environment, "KUBEVNFM_HEALTH_PORT": port, "PATH": os.environ["PATH"]}
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            done = subprocess.run(
                [programs.get(each, each) for each in command], env=environment, capture_output=True, text=True, check=False,
                timeout=_PATIENCE_S,
            )  # fmt: skip
            if done.returncode == 0:
                return
            self._processes[service].check()
            assert time.monotonic() < deadline, f"{service}: {done.stderr}"
            time.sleep(0.05)

    def _scheme_of(self, service: str) -> str:
        """Return whether the process listens with TLS."""
        has_tls = any(name.endswith("_TLS_KEY") for name in self.containers[service].environment)
        return "https" if has_tls else "http"

    def _url_of(self, service: str) -> str:
        return f"{self._scheme_of(service)}://127.0.0.1:{self.cluster.port_by_service[self._name_by_service[service]]}"


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
