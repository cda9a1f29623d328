"""Reads manifests from packages, URLs and charts; URLs are fetched, and charts rendered, once in an operation (CR-004, CR-008)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from kubevnfm_clients.charts import ChartWanted, FetchedCharts
from kubevnfm_clients.ports import Packages
from kubevnfm_csar.artifact_order import ArtifactOrder
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.files import FolderFiles
from kubevnfm_csar.manifest import HASH_NAMES, read_index
from kubevnfm_csar.manifest_values import Hidden
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.placeholders import fill_in
from kubevnfm_csar.values_schema import schema_path
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import ChartOrder, HelmChart, ObjectsOrder
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.ids import derived_id
from kubevnfm_secrets import KeyRing, Secret, map_secrets
from kubevnfm_store.port import AlreadyExists, DocumentStore
from kubevnfm_store.query import Index, by

from kubevnfm_infra_k8s.adapters.downloads import Downloads
from kubevnfm_infra_k8s.adapters.helm import HelmProgram
from kubevnfm_infra_k8s.domain.charts import ChartTarget, templates_of
from kubevnfm_infra_k8s.domain.ports import Note
from kubevnfm_infra_k8s.domain.reading.manifests import FIELD

FETCHED: Final = "k8s_fetched_files"
INDEXES: Final = [Index(["vnfInstanceId"])]
_LARGEST: Final = 10 * 2**20


class PackageSources:
    """`ports.Sources`."""

    def __init__(
        self,
        packages: Packages,
        downloads: Downloads,
        charts: FetchedCharts,
        helm: HelmProgram,
        store: DocumentStore,
        key_ring: KeyRing,
        *,
        keeps: bool = True,
    ) -> None:
        self._packages, self._downloads, self._charts, self._helm = packages, downloads, charts, helm
        self._store, self._key_ring, self._keeps = store, key_ring, keeps

    def of_dry_runs(self) -> PackageSources:
        given = self._packages, self._downloads, self._charts, self._helm, self._store, self._key_ring
        return PackageSources(*given, keeps=False)

    async def read(self, order: ObjectsOrder, *, vnf_instance_id: str, operation_id: str) -> Sequence[tuple[str, str]]:
        if not order.def_files:
            raise InvalidInput(FIELD, "at least one file expected")
        paths = [each for each in order.def_files if not _is_url(each)]
        texts: dict[str, str] = {}
        if paths:
            folder = await self._packages.folder(order.package)
            texts = await asyncio.to_thread(_read_files, folder, paths)
        for each in order.def_files:
            if _is_url(each):
                texts[each] = await self._fetched(each, vnf_instance_id, operation_id)
        read = [(each, texts[each]) for each in dict.fromkeys(order.def_files)]
        if order.variables is None:
            return read
        values = {name: value.reveal(self._key_ring) for name, value in order.variables.items()}
        return await asyncio.to_thread(fill_in, read, values)

    async def ordering(self, order: ObjectsOrder) -> tuple[ArtifactOrder, Mapping[str, Any]]:
        name = order.order_artifact
        assert name is not None
        folder = await self._packages.folder(order.package)

        def read() -> ArtifactOrder:
            names, schema = FolderFiles(folder).names(), schema_path(name)
            texts = _read_files(folder, [name, schema] if schema in names else [name])
            return read_order(name, texts[name], names, texts.get(schema))

        values = map_secrets(order.values, lambda secret: Hidden(secret.reveal(self._key_ring)))
        return await asyncio.to_thread(read), values

    def secrets_in(self, order: ObjectsOrder) -> Sequence[str]:
        found = list((order.variables or {}).values())
        map_secrets(order.values, found.append)
        for chart in order.charts if isinstance(order, ChartOrder) else ():
            map_secrets(chart.values, found.append)
        return [each.reveal(self._key_ring) for each in found]

    async def rendered(
        self,
        package: PackageRef,
        chart: HelmChart,
        target: ChartTarget,
        *,
        digest: str = "",
        vnf_instance_id: str,
        operation_id: str,
        note: Note,
    ) -> Sequence[tuple[str, str]]:
        async def render() -> str:
            if digest:
                wanted = ChartWanted(oci=chart.path, digest=digest, package_id=package.package_id)
                place = await self._charts.archive(wanted)
            else:
                folder = await self._packages.folder(package)
                await asyncio.to_thread(_check_chart, folder, chart.path)
                place = folder / chart.path
            text = await self._helm.render(place, chart, target)
            await note(f"rendered by Helm {await self._helm.version()}")
            return text

        # Per package and values: the rollback of a change renders the earlier ones in the same operation.
        values = map_secrets(chart.values, lambda secret: secret.reveal(self._key_ring))
        facts = [values, digest, target.kubernetes_version, chart.release_name]
        given = self._key_ring.fingerprint(json.dumps(facts, sort_keys=True))
        named = operation_id, package.package_id, chart.path, given
        text = await self._kept(derived_id("rendered-chart", *named), vnf_instance_id, operation_id, render)
        return await asyncio.to_thread(templates_of, chart.path, text)

    async def forget(self, vnf_instance_id: str) -> None:
        await self._store.delete_many(FETCHED, by(vnfInstanceId=vnf_instance_id))

    async def _fetched(self, url: str, vnf_instance_id: str, operation_id: str) -> str:
        """Return the content that the URL had at the operation's first request."""
        document_id = derived_id("fetched-file", operation_id, url)
        return await self._kept(document_id, vnf_instance_id, operation_id, lambda: self._downloads.text(url))

    async def _kept(
        self, document_id: str, vnf_instance_id: str, operation_id: str, make: Callable[[], Awaitable[str]]
    ) -> str:
        """Return the text that the operation's first request has made."""
        if not self._keeps:
            return await make()
        stored = await self._store.get(FETCHED, document_id)
        # A retry must apply the same bytes, although a URL may have other content by now, or a chart uses chance.
        if stored is None:
            text = await make()
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
    texts: dict[str, str] = {}
    for name, raw in _verified(folder, names):
        try:
            texts[name] = raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidInput(FIELD, f"{name}: UTF-8 text expected") from error
    return texts


def _check_chart(folder: Path, chart: str) -> None:
    """Raise InvalidInput unless the chart is in the package, unmodified."""
    inside = f"{chart}/"
    names = [name for name in FolderFiles(folder).names() if name == chart or name.startswith(inside)]
    for _ in _verified(folder, names or [chart]):
        pass


def _verified(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    # The digests are checked again, because the cache is a folder that others could write to.
    files = FolderFiles(folder)
    try:
        listed = read_index(files, is_copy=True).listed
    except PackageRefused as error:
        raise InvalidInput(FIELD, f"the package is unreadable: {error}") from error
    present = files.names()
    for name in names:
        if name not in present:
            raise InvalidInput(FIELD, f"{name}: no such file in the package")
        if files.size(name) > _LARGEST:
            raise InvalidInput(FIELD, f"{name}: larger than 10 MiB")
        raw = (folder / name).read_bytes()
        entry = listed.get(name)
        if entry is not None and entry.hash and hashlib.new(HASH_NAMES[entry.algorithm], raw).hexdigest() != entry.hash:
            raise InvalidInput(
                FIELD, f"{name}: modified, its {entry.algorithm} digest differs from the package's manifest"
            )
        yield name, raw
