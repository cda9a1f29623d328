"""Texts about findings of the CNF policy: by rule, so that a set of hundreds of objects is a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_infra_k8s.domain.planning.cnf_policy import Finding

_NAMED: Final = 5
"""The findings of a rule that a text names."""
_LONGEST: Final = 4000


def described(found: Sequence[Finding]) -> str:
    """Return rule by rule what was found: ``privileged: Deployment default/web: spec... (true); and 3 more``."""
    by_rule: dict[str, list[Finding]] = {}
    for each in found:
        by_rule.setdefault(each.rule, []).append(each)
    parts = []
    for rule, its in by_rule.items():
        named = ", ".join(str(each) for each in its[:_NAMED])
        parts.append(f"{rule}: {named}" + (f" and {len(its) - _NAMED} more" if len(its) > _NAMED else ""))
    text = "; ".join(parts)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
