"""The package's install script by itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from kubevnfm_cluster.parameters import ROOT, ClusterParameters
from kubevnfm_events.mgmt import ManagedNode
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_mgmt_executor.adapters.own_files import OwnFiles
from kubevnfm_mgmt_executor.domain.kubernetes.cluster import Cluster
from kubevnfm_mgmt_executor.domain.kubernetes.package import MARKER, NEWEST, TASKS_SINCE, interface_of, read_script
from worlds.mgmt_lab import SAMPLE

SCRIPT = SAMPLE / "Scripts/install_k8s_cluster.sh"


def run(*arguments: str, sysroot: Path, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": path or os.environ["PATH"], "KUBEVNFM_SYSROOT": str(sysroot)}
    return subprocess.run(
        ["bash", str(SCRIPT), *arguments],
        env=environment, capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip


def test_it_says_which_interface_it_has() -> None:
    assert interface_of(SCRIPT.read_bytes()) == NEWEST


@pytest.mark.parametrize(
    ("text", "interface"),
    [
        (b"#!/bin/bash\n# kubevnfm-install-script: 1\n", 1),
        (b"#!/bin/bash\n# kubevnfm-install-script: 2 \n", 2),
        (b"#!/bin/bash\n# kubevnfm-install-script: x\n", 0),
        (b"#!/bin/bash\n" + b"#\n" * 10 + b"# kubevnfm-install-script: 1\n", 0),
        (b"", 0),
    ],
)
def test_the_interface_of_a_script_stands_in_its_head(text: bytes, interface: int) -> None:
    assert interface_of(text) == interface


def test_each_task_belongs_to_an_interface() -> None:
    listed = re.findall(r"^  ([a-z_ |]+)\) shift ;;$", SCRIPT.read_text(), re.MULTILINE)
    assert sorted(" | ".join(listed).split(" | ")) == sorted(task for tasks in TASKS_SINCE.values() for task in tasks)


@dataclass(frozen=True)
class _Package:
    script: bytes

    async def read(self, _: str) -> bytes | None:
        return self.script


UNDECLARED = SCRIPT.read_bytes().replace(MARKER + b"%d\n" % NEWEST, b"")


def a_cluster(**changes: str) -> Cluster:
    login = {"ssh_cp_name": "CP1", "username": "ubuntu", "password": "x"}
    parameters = {"script_path": "x", "master_node": {**login, "cluster_cp_name": "CP1"}, "worker_node": login}
    master = ManagedNode(vnfc_id="v1", role="master", ssh_address="10.0.0.1", nic_address="10.0.0.1", is_target=False)
    return Cluster(
        vnf_instance_id="i",
        parameters=ClusterParameters.model_validate({**parameters, **changes}),
        reveal=str,
        masters=[master],
        workers=[],
        name_by_vnfc={"v1": "master1"},
        address="10.0.0.1",
        public_address=None,
        node_mask=24,
    )


async def test_the_packages_script_takes_the_place_of_the_drivers_own_only_if_it_is_asked_for() -> None:
    """SEQ-005: and runs although it does not declare its interface."""
    package = _Package(UNDECLARED)
    found = await read_script(package, OwnFiles(), a_cluster())
    assert (found.script, found.remarks) == (
        SCRIPT.read_bytes(),
        ("x of the package has another interface and is not run: the driver's own script works on the nodes",),
    )
    found = await read_script(package, OwnFiles(), a_cluster(x_install_script="package"))
    assert (found.script, found.remarks) == (
        UNDECLARED,
        ("x of the package declares no interface and is run as x_install_script asks",),
    )
    declared = await read_script(_Package(SCRIPT.read_bytes()), OwnFiles(), a_cluster(x_install_script="package"))
    assert (declared.script, declared.remarks) == (SCRIPT.read_bytes(), ())


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (b"#!/bin/bash\n# kubevnfm-install-script: 1\n", "x of the package has interface 1, and 2 to 5 is needed"),
        (b"#!/bin/bash\nwhile getopts m:w: opt; do init; done\n", "cannot be run: no task prepare, network, admin, "),
        (re.sub(rb"\bdrain\b", b"empty", UNDECLARED), "another interface and cannot be run: no task drain"),
    ],
)
async def test_a_script_that_cannot_have_the_interface_is_not_run_though_it_is_asked_for(
    script: bytes, reason: str
) -> None:
    with pytest.raises(Unprocessable) as refused:
        await read_script(_Package(script), OwnFiles(), a_cluster(x_install_script="package"))
    assert refused.value.field == f"{ROOT}/x_install_script"
    assert reason in str(refused.value)


SEEN_FROM_A_MASTER = [
    ('echo \'{"health":"false","reason":"RAFT NO LEADER"}\'', "fd00::11:2380", "", "etcd cannot work (RAFT NO LEADER): its members on m2, m3 do not answer"),
    ("exit 7", "", "", "etcd does not run on this machine: nothing listens at http://[::1]:2381"),
    ("exit 28", "", "", "kube-apiserver does not run on this machine"),
    ("echo '{}'", "", "2026-11-28T05:00:00Z stderr F Error: unknown flag: --x\n", "kube-apiserver does not run on this machine: unknown flag: --x"),
    ("echo '{}'", "fd00::11:6443", "", "the virtual address fd00::1 does not answer: on this machine, haproxy does not run"),
    ("echo '{}'", "fd00::11:6443 fd00::1:16443", "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("health", "listening", "log", "fault"), SEEN_FROM_A_MASTER)
def test_a_master_says_why_the_api_of_its_cluster_is_away(
    tmp_path: Path, health: str, listening: str, log: str, fault: str
) -> None:
    """SEQ-005: from below, as each part needs the one before; the addresses are IPv6."""
    programs = {
        "kubectl": "exit 1",
        "curl": f"[[ ${{*: -1}} == 'http://[::1]:2381/health' ]] || exit 99; {health}",
        "timeout": f'[[ " {listening} " == *" $5:$6 "* ]]',  # 2 bash -c ... ADDRESS PORT
        "systemctl": "[[ $3 == keepalived ]]",
    }
    for name, text in programs.items():
        file = tmp_path / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)
    pods = "var/log/pods/kube-system_kube-apiserver-m1_1/kube-apiserver/4.log"
    files = {
        "etc/kubernetes/admin.conf": "    server: https://[fd00::1]:16443\n",
        "etc/kubernetes/manifests/etcd.yaml": "    - --listen-metrics-urls=http://[::1]:2381\n",
        "etc/kubernetes/manifests/kube-apiserver.yaml": "    - --advertise-address=fd00::11\n",
        "etc/haproxy/haproxy.cfg": "".join(f"  server m{n} [fd00::1{n}]:6443\n" for n in (1, 2, 3)),
        **({pods: log} if log else {}),
        "p.env": "TIMEOUT_S=0\n",
    }
    for place, text in files.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    arguments = ("facts", "--params", str(tmp_path / "p.env"), "--result", str(tmp_path / "r.json"))
    ran = run(*arguments, sysroot=tmp_path, path=f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert ran.returncode == 1
    said = "the API server at https://[fd00::1]:16443 does not answer within 0 s" + (f": {fault}" if fault else "")
    assert read_foreign((tmp_path / "r.json").read_bytes())["error"] == said


def test_shellcheck_finds_nothing() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is missing")
    ran = subprocess.run([program, "-s", "bash", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert ran.stdout == ""


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ("NODE_NAME='a; reboot'", "parameter NODE_NAME"),
        ("NODE_NAME=a\nHTTP_PROXY_URL='http://a\" b'", "parameter HTTP_PROXY_URL"),
        ("NODE_NAME=a\nNO_PROXY_LIST='$(x)'", "parameter NO_PROXY_LIST"),
        ("NODE_NAME=a\nKUBERNETES_VERSION=latest", "parameter KUBERNETES_VERSION"),
    ],
)
def test_a_value_of_another_form_is_refused_by_name(tmp_path: Path, values: str, complaint: str) -> None:
    (tmp_path / "p.env").write_text(values + "\n")
    ran = run("prepare", "--params", str(tmp_path / "p.env"), "--result", str(tmp_path / "r.json"), sysroot=tmp_path)
    assert ran.returncode == 1
    assert complaint in ran.stderr
    assert complaint in (tmp_path / "r.json").read_text()


def test_another_operating_system_is_refused(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID=debian\nVERSION_ID="11"\n')
    (tmp_path / "p.env").write_text("NODE_NAME=a\n")
    ran = run("prepare", "--params", str(tmp_path / "p.env"), sysroot=tmp_path)
    assert ran.returncode == 1
    assert "operating system debian 11: Ubuntu 22.04 or 24.04, or Debian 12 expected" in ran.stderr


def test_a_kernel_with_all_built_in_is_taken_as_it_is_and_swap_of_systemd_stays_off(tmp_path: Path) -> None:
    """SEQ-193. No /proc/modules there, and br_netfilter shows by its settings only; it goes on until it wants curl's key."""
    own, units = tmp_path / "etc/systemd/system", ["swapfile.swap", "dev-zram0.swap", r"dev-disk-by\x2duuid-1.swap"]
    folders = [own, tmp_path / "run/systemd/generator", tmp_path / "run/systemd/generator.late"]
    for folder, unit in zip(folders, units, strict=True):
        folder.mkdir(parents=True)
        (folder / unit).write_text("[Swap]\n")
    for file, text in {
        "etc/os-release": 'ID=ubuntu\nVERSION_ID="22.04"\n',
        "etc/hostname": "a\n",
        "etc/hosts": "127.0.0.1 localhost\n",
        "etc/fstab": "",
        "proc/swaps": "Filename\tType\tSize\tUsed\tPriority\n",
        "proc/sys/net/ipv4/ip_forward": "1\n",
        "proc/sys/net/bridge/bridge-nf-call-iptables": "1\n",
        "proc/sys/net/bridge/bridge-nf-call-ip6tables": "1\n",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    (tmp_path / "sys/module/overlay").mkdir(parents=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, code in {
        "modprobe": 97,
        "sysctl": 98,
        "dpkg-query": 0,
        "cloud-init": 0,
        "curl": 22,
        "apt-get": 96,
        "systemctl": 0,
    }.items():
        (programs / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "p.env").write_text("NODE_NAME=a\nOWNER=me\nHOSTS_ENTRIES='192.0.2.1 a'\n")
    ran = run("prepare", "--params", str(tmp_path / "p.env"), sysroot=tmp_path, path=f"{programs}:{os.environ['PATH']}")
    url = "https://pkgs.k8s.io/core:/stable:/v1.31/deb/Release.key"
    assert f"download of the package repository's key from {url} ended with exit code 22" in ran.stderr
    for unit in [*units, "swap.target"]:
        assert (own / unit).readlink() == Path("/dev/null"), unit


def test_an_unknown_task_shows_the_usage(tmp_path: Path) -> None:
    assert run("destroy", sysroot=tmp_path).returncode == 64


def test_a_master_that_has_joined_is_never_reset(tmp_path: Path) -> None:
    """Its member of etcd is part of the majority."""
    marks, params = tmp_path / "var/lib/kubevnfm", tmp_path / "reset.env"
    marks.mkdir(parents=True)
    (marks / "join").write_text("cluster-1\n")
    params.write_text("OWNER='cluster-1'\nNODE_NAME='master11'\n")
    (tmp_path / "etc/kubernetes").mkdir(parents=True)
    (tmp_path / "etc/kubernetes/kubelet.conf").write_text("joined\n")

    done = run("reset", "--params", str(params), sysroot=tmp_path)

    assert done.returncode == 1
    assert "master11 has joined the cluster: a complete master is not reset" in done.stderr


def test_a_kubelet_that_does_not_run_is_named_after_a_failed_join(tmp_path: Path) -> None:
    """SEQ-045. The journal is that of a kubelet with a wrong argument; kubeadm names only what it did not get."""
    journal = 'Started kubelet.service.\nE1128 02:14:31.089485     977 run.go:72] "command failed" err="failed to parse kubelet flag: unknown flag: --x"\n'
    programs, config = tmp_path / "programs", tmp_path / "var/lib/kubelet/config.yaml"
    for folder in (programs, config.parent):
        folder.mkdir(parents=True)
    for name, text in {
        "kubeadm": f"echo 'error: rate limiter'; : >{config}; exit 1",
        "systemctl": "exit 3",
        "journalctl": f"cat {tmp_path}/journal",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "journal").write_text(journal)
    values = f"NODE_NAME=a\nNODE_IP=192.0.2.1\nOWNER=me\nENDPOINT=192.0.2.1:6443\nCA_CERT_HASH=sha256:{'0' * 64}\nCONTROL_PLANE=false\n"
    (tmp_path / "p.env").write_text(f"{values}JOIN_TOKEN=abcdef.{'0' * 16}\nTIMEOUT_S=9\n")
    ran = run("join", "--params", str(tmp_path / "p.env"), sysroot=tmp_path, path=f"{programs}:{os.environ['PATH']}")
    why = "join: the kubelet is not running: command failed: failed to parse kubelet flag: unknown flag: --x"
    assert ran.stderr.splitlines()[:2] == [why, "join: kubeadm join to https://192.0.2.1:6443 ended with exit code 1"]
