"""The tasks at which a kill is tried."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from _pytest.mark import ParameterSet


def killed_at(steps: Sequence[tuple[str, str]], *, in_every_run: Collection[str]) -> list[ParameterSet]:
    """Return the steps as parameters; those of other tasks than the named ones are ``deep``: the journal serves all alike."""
    return [
        pytest.param(task, node, id=f"{task}-{node}", marks=() if task in in_every_run else pytest.mark.deep)
        for task, node in steps
    ]
