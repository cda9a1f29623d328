"""Why the work on a volume does not go on. No I/O."""

from __future__ import annotations

from kubevnfm_infra_k8s.domain.reconciling.news import Watched


class Broken(Exception):
    """Something stands in the way that the work cannot change; the text says what. The next round looks again.

    ``watched``: objects that the work waits for nevertheless.
    """

    def __init__(self, reason: str, *watched: Watched) -> None:
        super().__init__(reason)
        self.watched = watched
