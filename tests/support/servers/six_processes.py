"""The six services as separate processes, on RabbitMQ and a MongoDB-protocol server: for tests and ``make up``.

From the command line, ``python tests/support/servers/six_processes.py up|down|status``: keeps everything in ``.run/six``, the servers'
data too, so that a second ``up`` goes on where ``down`` ended.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import secrets
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from kubevnfm_clients.callback import PATH as CALLBACK_PATH
from kubevnfm_kit.settings import ProcessSettings
from kubevnfm_secrets import KeyRing

from servers import mongodb, rabbitmq
from servers.mongodb import MongoServer
from servers.ports import free_port
from servers.processes import PROJECT, Process, ProcessId, await_answer
from servers.rabbitmq import RabbitServer
from servers.vnf_networks import LOOPBACK

SERVICES: Final = tuple(sorted(path.parent.name for path in (PROJECT / "services").glob("*/pyproject.toml")))
_GATEWAY_PORT: Final = 9890
_FOR_KUBECONFIGS: Final = "credentials_token"
"""The setting with the token that vim-registry and credentials-receiver alone have."""


def package_of(service: str) -> str:
    """Return the name of the service's Python package."""
    return f"kubevnfm_{service.replace('-', '_')}"


def settings_of(service: str) -> type[ProcessSettings]:
    """Return the service's settings class."""
    found: type[ProcessSettings] = importlib.import_module(f"{package_of(service)}.settings").Settings
    return found


def _listener_prefix(service: str) -> str:
    """Return the prefix of HOST and PORT in the settings: some services have a listener for health checks only."""
    return "" if "port" in settings_of(service).model_fields else "HEALTH_"


class SixProcesses:
    """The six services, each with its own port, database and log file. All or one can be started and stopped repeatedly."""

    def __init__(
        self,
        folder: Path,
        *,
        amqp_url: str | Mapping[str, str],
        mongo_url: str,
        ssh_port: int = 22,
        vnf_networks: str = LOOPBACK,
        gateway_port: int = 0,
        lease_s: float = 15.0,
        keys: Mapping[str, str] | None = None,
        more: Mapping[str, Mapping[str, str]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``amqp_url``: one for all, whose user may configure the broker, or one for each service, of users that may not;
        ``keys`` are an earlier result of `new_keys`; ``more`` are further settings by service, named without prefix;
        ``tls`` is the context for requests to the services, if those settings enable TLS."""
        self._tls = tls
        self.folder = folder
        self.logs = folder / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)
        self.port_by_service = {service: free_port() for service in SERVICES}
        if gateway_port:
            self.port_by_service["lcm-api"] = gateway_port
        keys = keys or new_keys()
        shared = {
            **({"AMQP_URL": amqp_url} if isinstance(amqp_url, str) else {"AMQP_DECLARES": "false"}),
            "MONGO_URL": mongo_url,
            **{f"{service.replace('-', '_').upper()}_URL": self.url_of(service) for service in SERVICES},
            "LEASE_S": str(lease_s),
            "VNF_NETWORKS": vnf_networks,
            "TRUST_PACKAGES": "true",  # they are our own, and the tests must run on every kernel
            **keys,
        }
        tokens = {name: secrets.token_urlsafe(32) for name in (*SERVICES, _FOR_KUBECONFIGS)}
        own = {service: {} if isinstance(amqp_url, str) else {"AMQP_URL": amqp_url[service]} for service in SERVICES}
        self._settings = {
            service: self._settings_of(
                service,
                {**shared, **own[service], **_tokens_of(service, tokens)},
                ssh_port,
                (more or {}).get(service, {}),
            )
            for service in SERVICES
        }
        self._processes = {service: self._process(service, self._settings[service]) for service in SERVICES}

    @property
    def url(self) -> str:
        """The base URL of the gateway."""
        return self.url_of("lcm-api")

    @property
    def pids(self) -> dict[str, int]:
        """The running processes, by service."""
        return {service: process.pid for service, process in self._processes.items()}

    def start(self) -> None:
        """Start all services at once; return when each is ready."""
        for process in self._processes.values():
            process.start()
        for service in SERVICES:
            self.await_ready(service)

    def start_one(self, service: str) -> None:
        """Start one service; return when it is ready."""
        self._processes[service].start()
        self.await_ready(service)

    def start_twin(self, service: str) -> tuple[str, Process]:
        """Start one more process of a service beside its first, on the same queues and documents; return its URL and the process."""
        port = free_port()
        settings = {**self._settings[service], f"{_listener_prefix(service)}PORT": str(port)}
        twin = self._process(f"{service}-{port}", settings, service=service)
        twin.start()
        url = f"{'http' if self._tls is None else 'https'}://127.0.0.1:{port}"
        await_answer(f"{url}/health/ready", twin, context=self._tls)
        return url, twin

    def await_ready(self, service: str) -> None:
        """Return when the service reports that it is ready. Raises AssertionError with its log if it ends."""
        await_answer(f"{self.url_of(service)}/health/ready", self._processes[service], context=self._tls)

    def kill(self, service: str) -> None:
        """Kill one process (SIGKILL), like a power cut."""
        self._processes[service].kill()

    def stop(self) -> None:
        """Stop all processes in an orderly way, side by side."""
        with ThreadPoolExecutor(len(self._processes)) as threads:
            list(threads.map(Process.stop, self._processes.values()))

    def url_of(self, service: str) -> str:
        """Return the base URL of a service."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port_by_service[service]}"

    def _settings_of(
        self, service: str, shared: Mapping[str, str], ssh_port: int, more: Mapping[str, str]
    ) -> dict[str, str]:
        data_dir = self.folder / "data" / service
        listener = _listener_prefix(service)
        for_all = {
            **shared,
            "MONGO_DATABASE": package_of(service),
            f"{listener}HOST": "127.0.0.1",
            f"{listener}PORT": str(self.port_by_service[service]),
            "CACHE_DIR": str(data_dir / "cache"),
            "DATA_DIR": str(data_dir),
            **({**self._call_back(shared), "SSH_PORT": str(ssh_port)} if service == "mgmt-executor" else {}),
        }
        # A setting that a service does not have is an error there.
        fields = settings_of(service).model_fields
        return {**{name: value for name, value in for_all.items() if name.lower() in fields}, **more}

    def _call_back(self, shared: Mapping[str, str]) -> dict[str, str]:
        """Return where mgmt-executor sends the credentials of workload clusters, and the keys that the receiver knows."""
        return {
            "RECEIVER_URL": f"{self.url_of('credentials-receiver')}{CALLBACK_PATH}",
            "CALLBACK_MASTER_KEYS": shared["MASTER_KEYS"],
        }

    @property
    def environments(self) -> dict[str, dict[str, str]]:
        """The variables that each service was started with, by service; they have secrets."""
        return {service: _variables(service, self._settings[service]) for service in SERVICES}

    def _process(self, name: str, settings: Mapping[str, str], *, service: str | None = None) -> Process:
        return _process_of(name, self.logs, _variables(service or name, settings), service=service)


def _variables(service: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {f"{package_of(service).upper()}_{name}": value for name, value in settings.items()}


def _process_of(name: str, logs: Path, environment: Mapping[str, str], *, service: str | None = None) -> Process:
    command = [sys.executable, "-m", package_of(service or name)]
    return Process(name, command, log=logs / f"{name}.log", environment=environment)


def _tokens_of(service: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with the service's own token, and with those of the services that it calls."""
    fields = settings_of(service).model_fields
    asked = {peer: tokens[peer] for peer in SERVICES if f"{peer.replace('-', '_')}_url" in fields}
    return {
        **({_FOR_KUBECONFIGS.upper(): tokens[_FOR_KUBECONFIGS]} if _FOR_KUBECONFIGS in fields else {}),
        "INTERNAL_TOKEN": tokens[service],
        "PEER_TOKENS": ",".join(f"{peer}={token}" for peer, token in asked.items()),
    }


def new_keys() -> dict[str, str]:
    """Return new values for the secrets that all services share."""
    return {
        "KEYS": KeyRing.new_key(),
        "MASTER_KEYS": KeyRing.new_key(),
    }


# --- the command line -------------------------------------------------------------------------------------------------


def up(folder: Path, *, port: int, ssh_port: int) -> None:
    """Start servers and services and record their processes; those that run stay. Raises SystemExit with the reason if that fails."""
    running = _running(folder)
    if running:
        state = json.loads((folder / "state.json").read_text())
        dead = [name for name in state["processes"] if name not in running]
        if set(dead) <= set(SERVICES):
            _start_again(folder, state, dead)
            say(f"the gateway is at {state['url']}; `make down` stops it")
            return
        # The services know the ports of their servers, which are others after a start.
        say(f"{', '.join(dead)} ended unexpectedly: all is started again")
        down(folder)
    missing = rabbitmq.install() or mongodb.missing()
    if missing is not None:
        raise SystemExit(missing)
    if port and _is_taken(port):
        raise SystemExit(f"port {port} is in use: choose another with --port, or 0 for a free one")
    known = _stored_keys(folder / "keys.json")
    for name in ("rabbitmq", "mongodb"):
        (folder / name).mkdir(exist_ok=True)
    rabbit = RabbitServer(folder / "rabbitmq", name="kubevnfm", password=known.pop("BROKER_PASSWORD"))
    documents = MongoServer(folder / "mongodb")
    six: SixProcesses | None = None
    try:
        documents.start()
        rabbit.start()
        six = SixProcesses(
            folder,
            amqp_url=rabbit.service_urls(),
            mongo_url=documents.url,
            ssh_port=ssh_port,
            gateway_port=port,
            keys=known,
        )
        six.start()
    except AssertionError as error:
        if six is not None:
            six.stop()
        rabbit.close()
        documents.stop()
        raise SystemExit(f"did not start: {error}") from error
    pids = six.pids | {"rabbitmq": rabbit.pids[0], "mongodb": documents.pids[0], "epmd": rabbit.pids[1]}
    state = {
        "url": six.url,
        "processes": {name: vars(found) for name, pid in pids.items() if (found := ProcessId.find(pid)) is not None},
    }
    state |= {"ports": six.port_by_service, "environments": six.environments}
    _record(folder, state)
    say(f"the gateway is at {six.url}; logs are in {six.logs}; `make down` stops it")


def _start_again(folder: Path, state: dict[str, Any], dead: Sequence[str]) -> None:
    """Start services that have ended, as they were started before, and record them. Raises SystemExit if one does not start."""
    if not dead:
        say("all processes run")
    started = {name: _process_of(name, folder / "logs", state["environments"][name]) for name in dead}
    for name, process in started.items():
        say(f"{name} ended unexpectedly: started again; its log is {process.log}")
        process.start()
    try:
        for name, process in started.items():
            await_answer(f"http://127.0.0.1:{state['ports'][name]}/health/ready", process)
    except AssertionError as error:
        raise SystemExit(f"did not start: {error}") from error
    finally:
        pids = {name: ProcessId.find(process.pid) for name, process in started.items()}
        state["processes"] |= {name: vars(found) for name, found in pids.items() if found is not None}
        _record(folder, state)


def _record(folder: Path, state: Mapping[str, Any]) -> None:
    """Write what `up` has started; only the owner can read the file, which has the services' secrets."""
    path = folder / "state.json.new"
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(state, file, indent=2)
    path.replace(folder / "state.json")


def down(folder: Path) -> None:
    """Stop the processes that ``up`` started, and no others; the data remain."""
    running = _running(folder)
    # Stop the services first: they return unfinished work to the servers, which must still run.
    for name in sorted(running, key=lambda name: name not in SERVICES):
        running[name].end(group=name == "rabbitmq")
        say(f"{name} ended")
    (folder / "state.json").unlink(missing_ok=True)
    if not running:
        say("nothing is running")


def status(folder: Path) -> int:
    """Print the state of each process; return 0 if all run."""
    running = _running(folder)
    if not running:
        say("nothing is running: `make up` starts it")
        return 1
    state = json.loads((folder / "state.json").read_text())
    for name in state["processes"]:
        say(f"{name:<22} {f'pid {running[name].pid}' if name in running else 'ENDED UNEXPECTEDLY'}")
    say(f"gateway: {state['url']}")
    return 0 if len(running) == len(state["processes"]) else 1


def _running(folder: Path) -> dict[str, ProcessId]:
    """Return the recorded processes that still run."""
    path = folder / "state.json"
    if not path.exists():
        return {}
    recorded: dict[str, Any] = json.loads(path.read_text())["processes"]
    found = {name: ProcessId(**facts) for name, facts in recorded.items()}
    return {name: process for name, process in found.items() if process.is_alive}


def _stored_keys(path: Path) -> dict[str, str]:
    """Return the keys of this installation, created at the first call; only the owner can read the file."""
    if path.exists():
        return dict(json.loads(path.read_text()))
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {**new_keys(), "BROKER_PASSWORD": secrets.token_hex(16)}
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(known, file)
    return known


def _is_taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def say(line: str) -> None:
    """Print a line on the terminal."""
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("up", "down", "status"))
    parser.add_argument("--folder", type=Path, default=PROJECT / ".run" / "six", help="(default: %(default)s)")
    parser.add_argument(
        "--port", type=int, default=_GATEWAY_PORT, help="the port of the gateway; 0: a free one (default: %(default)s)"
    )
    parser.add_argument(
        "--ssh-port", type=int, default=22, help="the SSH port of the VNFs' machines (default: %(default)s)"
    )
    arguments = parser.parse_args()
    if arguments.command == "up":
        up(arguments.folder, port=arguments.port, ssh_port=arguments.ssh_port)
    elif arguments.command == "down":
        down(arguments.folder)
    else:
        return status(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
