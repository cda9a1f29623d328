"""Writes docs/operation-states.md from the table: ``python -m kubevnfm_lcm_api.lifecycle.core.states_page > docs/...``."""

from __future__ import annotations

import sys
from typing import Final

from kubevnfm_sol.lcm import TERMINAL
from kubevnfm_sol.lcm import OperationState as S

from kubevnfm_lcm_api.lifecycle.core.states import CAN_BE_ROLLED_BACK, TRANSITIONS, allowed_tasks

MEANINGS: Final = {
    "granted": "lcm-api: the operation is granted; the commands of its first steps are sent",
    "refused": "lcm-api: the operation is not granted; nothing was changed",
    "steps_done": "lcm-api: every step is done",
    "step_failed": "lcm-api: a step failed or was not answered, and no other step runs",
    "steps_undone": "lcm-api: every step that was started is undone",
    "cancelled": "API caller: `POST .../cancel`",
    "retry": "API caller: `POST .../retry`",
    "rollback": "API caller: `POST .../rollback`",
    "fail": "API caller: `POST .../fail`",
}
"""The actor that causes a trigger, and when, by trigger."""


def diagram() -> str:
    """Return the table as a mermaid state diagram."""
    moves = [f"    {state} --> {after}: {trigger}" for (state, trigger), after in TRANSITIONS.items()]
    ends = [f"    {state} --> [*]" for state in S if state in TERMINAL]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {S.STARTING}", *moves, *ends, "```"])


def table() -> str:
    """Return the transitions as a Markdown table."""
    rows = [
        f"| {state} | {trigger} | {MEANINGS[trigger]} | {after} |" for (state, trigger), after in TRANSITIONS.items()
    ]
    return "\n".join(["| state | trigger | actor, and when | state after |", "|---|---|---|---|", *rows])


def rollback_table() -> str:
    """Return which operations can be rolled back, as a Markdown table."""
    rows = [
        f"| {operation} | {', '.join(sorted(allowed_tasks(S.FAILED_TEMP, operation)))} |"
        for operation in CAN_BE_ROLLED_BACK
    ]
    return "\n".join(["| operation | tasks in FAILED_TEMP |", "|---|---|", *rows])


def page() -> str:
    """Return the whole page."""
    return f"""# States of operations and of VNF instances

Every operation on a VNF instance is an operation occurrence (SOL003 clause 5.6.2). Its transitions are one table in
`services/lcm-api/kubevnfm_lcm_api/lifecycle/core/states.py`. A test compares this page with it.

## Operation occurrences

{diagram()}

{table()}

COMPLETED, FAILED and ROLLED_BACK are final. Until then the operation holds its instance. A second operation on the
instance is refused with 409 and the id of the first.

A task in a state that does not allow it is refused with 409. A rollback of an operation that cannot be rolled back is
refused with 404.

{rollback_table()}

A task of a caller that ends an operation is first stored as a decision. From then on no other task is accepted, and the end
is written even if the process dies in between.

## VNF instances

| state | operation | allowed | leads to |
|---|---|---|---|
| NOT_INSTANTIATED | `POST .../instantiate` | while no operation runs | INSTANTIATED if COMPLETED, otherwise NOT_INSTANTIATED |
| NOT_INSTANTIATED | `DELETE` | while no operation runs | deleted; the remains of a FAILED instantiate are removed after that |
| INSTANTIATED | `POST .../terminate` | while no operation runs; GRACEFUL only if no other instance uses its cluster | NOT_INSTANTIATED if COMPLETED, otherwise INSTANTIATED |
| INSTANTIATED | `DELETE` | never: 409 | |

## Remains of a FAILED instantiate

The instance is NOT_INSTANTIATED. `resourceChanges` of the occurrence lists what may remain. The remains are removed by DELETE
of the instance, in the background after the 204, or as the first step of the next instantiate. A removal that fails is
tried again, after pauses that double up to five minutes, until nothing is left. `GET /kubevnfm/v1/operations/<id>` of the
failed occurrence shows the removal as `cleanUp`. The event `lcm.remains.removed` is published when everything is gone.
"""


if __name__ == "__main__":
    sys.stdout.write(page())
