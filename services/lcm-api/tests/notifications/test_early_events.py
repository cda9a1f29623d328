"""An event that the bus brings before the one that it follows (API-074)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_bus.port import Ack, Again, Delivery
from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import PackageChanged
from kubevnfm_kit.owners import Owners
from kubevnfm_lcm_api.notifications.delivery import Notifications
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.set_clock import SetClock

NOTHING: Any = None


@pytest.mark.parametrize(("age_s", "verdict"), [(0, Again), (59, Again), (61, Ack)])
async def test_it_is_delivered_again_until_the_other_is_taken_for_lost(
    tmp_path: Path, age_s: float, verdict: type[Ack | Again]
) -> None:
    now = datetime.now(UTC)
    early: Envelope[Message] = Envelope(
        PackageChanged(
            vnf_pkg_id="package",
            vnfd_id="vnfd",
            change="DISABLED",
            follows="lost",
            follows_at=now,
        ),
        source="/kubevnfm/lcm-api",
        time=now,
    )
    async with SqliteStore.open(tmp_path / "documents.db") as store:
        clock = SetClock(now + timedelta(seconds=age_s))
        notifications = Notifications(
            store=store, outbox=NOTHING, subscriber=NOTHING, clock=clock, root="", lease_s=1.0, owners=Owners()
        )
        assert isinstance(await notifications.announce(Delivery(early, deliveries=1)), verdict)
