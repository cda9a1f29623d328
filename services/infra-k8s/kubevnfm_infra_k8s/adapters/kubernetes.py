"""The Cluster port on a Kubernetes API server: objects of any kind by discovery and server-side apply."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import structlog
from kubevnfm_kit.back_off import BackOff
from kubevnfm_kit.outages import unless_said
from kubevnfm_secrets import Mask

from kubevnfm_infra_k8s.adapters.discovery import Discovery
from kubevnfm_infra_k8s.adapters.field_conflicts import NO_OWNERS, is_own_conflict, taken_from_own
from kubevnfm_infra_k8s.adapters.paths import collection_path, object_path, restart_path, selection
from kubevnfm_infra_k8s.adapters.shapes import Malformed, checked, name_in, named, part_of, version_of, without_owners
from kubevnfm_infra_k8s.adapters.transport import APPLY, JSON, LARGEST_ANSWER, Answer, AnswerTooLong, Transport
from kubevnfm_infra_k8s.domain.errors import ClusterUnavailable, ObjectRefused, WebhookUnavailable
from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, KEEPING_MANAGER, PODS, Body, ObjectKey, Resource, field_at
from kubevnfm_infra_k8s.domain.ports import Propagation, Seen
from kubevnfm_infra_k8s.domain.reading.secret_values import values_of

log = structlog.get_logger()

T = TypeVar("T")
_LOG_LINES: Final = 50
_LOG_BYTES: Final = 2**18
"""The API server counts them from the first of the lines: there are few, so that the last one is seldom beyond it."""
_MERGE: Final = "application/merge-patch+json"
_REPEATED_VALUE: Final = re.compile(r"got &.*")
_METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_PAGE: Final = 500
"""Objects of one answer to a list; fewer if they are so large that the answer would be."""
_METADATA_PAGE: Final = 250
"""They have some 3 kB of metadata each; what is kept of a page is small."""
_WHOLE_PAGE: Final = 50
"""The same for whole objects of which little is kept: a page of pods has half a MB, which takes the loop some 10 ms."""
_MOST_PAGES: Final = 4000
_MOST_OBJECTS: Final = 250_000
"""The same of which little is kept. Kubernetes is made for 150,000 pods."""
_LARGEST_LIST: Final = 2 * LARGEST_ANSWER
"""Bytes of all objects of one list or watch: those of some 4,000 Machines."""
_TRIES_OF_A_LIST: Final = 3
_WATCH_S: Final = 300
_PAUSES: Final = BackOff(first_s=0.2, longest_s=2.0)
_EXPIRY_PAUSES: Final = BackOff(first_s=0.2, longest_s=30.0)
"""Before a new list. A server that ends each watch as too old would be asked for lists without end."""
_MOST_FAILURES: Final = 5
"""Consecutive failures of a watch, about five seconds, after which the cluster counts as unavailable."""


@dataclass(frozen=True)
class _Form(Generic[T]):
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


@dataclass(frozen=True)
class _Page:
    """A part of a list."""

    items: Sequence[Body]
    version: str
    """"" if the kind does not exist."""
    item_size: int
    """Bytes, on average."""


class KubernetesCluster:
    """`ports.Cluster`: one API server."""

    def __init__(self, transport: Transport, discovery: Discovery | None = None, secrets: Sequence[str] = ()) -> None:
        """``secrets``: the values that no text shows."""
        self._transport = transport
        self._discovery = discovery or Discovery(transport)
        self._secrets = secrets
        self._mask = Mask(secrets) if secrets else None

    @property
    def endpoint(self) -> str:
        return self._transport.endpoint

    def hiding(self, secrets: Sequence[str]) -> KubernetesCluster:
        return KubernetesCluster(self._transport, self._discovery, secrets) if secrets else self

    def masked(self, text: str) -> str:
        return self._mask(text) if self._mask is not None else text

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.close()

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        return await self._discovery.resource(api_version, kind)

    async def kinds(self) -> Sequence[Resource]:
        return await self._discovery.kinds()

    def known_resource(self, api_version: str, kind: str) -> Resource | None:
        return self._discovery.known_resource(api_version, kind)

    def forget_kinds(self) -> None:
        self._discovery.forget()

    async def version(self) -> str:
        answer = await self._transport.call("GET", "/version")
        if not isinstance(answer.body, Mapping) or not isinstance(answer.body.get("gitVersion"), str):
            raise ClusterUnavailable(f"{self.endpoint}/version: the answer is not a version")
        return str(answer.body["gitVersion"])

    async def api_versions(self) -> Sequence[str]:
        return await self._discovery.api_versions()

    async def get(self, resource: Resource, key: ObjectKey) -> Body | None:
        answer = await self._transport.call("GET", object_path(resource, key), subject=str(key))
        return None if answer.status == 404 else self._object(answer, key)

    async def get_metadata(self, resource: Resource, key: ObjectKey) -> Body | None:
        answer = await self._transport.call("GET", object_path(resource, key), accept=_METADATA, subject=str(key))
        return None if answer.status == 404 else self._object(answer, key)

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "") -> Sequence[Body]:
        form = _Form(JSON, JSON, selection(labels, ""), lambda body: body, _PAGE, keeps_bodies=True)
        for _ in range(_TRIES_OF_A_LIST):
            with suppress(_Expired):
                return [body async for page in self._pages(resource, namespace, form) for body in page.items]
        raise ClusterUnavailable(f"{self.endpoint}: the list of {resource.plural} changes faster than it can be read")

    async def list_metadata(self, resource: Resource, *, namespace: str, most: int) -> Sequence[Body] | None:
        accept = f"{_METADATA_LIST},{JSON}"
        listed, _ = await self._listed(resource, namespace=namespace, query={"limit": str(most)}, accept=accept)
        is_whole = not field_at(listed, "metadata", "continue")
        return self._items(resource, listed) if is_whole else None

    async def _listed(
        self, resource: Resource, *, namespace: str, query: Mapping[str, str], accept: str = JSON
    ) -> tuple[Body, int]:
        """Return the list as it was answered, with its bytes; an empty one if the kind does not exist."""
        path, subject = collection_path(resource, namespace), f"list of {resource.plural}"
        answer = await self._transport.call("GET", path, query=query, accept=accept, subject=subject)
        if answer.status == 404:
            self._discovery.forget()
            return {}, 0
        if answer.status >= 400 or not isinstance(answer.body, Mapping):
            raise ObjectRefused.with_status(subject, answer.message, answer.status)
        return answer.body, answer.size

    async def _pages(self, resource: Resource, namespace: str, form: _Form[Any]) -> AsyncGenerator[_Page]:
        """Yield a list page by page; one page without a version if the kind does not exist. Raises _Expired."""
        size, limit, query = 0, form.page, dict(form.query)
        for _ in range(_MOST_PAGES):
            try:
                listed, bytes_of_page = await self._listed(
                    resource, namespace=namespace, query={**query, "limit": str(limit)}, accept=form.list_accept
                )
            except AnswerTooLong:
                if limit == 1:
                    raise
                limit = max(1, limit // 4)
                continue
            except ObjectRefused as refusal:
                # The list has changed too much since its first page.
                if refusal.http_status == 410 and "continue" in query:
                    raise _Expired from refusal
                raise
            size += bytes_of_page
            if form.keeps_bodies and size > _LARGEST_LIST:
                raise _too_large("list", resource)
            items = self._items(resource, listed, form.read)
            # Every page has the version of the first one.
            yield _Page(items, self._version(resource, listed), bytes_of_page // (len(items) or 1))
            token = field_at(listed, "metadata", "continue")
            if not token:
                return
            query["continue"] = str(token)
        raise ObjectRefused(f"list of {resource.plural}", f"it has more than {_MOST_PAGES} pages")

    def _items(
        self, resource: Resource, listed: Body, read: Callable[[Any, Mapping[str, str]], Body] = named
    ) -> Sequence[Body]:
        # The items of a list lack apiVersion and kind, or have those of their shortened form.
        known = {"apiVersion": resource.api_version, "kind": resource.kind}
        with self._well_formed(f"list of {resource.plural}"):
            items = listed.get("items") or []
            if not isinstance(items, list):
                raise Malformed("items: a list expected")
            return [read(item, known) for item in items]

    def _version(self, resource: Resource, listed: Body) -> str:
        with self._well_formed(f"list of {resource.plural}"):
            return version_of(listed)

    def follow(
        self, resource: Resource, *, namespace: str = "", labels: str = "", name: str = ""
    ) -> AsyncGenerator[Seen[Body], None]:
        form = _Form(JSON, JSON, selection(labels, name), without_owners, _PAGE, keeps_bodies=True)
        return self._follow(resource, namespace, form)

    def follow_metadata(
        self, resource: Resource, keep: Callable[[Body], T], *, namespace: str = "", labels: str = ""
    ) -> AsyncGenerator[Seen[T], None]:
        form = _Form(_METADATA_LIST, _METADATA, selection(labels, ""), keep, _METADATA_PAGE, keeps_bodies=False)
        return self._follow(resource, namespace, form)

    def follow_kept(
        self,
        resource: Resource,
        keep: Callable[[Body], T],
        parts: Sequence[Sequence[str]],
        *,
        namespace: str = "",
        labels: str = "",
    ) -> AsyncGenerator[Seen[T], None]:
        form = _Form(JSON, JSON, selection(labels, ""), keep, _WHOLE_PAGE, keeps_bodies=False, parts=parts)
        return self._follow(resource, namespace, form)

    async def _follow(self, resource: Resource, namespace: str, form: _Form[T]) -> AsyncGenerator[Seen[T], None]:
        failures = unserved = expiries = 0
        version = ""
        begun = asyncio.get_running_loop().time()
        while True:
            try:
                if not version:
                    found, sizes, version = await self._all(resource, namespace, form)
                    total = sum(sizes.values())
                    unserved = 0 if version else min(unserved + 1, _MOST_FAILURES)
                    yield Seen(found, is_all=True)
                    del found  # the caller has it
                while version:
                    begun = asyncio.get_running_loop().time()
                    async with aclosing(self._watch(resource, namespace, form, version)) as changes:
                        async for change, body, size in changes:
                            failures = expiries = 0
                            version = version_of(body) or version
                            if change == "BOOKMARK":
                                continue
                            name = name_in(body, namespace)
                            total -= sizes.pop(name, 0)
                            if change == "DELETED":
                                yield Seen({}, gone=(name,))
                                continue
                            total += sizes.setdefault(name, size if form.keeps_bodies else 0)
                            if total > _LARGEST_LIST:
                                raise _too_large("watch", resource)
                            if len(sizes) > _MOST_OBJECTS:
                                raise _too_many("watch", resource)
                            yield Seen({name: form.keep(body)})
                    yield Seen({})  # the watch has not hung
                    # Limits the requests to a server that ends watches at once.
                    if asyncio.get_running_loop().time() - begun < _PAUSES.first_s:
                        await asyncio.sleep(_PAUSES.first_s)
            except _Expired:
                version = ""
                has_lasted = asyncio.get_running_loop().time() - begun > _EXPIRY_PAUSES.longest_s
                expiries = 1 if has_lasted else expiries + 1
                log.info("watch_expired", kind=resource.kind)
            except (ClusterUnavailable, WebhookUnavailable) as error:
                if (failures := failures + 1) >= _MOST_FAILURES:
                    raise
                unless_said(error).info("watch_broken", kind=resource.kind, reason=str(error))
                # It goes on where it broke; an event that cannot be read would break it again, and a list goes past it.
                if failures > 1:
                    version = ""
            # The version was too old, the kind is not served yet, or the connection broke.
            await asyncio.sleep(max(_PAUSES.after(max(failures, unserved) + 1), _EXPIRY_PAUSES.after(expiries)))

    async def _all(
        self, resource: Resource, namespace: str, form: _Form[T]
    ) -> tuple[dict[str, T], dict[str, int], str]:
        """Return what is kept of all objects, the bytes of each, and the version of their list. Raises _Expired."""
        objects: dict[str, T] = {}
        sizes: dict[str, int] = {}
        version = ""
        async for page in self._pages(resource, namespace, form):
            version = page.version
            for body in page.items:
                name = name_in(body, namespace)
                objects[name] = form.keep(body)
                sizes[name] = page.item_size if form.keeps_bodies else 0
            if len(objects) > _MOST_OBJECTS:
                raise _too_many("list", resource)
        return objects, sizes, version

    async def _watch(
        self, resource: Resource, namespace: str, form: _Form[Any], version: str
    ) -> AsyncGenerator[tuple[str, Body, int], None]:
        """Yield (ADDED, MODIFIED, DELETED or BOOKMARK; object; its bytes) until the server ends it. Raises _Expired."""
        asked = {
            **form.query,
            "watch": "true",
            # Bookmarks renew the version during quiet times, so that a restarted watch rarely needs a new list.
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(_WATCH_S),
        }
        try:
            path = collection_path(resource, namespace)
            with self._well_formed(f"watch of {resource.plural}"):
                async with self._transport.stream(path, query=asked, accept=form.watch_accept) as events:
                    async for event, size in events:
                        change, body = field_at(event, "type"), field_at(event, "object")
                        if change == "ERROR":
                            code = field_at(body, "code")
                            answer = Answer(code if isinstance(code, int) else 0, body)
                            raise ObjectRefused.with_status(
                                f"watch of {resource.plural}", answer.message, answer.status
                            )
                        if change == "BOOKMARK":
                            yield change, checked(body), size
                        elif change in ("ADDED", "MODIFIED", "DELETED"):
                            yield change, form.read(body), size
                        else:
                            raise Malformed("type: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR expected")
        except ObjectRefused as refusal:
            # 404: the kind is no longer served. 410: the version is too old. Both need a new start with a list.
            if refusal.http_status in (404, 410):
                raise _Expired from refusal
            if refusal.http_status in (0, 500):
                raise ClusterUnavailable(f"{self.endpoint}: {refusal}") from refusal
            raise

    async def apply(
        self, resource: Resource, key: ObjectKey, body: Body, *, dry_run: bool = False, takes_fields: bool = True
    ) -> Body:
        checking = {"dryRun": "All"} if dry_run else {}
        if not resource.is_persistent:
            return await self._create(resource, key, body, checking)
        path, query = object_path(resource, key), {"fieldManager": FIELD_MANAGER, **checking}

        async def send(sent: Body, is_forced: bool) -> Answer:
            how = {**query, "force": "true" if is_forced else "false"}
            return await self._write("PATCH", path, key, how, sent, content_type=APPLY)

        # Forced, because the manifest decides; without it, a field that a controller or person has set is a conflict.
        answer = await send(body, takes_fields)
        self._check_served(answer, key)
        if answer.status in (405, 415):
            if not takes_fields:
                raise ObjectRefused(str(key), NO_OWNERS)
            return await self._create(resource, key, body, checking)
        # A field that kubevnfm has patched itself has an owner of its own, and is no conflict.
        if answer.status == 409 and not takes_fields and is_own_conflict(answer, key):
            answer = await taken_from_own(key, body, partial(self.get, resource, key), send)
        return self._object(answer, key)

    async def create(self, resource: Resource, key: ObjectKey, body: Body) -> Body | None:
        query = {"fieldManager": FIELD_MANAGER}
        answer = await self._write("POST", collection_path(resource, key.namespace), key, query, body)
        if answer.status == 409 and field_at(answer.body, "reason") == "AlreadyExists":
            return None
        return self._object(answer, key)

    async def _create(self, resource: Resource, key: ObjectKey, body: Body, checking: Mapping[str, str]) -> Body:
        """Create or patch an object on a server without server-side apply (capi.md CR-015)."""
        query = {"fieldManager": FIELD_MANAGER, **checking}
        path = collection_path(resource, key.namespace)
        answer = await self._write("POST", path, key, query, body)
        self._check_served(answer, key)
        if answer.status == 409 and resource.is_persistent:
            answer = await self._write("PATCH", object_path(resource, key), key, query, body, content_type=_MERGE)
        return self._object(answer, key)

    def _check_served(self, answer: Answer, key: ObjectKey) -> None:
        if answer.is_unserved:
            # Discovery has shown the kind. So either one of several API servers is behind, or it was just removed.
            self._discovery.forget()
            raise ClusterUnavailable(f"{key}: {key.api_version} does not serve {key.kind} at present")

    async def keep(self, resource: Resource, key: ObjectKey, part: Body) -> None:
        named = {**part, "apiVersion": key.api_version, "kind": key.kind}
        named["metadata"] = {**(part.get("metadata") or {}), "name": key.name}
        path, query = object_path(resource, key), {"fieldManager": KEEPING_MANAGER}
        answer = await self._write("PATCH", path, key, query, named, content_type=APPLY)
        # 409: the part, or the object, is another one by now. 405, 415: a server that has no owners of fields.
        if answer.status not in (404, 405, 409, 415):
            self._object(answer, key)

    async def patch(self, resource: Resource, key: ObjectKey, change: Body) -> Body | None:
        query = {"fieldManager": FIELD_MANAGER}
        answer = await self._write("PATCH", object_path(resource, key), key, query, change, content_type=_MERGE)
        return None if answer.status == 404 else self._object(answer, key)

    async def _write(
        self, method: str, path: str, key: ObjectKey, query: Mapping[str, str], body: Body, *, content_type: str = JSON
    ) -> Answer:
        """Send an object; a refusal, in which the API server repeats values of it, shows none that is secret."""

        def mask(text: str) -> str:
            if key.kind != "Secret" or key.group:
                return self.masked(text)
            # The whole of a value that has another type than a text.
            shown = _REPEATED_VALUE.sub("got another type", text)
            return Mask([*self._secrets, *values_of(body)])(shown)

        return await self._transport.call(
            method, path, query=query, body=body, content_type=content_type, subject=str(key), mask=mask
        )

    async def pod_log(self, pod: ObjectKey, *, container: str, is_previous: bool = False) -> str:
        path = f"{object_path(PODS, pod)}/log"
        query = {"tailLines": str(_LOG_LINES), "limitBytes": str(_LOG_BYTES), "container": container}
        if is_previous:
            query["previous"] = "true"
        answer = await self._transport.call("GET", path, query=query, accept="*/*", subject=f"log of {pod}")
        if answer.status >= 400:
            return ""
        text = str(answer.body)
        # A cut text can end within a secret, which would not be found any more.
        return text if len(text.encode()) < _LOG_BYTES else text.rpartition("\n")[0]

    async def scale(self, resource: Resource, key: ObjectKey, *, replicas: int | None = None) -> Body | None:
        path, subject = f"{object_path(resource, key)}/scale", f"scale of {key}"
        if replicas is None:
            answer = await self._transport.call("GET", path, subject=subject)
        else:
            # A merge patch without a version: the count is absolute, and the last one that is set holds.
            answer = await self._transport.call(
                "PATCH", path, query={"fieldManager": FIELD_MANAGER}, body={"spec": {"replicas": replicas}},
                content_type=_MERGE, subject=subject,
            )  # fmt: skip
        return None if answer.status == 404 else self._object(answer, key)

    async def restart_machine(self, machine: ObjectKey) -> None:
        answer = await self._transport.call("PUT", restart_path(machine), body={}, subject=str(machine))
        # 409: it is being stopped or started already.
        if answer.status >= 400 and answer.status != 409:
            raise ObjectRefused.with_status(f"restart of {machine}", answer.message, answer.status)

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str = "",
        version: str = "",
        grace_period_s: int | None = None,
        propagation: Propagation = Propagation.BACKGROUND,
    ) -> bool:
        options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if uid:
            options["preconditions"] = {"uid": uid, **({"resourceVersion": version} if version else {})}
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        answer = await self._transport.call("DELETE", object_path(resource, key), body=options, subject=str(key))
        if answer.status == 404:
            return False
        if answer.status == 409 or (answer.status < 300 and not isinstance(answer.body, Mapping)):
            # Replaced by another object of this name, changed, refused (as by a webhook), or no words: a look says which.
            return True
        body = self._object(answer, key)
        return not (body.get("kind") == "Status" and field_at(body, "details", "uid") == uid != "")

    def _object(self, answer: Answer, key: ObjectKey) -> Body:
        # A 404 can mean that the kind itself has been removed.
        if answer.status == 404:
            self._discovery.forget()
        if answer.status >= 400 or not isinstance(answer.body, Mapping):
            raise ObjectRefused.with_status(str(key), answer.message or f"HTTP {answer.status}", answer.status)
        with self._well_formed(str(key)):
            return checked(answer.body)

    @contextmanager
    def _well_formed(self, subject: str) -> Iterator[None]:
        try:
            yield
        except Malformed as error:
            # Temporary: a proxy in front of the API server may answer in its place.
            raise ClusterUnavailable(
                f"{self.endpoint}: {subject}: not an answer of a Kubernetes API: {error}"
            ) from error


def _too_large(what: str, resource: Resource) -> ObjectRefused:
    return ObjectRefused(f"{what} of {resource.plural}", f"its objects have more than {_LARGEST_LIST} bytes")


def _too_many(what: str, resource: Resource) -> ObjectRefused:
    return ObjectRefused(f"{what} of {resource.plural}", f"it has more than {_MOST_OBJECTS} objects")


class _Expired(Exception):
    """The start version of the watch is too old; a new list is needed."""
