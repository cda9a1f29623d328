"""The events of the creation and the deletion of an instance."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kubevnfm_events import Envelope, Message
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord


def creation(record: InstanceRecord) -> Envelope[Message]:
    """Return the event of a new instance, whose id the instance has as that of its last event."""
    event = InstanceCreated(vnf_instance_id=record.vnf.id, **record.facts.model_dump())
    assert record.internals.last_news is not None
    return Envelope(data=event, source=SOURCE, id=record.internals.last_news.id, subject=record.vnf.id)


def deletion(record: InstanceRecord) -> Envelope[Message]:
    """Return the event of a deletion, which comes after the last one about the instance."""
    last = record.internals.last_news
    follows: dict[str, Any] = (
        {"follows": last.id, "follows_at": datetime.fromisoformat(last.at)} if last is not None else {}
    )
    event = InstanceDeleted(vnf_instance_id=record.vnf.id, **record.facts.model_dump(), **follows)
    return Envelope(data=event, source=SOURCE, subject=record.vnf.id)
