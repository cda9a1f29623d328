"""The cause of an operation that waits, failed or is slow, and what one can do next, as the views show them."""

from __future__ import annotations

from typing import Literal

from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.http.models import Shown


class CauseObject(Shown):
    """The thing that a cause is about."""

    kind: str
    """Pod, Server, Stack, Machine, Volume, Vim, Nfvo, Broker, Service, Package ..."""
    name: str
    """Its own name; of what people know by another one, that name: VIMs and packages."""
    namespace: str | None = None
    vimId: str | None = None  # noqa: N815  # as it is on the wire
    vimName: str | None = None  # noqa: N815  # as it is on the wire


class Cause(Shown):
    """The deepest known reason why an operation waits, has failed or is slow."""

    code: str
    """A stable slug of the table of causes."""
    text: str
    """One sentence for a person, at most 300 characters."""
    object: CauseObject | None = None
    since: str | None = None
    """When it began."""
    step: str | None = None
    """The id of the step that it stops."""
    node: str | None = None
    """The machine on which it happens."""
    isWait: bool = False  # noqa: N815  # as it is on the wire
    """Whether the operation goes on by itself once the cause is gone."""
    remedy: str | None = None
    """The work of a person that removes it."""
    page: str
    """The part of the documentation about it, below ``docs/``."""


class Next(Shown):
    """Something that can be done now; the most sensible one is first."""

    task: Literal["wait", "retry", "rollback", "fail", "cancel"]
    text: str
    """The effect on this operation, and the work that comes before it."""
    method: Literal["POST"] | None = None
    href: str | None = None
    body: JsonObject | None = None
    command: str
    """The command of the command line."""
