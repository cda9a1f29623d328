"""The stand-in programs: one module per family, each with its table of programs by name."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.machines.programs import (
    apt,
    docker,
    dpkg,
    fetch,
    host,
    kernel,
    kubeadm,
    kubectl,
    loadbalancer,
    pulls,
    runtime,
    storage,
    systemd,
)
from kubevnfm_lab.machines.programs.call import Program

PROGRAMS: Mapping[str, Program] = {
    name: program
    for family in (
        apt,
        docker,
        dpkg,
        fetch,
        host,
        kernel,
        kubeadm,
        kubectl,
        loadbalancer,
        pulls,
        runtime,
        storage,
        systemd,
    )
    for name, program in family.PROGRAMS.items()
}
