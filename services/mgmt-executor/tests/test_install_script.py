"""The package's install script by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from kubevnfm_mgmt_executor.domain.kubernetes.package import NEWEST, interface_of
from mgmt_lab import SAMPLE

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


def test_a_kernel_with_all_built_in_is_taken_as_it_is(tmp_path: Path) -> None:
    """No /proc/modules there, and br_netfilter shows by its settings only; it goes on until it wants curl's key."""
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
    }.items():
        (programs / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "p.env").write_text("NODE_NAME=a\nOWNER=me\nHOSTS_ENTRIES='192.0.2.1 a'\n")
    ran = run("prepare", "--params", str(tmp_path / "p.env"), sysroot=tmp_path, path=f"{programs}:{os.environ['PATH']}")
    url = "https://pkgs.k8s.io/core:/stable:/v1.31/deb/Release.key"
    assert f"download of the package repository's key from {url} ended with exit code 22" in ran.stderr


def test_an_unknown_task_shows_the_usage(tmp_path: Path) -> None:
    assert run("destroy", sysroot=tmp_path).returncode == 64
