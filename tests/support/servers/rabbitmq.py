"""A RabbitMQ node for tests: Debian's package, with its own name, folder, ports and Erlang port mapper."""

from __future__ import annotations

import json
import os
import runpy
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from needs import cannot_have

from servers.ports import free_port, listens

_PROGRAMS = Path("/usr/lib/rabbitmq/bin")
_DEFINITIONS = Path(__file__).parents[3] / "deploy" / "base" / "rabbitmq"
_TIMEOUT_S = 300.0
"""The limit of a start, a stop and a command: each boots an Erlang machine, which takes a minute beside many busy processes."""


def install() -> str | None:
    """Install RabbitMQ with apt if it is missing; return the reason if that fails, or None."""
    if (_PROGRAMS / "rabbitmq-server").exists():
        return None
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "rabbitmq-server is not installed, and only root can install it: apt-get install rabbitmq-server"
    # Debian would start a node of its own at once, on the public ports; "policy-rc.d says 101" is its way to refuse.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    done = subprocess.run(
        ["apt-get", "install", "-y", "-q", "--no-install-recommends", "rabbitmq-server"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return None if done.returncode == 0 else f"apt-get install rabbitmq-server: {done.stderr[-500:]}"


class RabbitServer:
    """One node. ``start`` and ``stop`` may be called repeatedly; its queues survive a stop."""

    def __init__(self, folder: Path, *, name: str | None = None, password: str | None = None) -> None:
        """The name and password of an earlier process give access to the queues that it left in the folder."""
        self._folder = folder
        self.port = free_port()
        self._distribution_port, self._epmd_port = free_port(), free_port()
        self._name = f"{name or f'test-{secrets.token_hex(4)}'}@localhost"
        self.user, self.password = "kubevnfm", password or secrets.token_hex(8)
        self._node: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        self._password_by_service: dict[str, str] = {}
        self._loaded: set[str] = set()

    @property
    def url(self) -> str:
        return self.url_for(self.user, self.password)

    @property
    def pids(self) -> list[int]:
        """The processes to stop: the node's group leader and the port mapper."""
        return [process.pid for process in (self._node, self._epmd) if process is not None]

    def url_for(self, user: str, password: str) -> str:
        return f"amqp://{user}:{password}@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the node; return when it accepts connections."""
        self._write_config()
        if self._epmd is None:
            self._epmd = subprocess.Popen(
                ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        with (self._folder / "console.log").open("ab") as console:
            self._node = subprocess.Popen(
                [_PROGRAMS / "rabbitmq-server"],
                env=self._environment(),
                cwd=self._folder,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        self._await_listener(self._node)

    @property
    def runs(self) -> bool:
        """Whether the node was started and has not been stopped since."""
        return self._node is not None

    def stop(self, *, kill: bool = False) -> None:
        """Stop the node in an orderly way or, with ``kill``, like a power cut."""
        if self._node is None:
            return
        # The script starts the Erlang machine as a child: both are in the group that start_new_session made.
        os.killpg(self._node.pid, signal.SIGKILL if kill else signal.SIGTERM)
        self._node.wait(timeout=_TIMEOUT_S)
        self._await_silence()
        self._node = None

    def close(self) -> None:
        """Stop the node and its port mapper."""
        self.stop(kill=True)
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(timeout=10)

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl on the node and return its output."""
        done = subprocess.run(
            [_PROGRAMS / "rabbitmqctl", "--node", self._name, "--quiet", *arguments],
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        assert done.returncode == 0, f"rabbitmqctl {arguments[0]}: {done.stderr}"
        return done.stdout

    def service_urls(self, vhost: str = "") -> Mapping[str, str]:
        """Load kubevnfm's definitions into a virtual host, once; return the URL of each service's own user, by service.

        The default is the virtual host ``/``; another one is created, and the administrator may use it too.
        """
        if vhost not in self._loaded:
            deployed = runpy.run_path(str(_DEFINITIONS / "users.py"))
            written = (_DEFINITIONS / "definitions.json").read_text(encoding="utf-8")
            definitions = json.loads(written.replace('"/"', json.dumps(vhost or "/")))
            for user in deployed["users_of"](definitions):
                self._password_by_service.setdefault(user, secrets.token_hex(8))
            complete = deployed["with_users"](definitions, self._password_by_service)
            everything = {"user": self.user, "vhost": vhost or "/", "configure": ".*", "write": ".*", "read": ".*"}
            complete["permissions"].append(everything)
            file = self._folder / "definitions.json"
            file.write_text(json.dumps(complete))
            self.control("import_definitions", str(file))
            self._loaded.add(vhost)
        return {user: self.url_for(user, word) + vhost for user, word in self._password_by_service.items()}

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self._folder),  # the Erlang cookie lives there
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": self._name,
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
            # Two schedulers at most, and no busy waiting: tests share the machine.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
        }

    def _write_config(self) -> None:
        (self._folder / "plugins").write_text("[].\n")
        (self._folder / "rabbitmq.conf").write_text(
            "\n".join(
                [
                    f"listeners.tcp.local = 127.0.0.1:{self.port}",
                    f"default_user = {self.user}",
                    f"default_pass = {self.password}",
                    "log.console = false",
                    "log.file.level = warning",
                    "disk_free_limit.absolute = 50MB",
                    "vm_memory_high_watermark.absolute = 500MB",
                    "",
                ]
            )
        )

    def _await_listener(self, node: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            assert node.poll() is None, f"rabbitmq-server ended; see {self._folder}/console.log"
            if listens(self.port):
                return
            time.sleep(0.05)
        raise AssertionError(f"rabbitmq-server does not listen after {_TIMEOUT_S} s")

    def _await_silence(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while listens(self.port) and time.monotonic() < deadline:
            time.sleep(0.05)


@pytest.fixture(scope="session")
def rabbitmq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    """A running node, shared by all tests of the session."""
    missing = install()
    if missing is not None:
        cannot_have(missing, on="RABBITMQ")
    server = RabbitServer(tmp_path_factory.mktemp("rabbitmq"))
    server.start()
    try:
        yield server
    finally:
        server.close()
