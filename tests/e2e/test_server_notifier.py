"""The servers of a VNF at the notifier of their operator, over a whole life."""

from __future__ import annotations

from typing import Any

from callers.user import User, sample_body
from patience import until
from servers.server_notifier import ServerNotifier


async def test_the_servers_of_a_vnf_are_registered_at_its_notifier_while_they_exist(user: User) -> None:
    """API-230, API-231, API-232: over the gateway and the bus, on real stacks; the notifier is away for a moment."""
    async with ServerNotifier.listening() as notifier:
        instance_id = await user.create(await user.sample("vm"))
        body = sample_body("vm", "instantiate")
        given = {"ServerNotifierUri": notifier.url, "ServerNotifierFaultID": ["1234"]}
        parameters = {**body.get("additionalParams", {}), **given}
        wrong = {**body, "additionalParams": {**parameters, "ServerNotifierUri": "notifier"}}
        refused = (await user.ask(instance_id, "instantiate", wrong)).must(400).json
        assert refused["invalidParams"][0]["name"] == "additionalParams/ServerNotifierUri"

        notifier.refusal = 503
        await user.do(instance_id, "instantiate", {**body, "additionalParams": parameters})
        assert "alarmId" not in (await _notification(user, instance_id))[0]
        notifier.refusal = None
        await notifier.has(*await _servers(user, instance_id))

        await user.do(instance_id, "scale", sample_body("vm", "scale_out"))
        assert len(await _servers(user, instance_id)) == 2
        await notifier.has(*await _servers(user, instance_id))

        async def all_shown() -> list[Any] | None:
            shown = await _notification(user, instance_id)
            return shown if all("alarmId" in each for each in shown) else None

        assert {each["alarmId"] for each in await until(all_shown)} == set(notifier.alarms)
        before = await _servers(user, instance_id)
        await user.do(instance_id, "heal", {"additionalParams": {"all": True}})
        healed = await _servers(user, instance_id)
        assert healed != before
        await notifier.has(*healed)
        await user.terminate(instance_id)
        await notifier.has()


async def _resources(user: User, instance_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await user.instance(instance_id))["instantiatedVnfInfo"]["vnfcResourceInfo"]
    return found


async def _servers(user: User, instance_id: str) -> list[str]:
    return [each["computeResource"]["resourceId"] for each in await _resources(user, instance_id)]


async def _notification(user: User, instance_id: str) -> list[dict[str, Any]]:
    found = await _resources(user, instance_id)
    return [(each.get("metadata") or {}).get("server_notification", {}) for each in found]
