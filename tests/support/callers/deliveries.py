"""The state of a subscription's deliveries, as the gateway shows it and as events on the bus report it."""

from __future__ import annotations

from typing import Any

from kubevnfm_events import Envelope, Message
from patience import until
from worlds.lcm_world import World


async def deliveries(world: World, subscription_id: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await world.call("GET", f"/kubevnfm/v1/subscriptions/{subscription_id}")).must(200).json
    return shown


async def deliveries_with(world: World, subscription_id: str, **facts: Any) -> dict[str, Any]:
    """Wait until the delivery state has these facts; return it."""

    async def matching() -> dict[str, Any] | None:
        state = await deliveries(world, subscription_id)
        return state if all(state.get(name) == value for name, value in facts.items()) else None

    return await until(matching, timeout_s=300)


class Heard:
    """Records the data of the events that the bus delivers."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    async def record(self, envelope: Envelope[Message]) -> None:
        self.events.append(envelope.data)

    async def have_come(self, count: int) -> list[Any]:
        async def enough() -> list[Any] | None:
            return self.events if len(self.events) >= count else None

        return await until(enough, timeout_s=300)
