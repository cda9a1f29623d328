"""Every message of a whole run is delivered twice: nothing exists twice, nobody is told anything new."""

from __future__ import annotations

import pytest
from broker import everything_twice
from chaos import Chaos
from installations import SixInstallation
from subscriber import Subscriber

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]
NOBODY = ""


async def test_every_message_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """Issue 2: cluster, its VIM, a CNF on it, and all down again; the subscriber hears each fact once."""
    assert isinstance(six_chaos.installation, SixInstallation)
    user = six_chaos.user
    async with everything_twice(six_chaos.installation.rabbit) as doubled, Subscriber.listening() as subscriber:
        subscription = await user.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})
        cluster_id = await six_chaos.build_cluster(NOBODY, [])
        cnf_id = await six_chaos.build_cnf(cluster_id, NOBODY, [])
        await six_chaos.end_cnf(cnf_id, cluster_id, NOBODY, [])
        await six_chaos.end_cluster(cluster_id, NOBODY, [])
        heard = await subscriber.has_heard(cluster_id, 8)
        (await user.lcm("DELETE", f"/subscriptions/{subscription.json['id']}")).must(204)
    ids = [each["id"] for each in heard]
    assert len(ids) == len(set(ids))
    assert [each.get("operationState") for each in heard] == [
        None, "STARTING", "PROCESSING", "COMPLETED", "STARTING", "PROCESSING", "COMPLETED", None,
    ]  # fmt: skip
    domains = {kind.split(".")[1] for kind in doubled}
    assert {"lcm", "infra", "mgmt", "vim"} <= domains, "commands and events of every service came twice"
