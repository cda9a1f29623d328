"""SIGKILL of any process, and restarts of the broker, at every step: all completes without help, nothing exists twice.

A sweep is one run with a hit at each step. ``make test`` runs the sweeps that hit the services in turn, the broker and
the single process. ``make test-chaos`` runs everything: each service at each step, in sweeps and in runs with one hit.
"""

from __future__ import annotations

import pytest
from clouds.holds import INSTANTIATE_CLUSTER, INSTANTIATE_CNF, TERMINATE_CLUSTER, TERMINATE_CNF, Hold
from servers.chaos import BROKER, IN_TURN, Chaos
from servers.six_processes import SERVICES

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(600)]


async def test_services_killed_in_turn_at_the_steps_of_cluster_and_cnf_harm_nothing(six_chaos: Chaos) -> None:
    """API-061: a round over the six services; ``deep`` tests hit each of them at all steps."""
    cluster_id = await six_chaos.build_cluster(IN_TURN, INSTANTIATE_CLUSTER[::2])
    cnf_id = await six_chaos.build_cnf(cluster_id, IN_TURN, INSTANTIATE_CNF[:1])
    await six_chaos.end_cnf(cnf_id, cluster_id, IN_TURN, TERMINATE_CNF[:1])
    await six_chaos.end_cluster(cluster_id, IN_TURN, TERMINATE_CLUSTER[:1])


@pytest.mark.deep
@pytest.mark.parametrize("process", SERVICES)
async def test_a_process_killed_at_each_step_of_cluster_and_cnf_harms_nothing(six_chaos: Chaos, process: str) -> None:
    """SEQ-180, API-061: six processes."""
    cluster_id = await six_chaos.build_cluster(process)
    cnf_id = await six_chaos.build_cnf(cluster_id, process)
    await six_chaos.end_cnf(cnf_id, cluster_id, process)
    await six_chaos.end_cluster(cluster_id, process)


async def test_a_broker_that_restarts_during_instantiate_harms_nothing(six_chaos: Chaos) -> None:
    """While the first master is installed; ``deep`` tests hit at all steps."""
    cluster_id = await six_chaos.build_cluster(BROKER, [INSTANTIATE_CLUSTER[4]])
    await six_chaos.end_cluster(cluster_id, BROKER, [])


async def test_the_one_process_killed_at_some_steps_goes_on_where_it_was(single_chaos: Chaos) -> None:
    """The single process with its data folder; ``deep`` tests hit at all steps."""
    cluster_id = await single_chaos.build_cluster("kubevnfm", INSTANTIATE_CLUSTER[1::5])
    await single_chaos.end_cluster(cluster_id, "kubevnfm", TERMINATE_CLUSTER[1:2])


@pytest.mark.deep
async def test_the_one_process_killed_at_each_step_goes_on_where_it_was(single_chaos: Chaos) -> None:
    """The single process with its data folder."""
    cluster_id = await single_chaos.build_cluster("kubevnfm")
    cnf_id = await single_chaos.build_cnf(cluster_id, "kubevnfm")
    await single_chaos.end_cnf(cnf_id, cluster_id, "kubevnfm")
    await single_chaos.end_cluster(cluster_id, "kubevnfm")


TARGETS = (*SERVICES, BROKER)


@pytest.mark.deep
@pytest.mark.parametrize("hold", INSTANTIATE_CLUSTER, ids=lambda hold: hold.name)
@pytest.mark.parametrize("target", TARGETS)
async def test_instantiate_of_a_cluster_survives(six_chaos: Chaos, target: str, hold: Hold) -> None:
    cluster_id = await six_chaos.build_cluster(target, [hold])
    await six_chaos.end_cluster(cluster_id, target, [])


@pytest.mark.deep
@pytest.mark.parametrize("hold", TERMINATE_CLUSTER, ids=lambda hold: hold.name)
@pytest.mark.parametrize("target", TARGETS)
async def test_terminate_of_a_cluster_survives(six_chaos: Chaos, target: str, hold: Hold) -> None:
    cluster_id = await six_chaos.build_cluster(target, [])
    await six_chaos.end_cluster(cluster_id, target, [hold])


@pytest.mark.deep
@pytest.mark.parametrize("hold", [*INSTANTIATE_CNF, *TERMINATE_CNF], ids=lambda hold: hold.name)
@pytest.mark.parametrize("target", TARGETS)
async def test_a_cnf_survives(six_chaos: Chaos, target: str, hold: Hold) -> None:
    cluster_id = await six_chaos.build_cluster(target, [])
    cnf_id = await six_chaos.build_cnf(cluster_id, target, [hold] if hold in INSTANTIATE_CNF else [])
    await six_chaos.end_cnf(cnf_id, cluster_id, target, [hold] if hold in TERMINATE_CNF else [])
    await six_chaos.end_cluster(cluster_id, target, [])
