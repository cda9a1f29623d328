"""Container images and Docker containers of one machine."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field


@dataclass
class Container:
    """One container that ``docker run`` or ``docker create`` created."""

    name: str
    image: str
    running: bool = True
    ports: dict[str, str] = field(default_factory=dict)
    """Host port by container port: ``{"5000/tcp": "5000"}``."""
    binds: list[str] = field(default_factory=list)
    restart: str = "no"
    environment: list[str] = field(default_factory=list)
    container_id: str = field(default_factory=lambda: os.urandom(32).hex())


@dataclass
class Images:
    """The content of a container runtime; Docker's and containerd's are one here."""

    tags: dict[str, str] = field(default_factory=dict)
    """Image id by ``repository:tag``."""
    containers: dict[str, Container] = field(default_factory=dict)
    """By name."""
    logins: dict[str, str] = field(default_factory=dict)
    """User by registry."""

    def pull(self, reference: str) -> str:
        """Add an image; return its id."""
        tagged = with_tag(reference)
        self.tags.setdefault(tagged, f"sha256:{hashlib.sha256(tagged.encode()).hexdigest()}")
        return self.tags[tagged]

    def find(self, reference: str) -> str | None:
        """Return the id of an image by name or (shortened) id."""
        tagged = with_tag(reference)
        if tagged in self.tags:
            return self.tags[tagged]
        digest = reference.removeprefix("sha256:")
        if len(digest) < 6:
            return None
        return next((i for i in self.tags.values() if i.removeprefix("sha256:").startswith(digest)), None)


def with_tag(reference: str) -> str:
    """Return an image reference with ``:latest`` if it has neither tag nor digest."""
    last = reference.rsplit("/", 1)[-1]
    return reference if ":" in last or "@" in last else f"{reference}:latest"
