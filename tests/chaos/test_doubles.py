"""Every message of a whole run is delivered twice: nothing exists twice, and no notification is repeated."""

from __future__ import annotations

import pytest
from callers.user import User
from packages.own_packages import own_vm, zipped
from servers.broker import everything_twice
from servers.chaos import NO_TARGET, Chaos
from servers.installations import SixInstallation
from servers.subscriber import Subscriber

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]


async def test_every_message_delivered_twice_harms_nothing(six_chaos: Chaos) -> None:
    """Issue 2: cluster, its VIM, a CNF on it, and all terminated; the subscriber gets each notification once."""
    assert isinstance(six_chaos.installation, SixInstallation)
    user = six_chaos.user
    async with everything_twice(six_chaos.installation.rabbit) as doubled, Subscriber.listening() as subscriber:
        subscription = await user.lcm("POST", "/subscriptions", {"callbackUri": subscriber.uri})
        cluster_id = await six_chaos.build_cluster(NO_TARGET)
        cnf_id = await six_chaos.build_cnf(cluster_id, NO_TARGET)
        await six_chaos.end_cnf(cnf_id, cluster_id, NO_TARGET)
        await six_chaos.end_cluster(cluster_id, NO_TARGET)
        heard = await subscriber.has_heard(cluster_id, 8)
        (await user.lcm("DELETE", f"/subscriptions/{subscription.json['id']}")).must(204)
        await _package_notifications_come_once(user, subscriber)
    ids = [each["id"] for each in heard]
    assert len(ids) == len(set(ids))
    assert [each.get("operationState") for each in heard] == [
        None, "STARTING", "PROCESSING", "COMPLETED", "STARTING", "PROCESSING", "COMPLETED", None,
    ]  # fmt: skip
    domains = {kind.split(".")[1] for kind in doubled}
    assert {"lcm", "infra", "mgmt", "vim"} <= domains, "commands and events of every service came twice"


async def _package_notifications_come_once(user: User, subscriber: Subscriber) -> None:
    many, vnfd_id = "/vnfpkgm/v1/subscriptions", "5b5d5ab5-8a4c-4a4e-9d1b-666666666666"
    subscription = await user.call("POST", many, {"callbackUri": subscriber.uri, "filter": {"vnfdId": [vnfd_id]}})
    package = await user.upload(zipped(own_vm(vnfd_id)))
    one = f"/vnfpkgm/v1/vnf_packages/{package['id']}"
    (await user.call("PATCH", one, {"operationalState": "DISABLED"})).must(200)
    (await user.call("DELETE", one)).must(204)
    heard = await subscriber.has_heard(package["id"], 3)
    (await user.call("DELETE", f"{many}/{subscription.json['id']}")).must(204)
    assert [each.get("changeType") for each in heard] == [None, "OP_STATE_CHANGE", "PKG_DELETE"]
