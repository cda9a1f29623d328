"""The annotations by which an autoscaler changes the number of Machines of an object (capi.md CR-091)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from kubevnfm_infra_k8s.domain.capi.contract import CORE
from kubevnfm_infra_k8s.domain.objects import Body, annotations_of, group_of

_PREFIX: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-"
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
"""An int32."""
_KINDS: Final = frozenset({"MachineDeployment", "MachinePool"})


@dataclass(frozen=True)
class Limits:
    """The numbers of Machines between which the autoscaler chooses; None: it has no such limit."""

    least: int | None = None
    most: int | None = None

    @classmethod
    def from_object(cls, body: Body) -> Self:
        """Return the limits in the annotations of an object; none for a kind that no autoscaler changes."""
        if body.get("kind") not in _KINDS or group_of(str(body.get("apiVersion"))) != CORE:
            return cls()
        return cls.from_annotations(annotations_of(body))

    @classmethod
    def from_annotations(cls, annotations: Mapping[str, str]) -> Self:
        """Return the limits in annotations; a value that is no number is none."""
        values = [str(annotations.get(f"{_PREFIX}{name}", "")) for name in ("min-size", "max-size")]
        least, most = (int(value) if _NUMBER.fullmatch(value) else None for value in values)
        return cls(least, most)

    @property
    def are_complete(self) -> bool:
        """Whether the autoscaler owns the number; it needs both."""
        return self.least is not None and self.most is not None

    def allow(self, count: int) -> bool:
        """Return whether the number is within the limits."""
        return (self.least is None or count >= self.least) and (self.most is None or count <= self.most)

    @property
    def in_words(self) -> str:
        """The limits as text: ``1 to 5``."""
        if self.are_complete:
            return f"{self.least} to {self.most}"
        return f"at least {self.least}" if self.least is not None else f"at most {self.most}"
