"""Renders Helm charts with the helm program (``helm template``), which asks no cluster and applies nothing."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubevnfm_events.infra import HelmChart
from kubevnfm_secrets import MASK, KeyRing, map_secrets

from kubevnfm_infra_k8s.domain.charts import ChartTarget
from kubevnfm_infra_k8s.domain.errors import ChartRefused, HelmMissing

_RENDER_S: Final = 60
"""Processor time and, four times, time by the clock: templates can loop for ever."""
_LARGEST: Final = 20 * 2**20
_SAID: Final = 4096
"""Characters of the program's own words in an error."""


class HelmProgram:
    """The helm program of this machine, version 3 or later."""

    def __init__(self, program: str, key_ring: KeyRing) -> None:
        """``program``: its path, or its name in ``PATH``."""
        self._program, self._key_ring = program, key_ring

    async def render(self, folder: Path, chart: HelmChart, target: ChartTarget) -> str:
        """Return the manifests of the chart, its CRDs included. ``folder``: the unpacked package.

        Raises: HelmMissing; ChartRefused with the program's own reason, without secrets.
        """
        program = shutil.which(self._program)
        if program is None:
            raise HelmMissing(f"a Helm chart needs the program {self._program}, which this machine does not have")
        secrets: list[str] = []

        def reveal(secret: Any) -> str:
            secrets.append(secret.reveal(self._key_ring))
            return secrets[-1]

        values = json.dumps(map_secrets(chart.values, reveal)).encode()
        command = [
            *(program, "template", chart.release_name, str(folder / chart.path)),
            *("--namespace", target.namespace, "--include-crds", "--skip-tests"),
            *("--kube-version", target.kubernetes_version, "--api-versions", ",".join(target.api_versions)),
            # From standard input, because others can read command lines, and files may outlive a power cut.
            *("--values", "-"),
        ]
        with TemporaryDirectory(prefix="helm-") as home:
            status, text, said = await _output(command, values, environment=_environment(home))
        if status != 0:
            raise ChartRefused(f"{chart.path}: {_masked(said, secrets) or f'helm ended with status {status}'}")
        return text


def _environment(home: str) -> Mapping[str, str]:
    # Nothing of the operator's own: no plugins, repositories or cluster.
    return {"HOME": home, "PATH": os.defpath, "HELM_NO_PLUGINS": "1", "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home}


async def _output(command: list[str], stdin: bytes, *, environment: Mapping[str, str]) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (_RENDER_S, _RENDER_S))
        async with asyncio.timeout(4 * _RENDER_S):
            written = asyncio.create_task(_write(process, stdin))
            said = asyncio.create_task(process.stderr.read(_LARGEST))
            text = await _read(process.stdout)
            await written
            status = await process.wait()
            return status, text.decode(errors="replace"), (await said).decode(errors="replace")
    except TimeoutError as error:
        raise ChartRefused(f"helm did not render the chart within {4 * _RENDER_S} s") from error
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


async def _write(process: asyncio.subprocess.Process, content: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(content)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        # A program that ends before it has read them says why.
        return
    finally:
        process.stdin.close()


async def _read(stream: asyncio.StreamReader) -> bytes:
    parts = bytearray()
    while part := await stream.read(2**16):
        parts += part
        if len(parts) > _LARGEST:
            raise ChartRefused(f"the chart makes more than {_LARGEST // 2**20} MiB of manifests")
    return bytes(parts)


def _masked(said: str, secrets: list[str]) -> str:
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        said = said.replace(secret, MASK)
    return " ".join(said.split())[:_SAID]
