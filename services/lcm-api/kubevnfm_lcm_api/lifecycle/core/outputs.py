"""The outputs that an instance shows in its metadata (multicloud.md MC-138): values that infra-k8s has read from its objects.

An operation brings them with its result, and watches afterwards. Each reading has a number, so that of two that cross one another the
later one stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_events import Envelope, Event
from kubevnfm_events.outputs import OutputsChanged, OutputsRead
from kubevnfm_secrets import mask

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.drift import drift_events
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

KEY: Final = "kubevnfm_outputs"
"""The key in the instance's metadata; requests cannot set it."""


def outputs_of(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the outputs that an instance's metadata show."""
    shown = metadata.get(KEY)
    # An earlier version let requests set any key.
    return shown if isinstance(shown, Mapping) else {}


def with_reading(record: InstanceRecord, read: OutputsRead) -> InstanceRecord:
    """Return the record with the values of a reading, unless it has those of a later one."""
    if read.number <= record.internals.outputs_number:
        return record
    metadata = {**record.vnf.metadata, KEY: dict(read.values)}
    return record.with_vnf(metadata=metadata).with_internals(outputs_number=read.number)


def with_outputs(record: InstanceRecord) -> InstanceRecord:
    """Return the record at the end of an operation, with the outputs that it has read; without any if the instance has none."""
    release = record.release.release if record.release is not None else None
    if release is None or not record.internals.outputs:
        metadata = {name: value for name, value in record.vnf.metadata.items() if name != KEY}
        record = record.with_vnf(metadata=metadata).with_internals(outputs_number=0, outputs=())
    if release is None or release.outputs is None:
        return record
    # They are in the metadata from now on.
    stripped = record.with_release(release.model_copy(update={"outputs": None}))
    return with_reading(stripped, release.outputs) if record.internals.outputs else stripped


def change_events(before: InstanceRecord, after: InstanceRecord) -> list[Envelope[Event]]:
    """Return the events about an instance that was written: of a changed drift, and of changed outputs."""
    return [*drift_events(before, after), *_output_events(before, after)]


def _output_events(before: InstanceRecord, after: InstanceRecord) -> list[Envelope[Event]]:
    # As they are shown: of a secret value there is nothing to see.
    old, new = mask(outputs_of(before.vnf.metadata)), mask(outputs_of(after.vnf.metadata))
    changed = sorted(
        name for name in {*old, *new} if (name in old) is not (name in new) or old.get(name) != new.get(name)
    )
    if not changed:
        return []
    # Before, too: a termination leaves none.
    vim_ids = tuple(dict.fromkeys([*after.facts.vim_ids, *before.facts.vim_ids]))
    event = OutputsChanged(vnf_instance_id=after.vnf.id, vim_ids=vim_ids, outputs=dict(new), changed=tuple(changed))
    return [Envelope(data=event, source=SOURCE, subject=after.vnf.id)]
