"""`make up` repairs what is half there: services that died are started again, with a server that died everything is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from servers.processes import PROJECT, ProcessId

pytestmark = pytest.mark.deep


def run(folder: Path, command: str, *, code: int = 0) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "servers.six_processes", command, "--folder", str(folder), "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "tests" / "support")},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout


def state_of(folder: Path) -> dict[str, Any]:
    state: dict[str, Any] = json.loads((folder / "state.json").read_text())
    return state


def kill(folder: Path, *names: str) -> None:
    for name in names:
        process = ProcessId(**state_of(folder)["processes"][name])
        assert process.is_alive
        os.kill(process.pid, signal.SIGKILL)


def test_up_repairs_what_has_died(tmp_path: Path) -> None:
    folder = tmp_path / "six"
    try:
        run(folder, "up")
        before = state_of(folder)
        assert (folder / "state.json").stat().st_mode & 0o777 == 0o600
        assert "all processes run" in run(folder, "up")
        assert state_of(folder) == before

        kill(folder, "infra-k8s", "lcm-api")
        assert run(folder, "status", code=1).count("ENDED UNEXPECTEDLY") == 2
        assert "infra-k8s ended unexpectedly: started again" in run(folder, "up")
        again = state_of(folder)
        changed = {name for name in before["processes"] if again["processes"][name] != before["processes"][name]}
        assert (changed, again["url"]) == ({"infra-k8s", "lcm-api"}, before["url"])
        run(folder, "status")

        kill(folder, "mongodb")
        assert "mongodb ended unexpectedly: all is started again" in run(folder, "up")
        assert set(state_of(folder)["processes"]) == set(before["processes"])
        run(folder, "status")
    finally:
        run(folder, "down")
