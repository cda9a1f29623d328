"""A watch: the changes of one resource from a point in time on, as lines of JSON."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from kubevnfm_lab.kubernetes.errors import ApiError, bad_request, expired
from kubevnfm_lab.kubernetes.objects import Obj
from kubevnfm_lab.kubernetes.resources import Resource
from kubevnfm_lab.kubernetes.selectors import Predicate
from kubevnfm_lab.kubernetes.store import Change, Store, watch_line
from kubevnfm_lab.kubernetes.verbs import Target, selection
from kubevnfm_lab.kubernetes.versions import in_version

_LONGEST_S: Final = 3600.0
_BOOKMARK_EVERY_S: Final = 60.0


class Watch:
    """One client's watch. It subscribes in its constructor, so no change is lost between list and wait."""

    def __init__(
        self, store: Store, target: Target, query: Mapping[str, str], form: Callable[[Obj], Obj] | None = None
    ) -> None:
        """Raise ApiError 400 for parameters that cannot be read; ``form``: what is shown of each object, None: all."""
        self._form = form
        self._store, self._target = store, target
        self._resource: Resource = target.resource
        self._selects: Predicate | None = selection(query, target.resource)
        self._bookmarks = query.get("allowWatchBookmarks") in {"true", "1"}
        self._initial_events = query.get("sendInitialEvents") in {"true", "1"}
        self._since = query.get("resourceVersion", "")
        try:
            int(self._since or "0")
            self._timeout_s = float(query.get("timeoutSeconds") or _LONGEST_S)
        except ValueError as error:
            raise bad_request(f"resourceVersion, timeoutSeconds: numbers were expected ({error})") from error
        self._changes: asyncio.Queue[Change | None] = asyncio.Queue()
        self._unsubscribe = store.subscribe(self._take)

    def _take(self, change: Change) -> None:
        if change.resource == self._resource.store_name and self._is_here(change):
            self._changes.put_nowait(change)

    def _is_here(self, change: Change) -> bool:
        return not self._target.namespace or change.key.namespace == self._target.namespace

    def end(self) -> None:
        """End the stream; for the client it is a watch that timed out."""
        self._changes.put_nowait(None)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines, until the timeout or until `end` is called."""
        try:
            for line in self._first_lines():
                yield line
            deadline = asyncio.get_running_loop().time() + self._timeout_s
            while (left := deadline - asyncio.get_running_loop().time()) > 0:
                try:
                    # The timeout also wakes an idle watch for its bookmark.
                    change = await asyncio.wait_for(self._changes.get(), min(left, _BOOKMARK_EVERY_S))
                except TimeoutError:
                    if self._bookmarks:
                        yield self._bookmark(self._store.revision)
                    continue
                if change is None:
                    return
                changed = self._line(change)
                if changed is not None:
                    yield changed
        except ApiError as error:
            yield watch_line("ERROR", error.status())
        finally:
            self._unsubscribe()

    def _first_lines(self) -> list[bytes]:
        """Return the first lines: all objects as they are, or the changes since the requested version."""
        # Version 0 means "any": the API server may serve it from its cache, here from the store.
        if self._since in {"", "0"} or self._initial_events:
            objects = self._store.list(self._resource.store_name, self._target.namespace)
            lines = [
                watch_line("ADDED", self._shown(obj)) for obj in objects if self._selects is None or self._selects(obj)
            ]
            if self._initial_events and self._bookmarks:
                lines.append(self._bookmark(self._store.revision, initial_events_end=True))
            return lines
        revision = int(self._since)
        changes = self._store.changes_since(self._resource.store_name, revision)
        if changes is None:
            raise expired(f"too old resource version: {revision} ({self._store.revision})")
        made = (self._line(change) for change in changes if self._is_here(change))
        return [line for line in made if line is not None]

    def _line(self, change: Change) -> bytes | None:
        kind, obj = change.kind, change.obj
        if self._selects is not None:
            is_in = kind != "DELETED" and self._selects(obj)
            was_in = change.old is not None and self._selects(change.old)
            if not is_in and not was_in:
                return None
            # A change that moves an object into or out of the selection is an addition or deletion for the client.
            kind = "DELETED" if not is_in else kind if was_in or kind == "ADDED" else "ADDED"
        shown = self._shown(obj)
        # The encoded line is shared by all watchers of the resource in its stored version.
        return change.line if shown is obj and kind == change.kind else watch_line(kind, shown)

    def _shown(self, obj: Obj) -> Obj:
        found = in_version(obj, self._resource)
        return found if self._form is None else self._form(found)

    def _bookmark(self, revision: int, *, initial_events_end: bool = False) -> bytes:
        metadata: Obj = {"resourceVersion": str(revision), "creationTimestamp": None}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        obj = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        return watch_line("BOOKMARK", obj)
