"""GlanceImages: the images of a VNF, identified by name and tag (Image API v2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Final

from kubevnfm_infra_openstack.adapters.tenants import Document, Tenant, reads
from kubevnfm_infra_openstack.adapters.together import together

_WAIT_FOR_CHUNK_S: Final = 120.0
_UPLOAD_SILENCE_S: Final = 600.0
"""How long Glance may take for one packet and, once it has all bytes, to move the image to its store. A command whose
deadline passes is not held up by it, but the thread is occupied until then."""


class GlanceImages:
    """Images of one tenant that carry an instance's tag."""

    def __init__(self, tenant: Tenant) -> None:
        self._tenant = tenant

    @reads("Glance")
    async def ensure(
        self,
        name: str,
        *,
        tag: str,
        disk_format: str,
        container_format: str,
        content: Callable[[], AsyncIterator[bytes]],
    ) -> str:
        for document in await self._tagged(tag):
            if document["name"] == name and document["status"] == "active":
                return str(document["id"])
            if document["name"] == name:
                # An earlier delivery did not finish the upload, and Glance cannot resume one.
                await self._delete(document["id"])
        chunks = content()
        # The first chunk is read now, so a missing file raises before an image is created for it.
        first = await anext(chunks, b"")
        response = await self._tenant.call(
            "image",
            "POST",
            "/images",
            body={
                "name": name,
                "disk_format": disk_format,
                "container_format": container_format,
                "visibility": "private",
                "tags": [tag],
            },
        )
        image_id = str(response.json()["id"])
        await self._tenant.call(
            "image",
            "PUT",
            f"/images/{image_id}/file",
            content=_blocking(first, chunks, asyncio.get_running_loop()),
            headers={"Content-Type": "application/octet-stream"},
            timeout_s=_UPLOAD_SILENCE_S,
        )
        return image_id

    @reads("Glance")
    async def tagged(self, tag: str) -> Mapping[str, str]:
        return {str(d["name"]): str(d["id"]) for d in await self._tagged(tag) if d["status"] == "active"}

    @reads("Glance")
    async def delete_tagged(self, tag: str) -> int:
        documents = await self._tagged(tag)
        await together(self._delete(document["id"]) for document in documents)
        return len(documents)

    async def _tagged(self, tag: str) -> list[Document]:
        response = await self._tenant.call("image", "GET", "/images", query={"tag": tag, "limit": "100"})
        # Deletion follows from this list, so it does not rely on the filter alone.
        return [d for d in response.json()["images"] if tag in d.get("tags", ())]

    async def _delete(self, id: str) -> None:
        await self._tenant.call("image", "DELETE", f"/images/{id}", fine=frozenset({404}))


def _blocking(first: bytes, chunks: AsyncIterator[bytes], loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """Yield the chunks in the uploading thread; each is read in the event loop when it is needed."""

    async def following() -> bytes | None:
        return await anext(chunks, None)

    yield first
    while (chunk := asyncio.run_coroutine_threadsafe(following(), loop).result(_WAIT_FOR_CHUNK_S)) is not None:
        yield chunk
