"""The processes of the services: that they run, and what they lack."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from kubevnfm_events.base import EVERY_SERVICE, Event, Facts

Name = Annotated[str, Field(max_length=128)]
_SEVERAL: Final = "several"
Part = Literal["store", "broker", "sandbox", "disk", "parked-commands", "certificates"]


class Trouble(Facts):
    """A part that a process lacks."""

    part: Annotated[str, Field(max_length=64)]
    """One of `Part`; later versions may have others."""
    text: Annotated[str, Field(max_length=512)]
    """One sentence for a person."""
    is_blocking: bool = True
    """Whether nothing that needs the part is done."""
    since: AwareDatetime | None = None
    """Since when, as the process has seen it; absent: it has an earlier version."""
    of: Annotated[str, Field(max_length=128)] = ""
    """Which of several things of one part it is about: the setting that names the file of a certificate."""
    ends_at: AwareDatetime | None = None
    """When that ends."""


class ServiceReported(Event, kind="service.state.reported", by=EVERY_SERVICE):
    """A process runs; each says so at its start, every 10 s, when what it lacks has changed, and at its end. It is not stored, and not in the event stream."""

    process: Name
    """Its id: another one after each start."""
    services: Annotated[tuple[Name, ...], Field(max_length=16)]
    """The services in it: one, or all in the single process."""
    host: Name
    pid: int
    version: Name
    started_at: AwareDatetime
    troubles: Annotated[tuple[Trouble, ...], Field(max_length=16)] = ()
    has_ended: bool = False
    """It is the last report: the process was stopped."""

    def own_key(self) -> str:
        """Return the routing key of the service that it is about; no user of a broker may publish a report on several."""
        # The one process with several services has a bus of its own.
        return self.key_of(self.services[0] if len(self.services) == 1 else _SEVERAL)
