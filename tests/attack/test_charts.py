"""Hostile Helm charts: their templates are code of the package, so the program that renders them is confined as user data is."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contracts.sandbox_kernel import KERNELS, Kernel, needs_confinement
from kubevnfm_clients.multicloud.errors import ChartRefused
from kubevnfm_events.objects import HelmChart
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.domain.charts import ChartTarget
from kubevnfm_infra_k8s.domain.errors import HelmMissing
from kubevnfm_infra_k8s.settings import Settings
from kubevnfm_sandbox.runs import Limits, SandboxUnavailable
from kubevnfm_secrets import KeyRing, Secret
from pydantic import ValidationError

HELM = os.environ.get("KUBEVNFM_TEST_HELM") or shutil.which("helm")
TARGET = ChartTarget("default", "v1.34.1", ("v1", "apps/v1"))
CHART = HelmChart(path="Files/web", release_name="vnf1", values={"port": 0, "secret": ""})
BEGINNING = """\
import json, os, socket, sys
given = json.load(sys.stdin)
def tried(what):
    try:
        return str(what())
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


def package(folder: Path, **templates: str) -> Path:
    chart = folder / "Files" / "web"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: web, version: 1.0.0}\n")
    for name, text in templates.items():
        (chart / "templates" / f"{name}.yaml").write_text(text)
    return folder


async def rendered(folder: Path, program: str, limits: Limits, **values: Any) -> str:
    helm = HelmProgram(program, KeyRing.from_text(KeyRing.new_key()), limits)
    return await helm.render(folder, CHART.model_copy(update={"values": values}), TARGET)


@pytest.fixture
def gateway() -> Iterator[int]:
    """Yield the port of a listener on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield int(listener.getsockname()[1])


class StandIn:
    """A program in the place of helm that does what an attacker would have helm do."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "helm"
        self._package = package(folder / "package")

    async def run(self, code: str, limits: Limits, **values: Any) -> Any:
        """Return ``result`` of the code."""
        text = f"#!{Path(sys.executable).resolve()}\n{BEGINNING}{code}\nprint(json.dumps(result))\n"
        self._program.write_text(text, encoding="utf-8")
        self._program.chmod(0o755)
        return json.loads(await rendered(self._package, str(self._program), limits, **values))


@pytest.fixture
def stand_in(tmp_path: Path) -> StandIn:
    needs_confinement()
    return StandIn(tmp_path)


CONFINED = Limits(timeout_s=20)


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"])
async def test_a_chart_has_no_network(stand_in: StandIn, family: str) -> None:
    code = f"result = tried(lambda: socket.socket(socket.{family}, socket.SOCK_STREAM))"
    assert "Function not implemented" in await stand_in.run(code, CONFINED)


async def test_a_chart_reaches_no_listener_of_the_machine(stand_in: StandIn, gateway: int) -> None:
    """CR-127."""
    code = "result = tried(lambda: socket.create_connection(('127.0.0.1', given['port']), 5))"
    assert "Function not implemented" in await stand_in.run(code, CONFINED, port=gateway)


async def test_a_chart_reads_nothing_of_the_service(stand_in: StandIn, tmp_path: Path) -> None:
    """CR-127."""
    ring = tmp_path / "keys.json"
    ring.write_text("the-key")
    ring.chmod(0o644)
    code = "result = [tried(lambda: open(path).read()) for path in given['paths']] + [sorted(os.environ)]"
    paths = [str(ring), f"/proc/{os.getpid()}/environ", "/etc/passwd", "/proc/self/environ"]
    *files, names = await stand_in.run(code, CONFINED, paths=paths)
    assert all("No such file" in said for said in files), files
    assert not [name for name in names if "KUBEVNFM" in name]


async def test_a_chart_writes_to_its_own_folder_only(stand_in: StandIn) -> None:
    code = """
result = [tried(lambda: open(path, "w").write("x")) for path in ("/package/Chart.yaml", "/written-by-a-chart", os.environ["HOME"] + "/x")]
"""
    at_package, at_root, at_home = await stand_in.run(code, CONFINED)
    assert "OSError" in at_package or "PermissionError" in at_package
    assert "PermissionError" in at_root or not Path("/written-by-a-chart").exists()
    assert at_home == "1"


async def test_a_chart_starts_no_process(stand_in: StandIn) -> None:
    assert "not implemented" in await stand_in.run("result = tried(os.fork)", CONFINED)


async def test_a_chart_that_never_ends_is_ended(stand_in: StandIn) -> None:
    with pytest.raises(ChartRefused, match=r"Files/web: helm did not render the chart within 1 s"):
        await stand_in.run("while True: pass", Limits(timeout_s=1))


async def test_a_chart_of_endless_manifests_is_refused(stand_in: StandIn) -> None:
    """CR-127."""
    with pytest.raises(ChartRefused, match=r"Files/web: the chart makes more than 20 MiB of manifests"):
        await stand_in.run("while True: sys.stdout.write('x' * 2**20)", CONFINED)


async def test_what_writes_to_more_memory_than_it_may_is_ended(stand_in: StandIn) -> None:
    code = "held = tried(lambda: bytearray(2**30))\nresult = held[:20]"
    assert await stand_in.run(code, CONFINED) == "MemoryError: "


@pytest.mark.parametrize(
    ("said", "status", "shown"),
    [
        ("fatal error: runtime: out of memory", 2, "the chart needs more than 512 MiB of memory"),
        ("runtime: mmap(0xc000, 8192): cannot allocate memory", 2, "the chart needs more than 512 MiB of memory"),
        # The chart's own words.
        ("fatal error: runtime: out of memory", 1, "fatal error: runtime: out of memory"),
        ("Error: fatal error: runtime: out of memory", 2, "Error: fatal error: runtime: out of memory"),
    ],
)
async def test_the_last_words_of_a_program_without_memory_are_known(
    stand_in: StandIn, said: str, status: int, shown: str
) -> None:
    with pytest.raises(ChartRefused) as refusal:
        await stand_in.run(f"sys.stderr.write({said + chr(10)!r})\nsys.exit({status})", CONFINED)
    assert str(refusal.value) == f"Files/web: {shown}"


async def test_a_chart_gets_an_environment_without_anything_of_the_operators(stand_in: StandIn) -> None:
    environment, arguments = await stand_in.run("result = [dict(os.environ), sys.argv[1:]]", CONFINED)
    room = environment.pop("HOME")
    assert {environment.pop(name) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME")} == {room}
    environment.pop("LC_CTYPE", None)  # Python's own
    assert environment == {
        "HELM_NO_PLUGINS": "1",
        "GOMAXPROCS": "2",
        "GODEBUG": "asyncpreemptoff=1",
        "GOTRACEBACK": "none",
        "GOMEMLIMIT": "409MiB",
    }
    assert arguments == [
        *("template", "vnf1", "/package", "--namespace", "default", "--include-crds"),
        *("--kube-version", "v1.34.1", "--api-versions", "v1,apps/v1", "--values", "-"),
    ]


@pytest.mark.parametrize("length", range(1, 12))
async def test_an_error_of_a_chart_shows_no_part_of_a_secret(stand_in: StandIn, length: int) -> None:
    """The end of a long error is kept, and begins within the secret here."""
    code = f"""
sys.stderr.write("sw0rdfish11" + "x" * (2**16 - {length}))
sys.exit(1)
"""
    with pytest.raises(ChartRefused, match="x") as refusal:
        await stand_in.run(code, CONFINED, password=Secret("sw0rdfish11"))
    assert not re.search("[^x]xxxx", str(refusal.value).removeprefix("Files/web: "))


async def test_a_chart_cannot_speak_for_the_sandbox(stand_in: StandIn) -> None:
    """Its output is the manifests, whatever it says about the confinement."""
    assert await stand_in.run("result = {'unconfined': 'set trust_packages'}", CONFINED) == {
        "unconfined": "set trust_packages"
    }


@pytest.mark.parametrize("part", ["namespaces", "mounts", "seccomp"])
async def test_a_chart_is_not_rendered_where_the_kernel_refuses_to_confine_it(tmp_path: Path, part: str) -> None:
    needs_confinement()
    limits = Limits(without=frozenset({part}))
    with pytest.raises(SandboxUnavailable, match=f"refuses {part}.*trust_packages"):
        await StandIn(tmp_path).run("result = 1", limits)


async def test_a_script_in_the_place_of_helm_is_refused_by_its_setting(tmp_path: Path) -> None:
    """CR-127: it worked while helm was not confined."""
    script = tmp_path / "helm"
    script.write_text('#!/no/such/shell\nexec /opt/helm "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    with pytest.raises(ValidationError, match="helm is a script, which cannot run confined"):
        Settings(internal_token="t", keys="k", helm=str(script))
    with pytest.raises(HelmMissing, match="KUBEVNFM_INFRA_K8S_HELM must name the helm program itself"):
        await rendered(package(tmp_path / "package", a="a: 1"), str(script), CONFINED)


# --- helm itself ------------------------------------------------------------------------------------------------------

needs_helm = pytest.mark.skipif(
    HELM is None, reason="NOT TESTED, there is no helm program (KUBEVNFM_TEST_HELM names one)"
)


@needs_helm
@pytest.mark.parametrize("kernel", KERNELS)
async def test_helm_renders_a_chart(tmp_path: Path, kernel: str) -> None:
    assert HELM is not None
    folder = package(tmp_path, a='a: {{ .Values.port }}-{{ .Release.Name }}-{{ .Files.Get "notes.txt" }}')
    (folder / "Files" / "web" / "notes.txt").write_text("nine")
    text = await rendered(folder, HELM, Kernel(kernel).limits(timeout_s=30), port=7)
    assert "a: 7-vnf1-nine" in text


@needs_helm
async def test_helm_renders_an_archive(tmp_path: Path) -> None:
    assert HELM is not None
    folder = package(tmp_path, a="a: {{ .Values.port }}")
    with tarfile.open(tmp_path / "web.tgz", "w:gz") as archive:
        archive.add(folder / "Files" / "web", "web")
    shutil.rmtree(folder / "Files" / "web")
    (tmp_path / "web.tgz").replace(folder / "Files" / "web").chmod(0o600)
    assert "a: 8" in await rendered(folder, HELM, Kernel("confined").limits(timeout_s=30), port=8)


@needs_helm
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "template",
    [
        '{{ repeat 1000000000 "x" }}',
        pytest.param("{{ range until 100000000 }}x{{ end }}", marks=pytest.mark.deep),
        pytest.param('{{ range until 100 }}{{ repeat 90000000 "x" }}{{ end }}', marks=pytest.mark.deep),
    ],
    ids=["repeat", "until", "many"],
)
async def test_a_chart_that_needs_too_much_memory_is_refused(tmp_path: Path, kernel: str, template: str) -> None:
    """CR-127: without harm: the kernel refuses the memory to helm alone."""
    assert HELM is not None
    with pytest.raises(ChartRefused, match=r"Files/web: the chart needs more than 512 MiB of memory"):
        await rendered(package(tmp_path, a=template), HELM, Kernel(kernel).limits(timeout_s=30))


@needs_helm
async def test_a_chart_that_loops_is_refused(tmp_path: Path) -> None:
    assert HELM is not None
    loop = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    with pytest.raises(ChartRefused, match="did not render the chart within 2 s"):
        await rendered(package(tmp_path, a=loop), HELM, Kernel("confined").limits(timeout_s=2))
