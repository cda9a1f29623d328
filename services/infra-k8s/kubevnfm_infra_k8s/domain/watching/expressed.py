"""The results of the expressions that waits of an order name, each evaluated once for every version of its object."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from kubevnfm_csar.waits import WantedResult

from kubevnfm_infra_k8s.domain.objects import SECRETS, Body, ObjectKey, field_at, without_outdated_conditions
from kubevnfm_infra_k8s.domain.ports import Expressions
from kubevnfm_infra_k8s.domain.verdicts import Evaluation
from kubevnfm_infra_k8s.domain.watching.awaited_objects import Awaited


@dataclass
class Expressed:
    """The results for the objects of one wait."""

    expressions: Expressions
    awaited: Sequence[tuple[ObjectKey, WantedResult]]
    _found: dict[ObjectKey, tuple[object, Evaluation]] = field(default_factory=dict)
    """With the version of the object."""

    async def update(self, bodies: Mapping[ObjectKey, Body]) -> None:
        """Evaluate the expressions of the objects that have changed."""
        for key, wanted in self.awaited:
            body = bodies.get(key)
            if body is None or self.result(key, body) is not None:
                continue
            found = await self.expressions.evaluate(wanted, without_outdated_conditions(body))
            if key.kind == SECRETS.kind and found.error:
                # The library may name the value that it could not use.
                found = replace(found, error="it has no result")
            self._found[key] = _version(body), found

    def result(self, key: ObjectKey, body: Body | None) -> Evaluation | None:
        """Return the results for an object as it is now; None if they are of another version, or there are none."""
        version, found = self._found.get(key, (None, None))
        return found if body is not None and version == _version(body) else None


@asynccontextmanager
async def expressing(expressions: Expressions, awaited: Sequence[Awaited]) -> AsyncIterator[Expressed]:
    """Yield the results for those of the objects that are awaited by an expression."""
    mine = [(each.key, each.wanted) for each in awaited if isinstance(each.wanted, WantedResult)]
    if not mine:
        yield Expressed(expressions, ())
        return
    async with expressions.running():
        yield Expressed(expressions, mine)


def _version(body: Body) -> object:
    return field_at(body, "metadata", "resourceVersion")
