"""Owners of leases: which of them are known to have ended."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest
from kubevnfm_kit.owners import Owners, ProcessName, container_in

THIS = replace(ProcessName.of_this(), host="one", container="c", boot="boot", namespace="pid:[1]")
ID = "0123456789abcdef" * 4
POD = "/var/lib/kubelet/pods/0a1b2c3d-0000-4000-8000-0123456789ab"


def owner_in(process: ProcessName | str) -> str:
    return f"vim-registry/some-id@{process}"


def test_an_owner_in_a_process_that_runs_has_not_ended() -> None:
    owners = Owners()
    assert not owners.has_ended(owners.new())
    assert not owners.has_ended(Owners().new())


def test_an_owner_in_a_process_that_has_ended_is_known() -> None:
    """Also while its parent has not asked yet how it has ended."""
    says = "from kubevnfm_kit.owners import Owners; print(Owners().new(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", says], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        owner = f"vim-registry/{one.stdout.readline().strip()}"
        assert not Owners().has_ended(owner)
        one.kill()
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        assert Owners().has_ended(owner)
    assert Owners().has_ended(owner)


@pytest.mark.parametrize(
    ("process", "has_ended"),
    [
        # Its process id was given to another one, here to this one.
        (replace(THIS, started="1"), True),
        (replace(THIS, namespace="pid:[2]"), True),
        (replace(THIS, namespace="pid:[2]", host="other"), False),
        (replace(THIS, namespace="pid:[2]", container="d"), False),
        (replace(THIS, namespace="", started="1"), False),
        (replace(THIS, namespace="pid:[2]", pid=THIS.pid + 1), False),
        (replace(THIS, boot="another", started="1"), False),
        (replace(THIS, boot="", started="1"), False),
        ("as earlier releases wrote it", False),
    ],
)
def test_what_one_process_knows_of_another(process: ProcessName | str, *, has_ended: bool) -> None:
    """A container that is started again has another namespace of process ids; other machines have another boot."""
    assert Owners(this=THIS).has_ended(owner_in(process)) == has_ended


def test_two_containers_with_one_host_name_are_not_taken_for_one() -> None:
    """As the replicas on one node are with ``hostNetwork``, or with ``hostname``, where nothing else names the container."""
    this, other = replace(THIS, container=""), replace(THIS, container="", namespace="pid:[2]")
    assert not Owners(this=this).has_ended(owner_in(other))


@pytest.mark.parametrize(
    ("mounts", "container"),
    [
        ([f"/var/lib/docker/containers/{ID}/hosts /etc/hosts", f"/docker/containers/{ID}/hostname /etc/hostname"], ID),
        ([f"/run/containers/storage/overlay-containers/{ID}/userdata/hosts /etc/hosts"], ID),
        (
            [
                f"{POD}/etc-hosts /etc/hosts",
                f"{POD}/containers/lcm-api/1a2b3c4d /dev/termination-log",
                f"/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/{ID}/resolv.conf /etc/resolv.conf",
            ],
            f"{POD.rpartition('/')[2]}/lcm-api",
        ),
        # The sandbox is that of all containers of the pod.
        ([f"{POD}/etc-hosts /etc/hosts", f"/sandboxes/{ID}/resolv.conf /etc/resolv.conf"], ""),
        ([f"{POD}/containers/a/1 /x", f"{POD}/containers/b/1 /y"], ""),
        (["/ /", "/etc/hosts /etc/hosts", f"/overlay2/{ID}/merged /mnt"], ""),
    ],
)
def test_a_container_is_named_by_what_is_mounted_in_it(mounts: list[str], container: str) -> None:
    lines = [f"612 598 254:1 {each} rw,relatime - ext4 /dev/vda1 rw\n" for each in mounts]
    assert container_in("".join(lines)) == container


def test_the_only_process_of_a_database_knows_that_all_others_have_ended() -> None:
    owners = Owners(is_alone=True)
    assert not owners.has_ended(owners.new())
    assert owners.has_ended(owner_in(replace(THIS, boot="another")))
    assert owners.has_ended("as-earlier-releases-wrote-it")


def test_a_name_is_read_as_it_was_written() -> None:
    assert ProcessName.read(str(THIS)) == THIS
