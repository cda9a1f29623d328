"""A plan as the API shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubevnfm_lcm_api.lifecycle.domain.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.domain.plans import SEQUENCES


def step_views(record: OccurrenceRecord) -> Sequence[dict[str, Any]]:
    """Return the steps: name (the step's id), kind, title, state, times, error."""
    return [
        {
            "name": step.id,  # the attribute's name in 0.1.0, which clients read
            "kind": step.kind,
            "title": SEQUENCES.step(step).title,
            "state": step.state.value,
            "attempt": step.attempt,
            "after": list(step.after),
            "timeoutS": step.timeout_s,
            **({"startedAt": step.started_at} if step.started_at else {}),
            **({"endedAt": step.ended_at} if step.ended_at else {}),
            **({"error": step.error.model_dump(by_alias=True, exclude_none=True)} if step.error else {}),
        }
        for step in record.steps
    ]
