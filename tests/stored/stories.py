"""The stories: every plan, led through every state of its steps. README.md in the fixtures' folder says what to add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cluster_stories import CLUSTER_STORIES
from container_stories import CONTAINER_STORIES
from machine_stories import MACHINE_STORIES
from parts import Story

STORIES: Final[Mapping[str, Story]] = {**MACHINE_STORIES, **CLUSTER_STORIES, **CONTAINER_STORIES}
"""In the order in which they are written: of cases that several stories share, the first has them."""
