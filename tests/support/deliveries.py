"""How the deliveries of notifications go, as the gateway shows it, and what the bus tells of them."""

from __future__ import annotations

from typing import Any

from kubevnfm_events import Envelope, Message
from lcm_world import World
from patience import until


async def deliveries(world: World, subscription_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await world.call("GET", f"/kubevnfm/v1/subscriptions/{subscription_id}")).must(200).json
    return shown


async def deliveries_with(world: World, subscription_id: str, **facts: Any) -> dict[str, Any]:
    """Wait until the delivery state says so."""

    async def is_so() -> dict[str, Any] | None:
        state = await deliveries(world, subscription_id)
        return state if all(state.get(name) == value for name, value in facts.items()) else None

    return await until(is_so, timeout_s=30)


class Heard:
    """The events of a kind that the bus brought."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def take(self, envelope: Envelope[Message]) -> None:
        self.events.append(envelope.data)

    async def have_come(self, count: int) -> list[Any]:
        async def enough() -> list[Any] | None:
            return self.events if len(self.events) >= count else None

        return await until(enough, timeout_s=30)
