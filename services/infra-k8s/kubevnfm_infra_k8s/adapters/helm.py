"""Renders Helm charts with the helm program (``helm template``), which asks no cluster and applies nothing.

Templates of a chart are code of the package, so the program runs confined as the package's own code does: without network, with
limits of memory and time, and with the files of the package alone.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from kubevnfm_clients.multicloud.errors import ChartRefused
from kubevnfm_events.objects import HelmChart
from kubevnfm_sandbox.foreign import NOT_EXECUTED, ForeignEnded, ForeignProgram, ProgramSandbox
from kubevnfm_sandbox.runs import Limits, SandboxState
from kubevnfm_secrets import KeyRing, Mask, map_secrets

from kubevnfm_infra_k8s.domain.charts import ChartTarget
from kubevnfm_infra_k8s.domain.errors import HelmMissing

_LARGEST_MIB: Final = 20
_LARGEST_TEMPLATE: Final = 2**20
_UNKNOWN_HOOK: Final = re.compile(r'skipping unknown hook(?:s"? hookTypes=|: )"?(?P<hooks>[^"\n]*)')
"""How Helm 4 and Helm 3 say that they leave out an object."""
_VERSION: Final = re.compile(r"v[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}[0-9A-Za-z.+-]{0,40}")
_SAID: Final = 4096
"""Characters of the program's own words in an error."""
_GC_SHARE: Final = 0.8
"""The part of the memory at which Go collects garbage as often as it can."""
_PROGRAM_EXPECTED: Final = "KUBEVNFM_INFRA_K8S_HELM must name the helm program itself, linked statically as its publisher's, not a script that calls it"
_GO_STATUS: Final = 2
_NO_MEMORY: Final = re.compile(r"^(fatal error|runtime): .*(out of memory|cannot allocate)", re.MULTILINE)
"""The last words of a program in Go that the kernel refuses more memory."""


class HelmProgram:
    """The helm program of this machine, version 3 or later."""

    def __init__(self, program: str, key_ring: KeyRing, limits: Limits, *, needs: Sequence[Path] = ()) -> None:
        """``program``: its path, or its name in ``PATH``; ``needs``: further files that it reads, if it is not linked statically."""
        self._program, self._key_ring, self._limits, self._needs = program, key_ring, limits, needs
        self._sandbox = ProgramSandbox(limits)
        self._versions: dict[tuple[str, float], str] = {}

    async def state(self) -> SandboxState:
        """Return how charts are rendered here; the log has the reason if they are not rendered or not confined."""
        return await self._sandbox.reported_state("Helm charts")

    async def why_missing(self) -> str:
        """Return why no chart can be rendered; "" if the program is there."""
        if shutil.which(self._program) is not None:
            return ""
        return f"a Helm chart needs the program {self._program}, which infra-k8s does not have"

    async def version(self) -> str:
        """Return the version of the program: ``v3.19.0``. Raises HelmMissing; SandboxUnavailable."""
        found = shutil.which(self._program)
        if found is None:
            raise HelmMissing(await self.why_missing())
        program = Path(found)
        key = found, (await asyncio.to_thread(program.stat)).st_mtime
        if key not in self._versions:
            asked = ["version", "--template", "{{.Version}}"]
            ended = await self._sandbox.run_program(
                ForeignProgram(program, asked, program, self._environment(), needs=self._needs, output_mib=1)
            )
            said = _VERSION.search(ended.stdout.decode(errors="replace")) if ended.status == 0 else None
            self._versions = {key: "of an unknown version" if said is None else said[0]}
        return self._versions[key]

    async def render(self, place: Path, chart: HelmChart, target: ChartTarget) -> str:
        """Return the manifests of the chart, its CRDs included. ``place``: its folder or archive.

        Raises: HelmMissing; SandboxUnavailable; ChartRefused with the program's own reason, without secrets.
        """
        program = shutil.which(self._program)
        if program is None:
            raise HelmMissing(await self.why_missing())
        secrets: list[str] = []

        def reveal(secret: Any) -> str:
            secrets.append(secret.reveal(self._key_ring))
            return secrets[-1]

        values = json.dumps(map_secrets(chart.values, reveal)).encode()
        ended = await self._sandbox.run_program(
            ForeignProgram(
                file=Path(program),
                arguments=_arguments(chart, target),
                package=place,
                environment=self._environment(),
                # From standard input, because others can read command lines, and files may outlive a power cut.
                stdin=values,
                needs=self._needs,
                output_mib=_LARGEST_MIB,
            )
        )
        if ended.status == NOT_EXECUTED:
            raise HelmMissing(f"{program} cannot be executed confined: {_PROGRAM_EXPECTED}")
        self._check(chart, ended, secrets)
        await self._check_hooks(place, chart, ended, secrets)
        return ended.stdout.decode(errors="replace")

    async def _check_hooks(self, place: Path, chart: HelmChart, ended: ForeignEnded, secrets: Sequence[str]) -> None:
        """Raise ChartRefused if helm has left out an object because it does not know its hook, as that of Helm 2 for definitions."""
        skipped = _UNKNOWN_HOOK.search(ended.said.decode(errors="replace"))
        if skipped is None:
            return
        named = _masked(skipped["hooks"], secrets)
        template = await asyncio.to_thread(_template_with, place, skipped["hooks"])
        named_at = f"{chart.path}: {template}" if template else chart.path
        raise ChartRefused(
            f"{named_at}: Helm does not know the hook {named}; the chart's folder crds takes definitions"
        )

    def _environment(self) -> dict[str, str]:
        # Nothing of the operator's own: no plugins, repositories or cluster.
        helm = {"HOME": "{room}", "XDG_CACHE_HOME": "{room}", "XDG_CONFIG_HOME": "{room}", "HELM_NO_PLUGINS": "1"}
        # Without signals among its threads, which the sandbox does not admit.
        go = {"GOMAXPROCS": "2", "GODEBUG": "asyncpreemptoff=1", "GOTRACEBACK": "none"}
        return {**helm, **go, "GOMEMLIMIT": f"{int(self._limits.memory_mib * _GC_SHARE)}MiB"}

    def _check(self, chart: HelmChart, ended: ForeignEnded, secrets: Sequence[str]) -> None:
        """Raise ChartRefused unless the chart was rendered."""
        said = ended.said.decode(errors="replace")
        if ended.timed_out:
            raise ChartRefused(f"{chart.path}: helm did not render the chart within {self._limits.timeout_s:g} s")
        if ended.is_cut:
            raise ChartRefused(f"{chart.path}: the chart makes more than {_LARGEST_MIB} MiB of manifests")
        if ended.status == _GO_STATUS and _NO_MEMORY.search(said):
            raise ChartRefused(f"{chart.path}: the chart needs more than {self._limits.memory_mib} MiB of memory")
        if ended.status != 0:
            raise ChartRefused(f"{chart.path}: {_masked(said, secrets) or f'helm ended with status {ended.status}'}")


def _arguments(chart: HelmChart, target: ChartTarget) -> Sequence[str]:
    return [
        *("template", chart.release_name, "{package}"),
        *("--namespace", target.namespace, "--include-crds"),
        *("--kube-version", target.kubernetes_version, "--api-versions", ",".join(target.api_versions)),
        *("--values", "-"),
    ]


def _template_with(chart: Path, text: str) -> str:
    """Return the template of a chart that has the text; "" if none is found, as in an archive."""
    for path in sorted((chart / "templates").rglob("*.yaml")) if chart.is_dir() else ():
        if path.stat().st_size <= _LARGEST_TEMPLATE and text in path.read_text(errors="replace"):
            return str(path.relative_to(chart))
    return ""


def _masked(said: str, secrets: Sequence[str]) -> str:
    return " ".join(Mask(secrets)(said).split())[:_SAID]
