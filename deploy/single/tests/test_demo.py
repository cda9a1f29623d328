"""The demos: each does its job on the lab and ends with an empty cloud."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from kubevnfm.client import GatewayClient
from kubevnfm.demo import DemoFailed, carry_out
from kubevnfm.demo_ha import Polls

SAMPLES = Path(__file__).parents[3] / ".run/samples"


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ((), ["INSTANTIATE COMPLETED", "vdu1: pod ", "TERMINATE COMPLETED"]),
        (
            ("--ha",),
            [
                "Persistent volumes: nfs-pv1, nfs-pv2",
                "SCALE COMPLETED",
                "HEAL COMPLETED",
                "The API has answered",
                "TERMINATE COMPLETED",
            ],
        ),
        (
            ("--capi",),
            [
                "step 1/6 ",
                "step 6/6 ",
                "controlPlane: machine openstack:///",
                "Its credentials came by a signed call: VIM ",
                "vdu1: pod ",
                "SCALE COMPLETED",
                "VIMs left: lab\n",
            ],
        ),
        (
            ("--multicloud",),
            [
                "region operator/plant-2: Kubernetes ",
                "link lan is READY, used by 3",
                "router-",
                "   operator/plant-2: READY\n",
                "reader has claim data in its namespace, bound to kubevnfm-",
                "volume data is deleted, its data are kept: nfs 192.0.2.9:/data",
                "third is gone, and its namespace",
            ],
        ),
    ],
)
def test_a_demo_reaches_its_end(arguments: tuple[str, ...], shown: list[str]) -> None:
    """CR-125: with --capi a workload cluster is built, called back, registered, used, scaled and terminated.

    MC-001, MC-013, MC-069, MC-071, MC-104, MC-107, MC-140: with --multicloud VNFs are brought up in two regions, also by one call, two share
    a link, and two use a volume one after the other.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "kubevnfm.cli", "demo", *arguments, "--samples", SAMPLES, "--node-seconds", "0.1"],
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [text for text in shown if text.casefold() not in ran.stdout.casefold()] == []
    assert "and the cloud is empty again" in ran.stdout


class Gone:
    """A client whose gateway goes away when it has accepted the operation."""

    url = "http://127.0.0.1:1"

    async def start(self, *_: object) -> str:
        return "operation"


async def test_a_gateway_that_goes_away_fails_the_demo_with_one_line() -> None:
    with pytest.raises(DemoFailed, match=r"^http://127\.0\.0\.1:1: "):
        await carry_out(cast("GatewayClient", Gone()), "vnf", "heal", {})


def test_one_variant_is_shown_at_a_time() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "kubevnfm.cli", "demo", "--ha", "--capi"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 2
    assert "--capi: not allowed with argument --ha" in ran.stderr


def test_calls_that_fail_in_a_row_are_counted_apart_from_single_ones() -> None:
    polls = Polls()
    for is_answered in (True, False, True, False, False, True):
        polls.count(is_answered=is_answered)
    assert (polls.made, polls.answered, polls.longest_row) == (6, 3, 2)
