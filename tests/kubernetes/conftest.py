"""kubevnfm in one process, and the given cluster as a VIM; see docs/real-kubernetes.md."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from callers.user import User
from clouds.lab_process import LabProcess
from real.real_cluster import RealCluster
from real.real_cnfs import user_of
from servers.installations import Installation, SingleInstallation


@pytest.fixture(scope="session")
def short_lived(lab_process: LabProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """kubevnfm with a short limit for deletions, so that those that hang end soon, and with the paths of ONAP."""
    folder = tmp_path_factory.mktemp("single")
    running = SingleInstallation(
        folder, lab_process, KUBEVNFM_INFRA_K8S_GONE_TIMEOUT_S="20", KUBEVNFM_ONAP_COMPAT="true"
    )
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
async def cluster() -> AsyncIterator[RealCluster]:
    """The given cluster."""
    async with RealCluster() as given:
        yield given


@pytest.fixture
async def user(short_lived: Installation, cluster: RealCluster) -> AsyncIterator[User]:
    """A user of API version 2; the cluster is registered as a VIM."""
    async with user_of(short_lived, cluster) as caller:
        yield caller
