"""Reads manifests from packages and URLs; each URL is fetched once in an operation (capi.md CR-004, CR-008)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_clients.ports import Packages
from kubevnfm_csar import FolderFiles, PackageRefused
from kubevnfm_csar.manifest import HASH_NAMES, read_index
from kubevnfm_events import PackageRef
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing, Secret
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import Index, by

from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.domain.manifests import FIELD

FETCHED: Final = "k8s_fetched_files"
INDEXES: Final = [Index(["vnfInstanceId"])]
_LARGEST: Final = 10 * 2**20


class PackageSources:
    """`ports.Sources`."""

    def __init__(self, packages: Packages, downloads: Downloads, store: DocumentStore, key_ring: KeyRing) -> None:
        self._packages, self._downloads = packages, downloads
        self._store, self._key_ring = store, key_ring

    async def read(
        self, package: PackageRef, def_files: Sequence[str], *, vnf_instance_id: str, operation_id: str
    ) -> Sequence[tuple[str, str]]:
        """See the port."""
        if not def_files:
            raise InvalidInput(FIELD, "at least one file expected")
        paths = [each for each in def_files if not _is_url(each)]
        texts: dict[str, str] = {}
        if paths:
            folder = await self._packages.folder(package)
            texts = await asyncio.to_thread(_read_files, folder, paths)
        for each in def_files:
            if _is_url(each):
                texts[each] = await self._fetched(each, vnf_instance_id, operation_id)
        return [(each, texts[each]) for each in dict.fromkeys(def_files)]

    async def forget(self, vnf_instance_id: str) -> None:
        """See the port."""
        await self._store.delete_many(FETCHED, by(vnfInstanceId=vnf_instance_id))

    async def _fetched(self, url: str, vnf_instance_id: str, operation_id: str) -> str:
        """Return the content that the URL had at the operation's first request."""
        document_id = derived_id("fetched-file", operation_id, url)
        stored = await self._store.get(FETCHED, document_id)
        # A retry must apply the same bytes, although the URL may have other content by now.
        if stored is None:
            text = await self._downloads.text(url)
            # Encrypted, because a manifest can be a Secret.
            content = Secret(text).document(self._key_ring)
            body = {"vnfInstanceId": vnf_instance_id, "operationId": operation_id, "content": content}
            try:
                await self._store.insert(FETCHED, document_id, body)
            except AlreadyExists:
                stored = await self._store.get(FETCHED, document_id)
            if stored is None:
                return text
        return Secret.from_sealed(stored.body["content"]["$sealed"]).reveal(self._key_ring)


def _is_url(name: str) -> bool:
    return urlsplit(name).scheme in ("http", "https")


def _read_files(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Read files of an unpacked package."""
    # The digests are checked again, because the cache is a folder that others could write to.
    files = FolderFiles(folder)
    try:
        listed = read_index(files, is_copy=True).listed
    except PackageRefused as error:
        raise InvalidInput(FIELD, f"the package is unreadable: {error}") from error
    texts: dict[str, str] = {}
    for name in names:
        if name not in files.names():
            raise InvalidInput(FIELD, f"{name}: no such file in the package")
        if files.size(name) > _LARGEST:
            raise InvalidInput(FIELD, f"{name}: larger than 10 MiB")
        raw = (folder / name).read_bytes()
        entry = listed.get(name)
        if entry is not None and entry.hash and hashlib.new(HASH_NAMES[entry.algorithm], raw).hexdigest() != entry.hash:
            raise InvalidInput(
                FIELD, f"{name}: modified, its {entry.algorithm} digest differs from the package's manifest"
            )
        try:
            texts[name] = raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(FIELD, f"{name}: UTF-8 text expected") from error
    return texts
