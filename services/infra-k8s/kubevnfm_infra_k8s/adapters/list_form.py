"""Forms of lists and watches, and their pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kubevnfm_infra_k8s.adapters.shapes import name_in, named, part_of
from kubevnfm_infra_k8s.domain.objects import Body

T = TypeVar("T")


@dataclass(frozen=True)
class ListForm(Generic[T]):
    """Which objects a watch follows, in which form they are asked for, and what is kept of each."""

    list_accept: str
    watch_accept: str
    query: Mapping[str, str]
    keep: Callable[[Body], T]
    page: int
    keeps_bodies: bool
    parts: Sequence[Sequence[str]] | None = None
    """The paths that ``keep`` reads beside the metadata; None: any."""

    def read(self, body: Any, known: Mapping[str, str] | None = None) -> Body:
        """Return an object, or what is read of it, which alone is checked. Raises Malformed."""
        return named(body if self.parts is None else part_of(body, self.parts), known)

    def collected(self, items: Sequence[Body], namespace: str) -> dict[str, T]:
        """Return what is kept of objects, by name."""
        return {name_in(body, namespace): self.keep(body) for body in items}


@dataclass(frozen=True)
class ListPage:
    """A part of a list."""

    items: Sequence[Body]
    version: str
    """"" if the kind does not exist."""
    item_size: int
    """Bytes, on average."""
