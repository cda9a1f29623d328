"""Packages and charts in OCI registries: manifests and blobs by digest (OCI distribution 1.1; multicloud.md MC-122, MC-048)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from collections.abc import AsyncGenerator, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
from kubevnfm_clients.bounded import json_in
from kubevnfm_csar.oci_references import OciReference
from yarl import URL

from kubevnfm_lcm_api.packages.adapters.transfers import SourceFailed, Target, Transfers, WrongContent, is_final
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_lcm_api.packages.domain.ports import Checksum, Content

_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_MANIFEST_BYTES: Final = 4 * 2**20
"""The size that registries must take (OCI distribution 1.1)."""
_TOKEN_BYTES: Final = 64 * 1024
_LOGINS_BYTES: Final = 2**20
_SCHEME: Final = re.compile(r" {0,8}([A-Za-z]{1,32})(?: |$)")
_PARAMETER: Final = re.compile(r'([A-Za-z]{1,32})="([^"\\]{0,2048})"')
_LONGEST_CHALLENGE: Final = 8192
_PACKAGES: Final = ("application/zip", "application/octet-stream")
"""The media types of a layer that is a CSAR: no specification defines one, and clients such as `oras` take any."""
_CHARTS: Final = ("application/vnd.cncf.helm.chart.content.v1.tar+gzip",)
_PROVENANCE: Final = "application/vnd.cncf.helm.chart.provenance.v1.prov"
"""A second layer that Helm pushes beside a chart if there is one. It is not read: the digest names the chart."""


@dataclass(frozen=True)
class Registries:
    """The registries that packages and charts are fetched from."""

    transfers: Transfers
    settings: ArtifactSettings
    hosts: frozenset[str]

    async def package(self, place: str, digest: str) -> Content:
        """Return the CSAR that is the one layer of a manifest. Raises SourceFailed."""
        return await self._layer(OciReference.from_text(place, digest), _PACKAGES, self.settings.artifact_limit_bytes)

    async def chart(self, place: str, digest: str, *, limit_bytes: int) -> Content:
        """Return the archive of a Helm chart that is a layer of a manifest. Raises SourceFailed."""
        return await self._layer(OciReference.from_text(place, digest), _CHARTS, limit_bytes)

    async def _layer(self, wanted: OciReference, media_types: Collection[str], limit_bytes: int) -> Content:
        manifest = Target(self._address(wanted, "manifests", wanted.digest), None, {"Accept": _MANIFEST}, self.hosts)
        raw, authorization = await self._manifest(manifest, wanted)
        if hashlib.sha256(raw).hexdigest() != wanted.hex:
            raise WrongContent(manifest.uri, "the manifest that it serves has another digest")
        digest, size = await asyncio.to_thread(_described, manifest.uri, raw, media_types)
        if size > limit_bytes:
            raise WrongContent(manifest.uri, f"its layer has {size} bytes, at most {limit_bytes} are fetched")
        target = replace(manifest, uri=self._address(wanted, "blobs", digest), authorization=authorization, headers={})
        response = await self.transfers.content(target)
        checksum = Checksum("sha256", digest.partition(":")[2])
        chunks = _of_size(target.uri, self.transfers.chunks(target, response, checksum=checksum), size)
        return Content(chunks, size)

    def _address(self, wanted: OciReference, kind: str, digest: str) -> URL:
        plain = {each.strip() for each in self.settings.artifact_plain_registries.split(",")}
        scheme = "http" if wanted.host in plain else "https"
        return URL(f"{scheme}://{wanted.host}/v2/{wanted.name}/{kind}/{digest}")

    async def _manifest(self, target: Target, wanted: OciReference) -> tuple[bytes, str | None]:
        """Return the manifest, and the Authorization that the registry wants for it. Raises SourceFailed."""
        response, raw = await self.transfers.body(target, limit_bytes=_MANIFEST_BYTES)
        if response.status == 401:
            authorization = await self._authorization(target, wanted, response.headers.get("WWW-Authenticate", ""))
            target = replace(target, authorization=authorization)
            response, raw = await self.transfers.body(target, limit_bytes=_MANIFEST_BYTES)
        if response.status != 200:
            said = {401: "refuses the credentials", 403: "refuses the credentials", 404: "does not have this manifest"}
            reason = said.get(response.status, f"answered {response.status}, 200 expected")
            raise SourceFailed(target.uri, f"the registry {reason}", is_final=is_final(response.status))
        return raw, target.authorization

    async def _authorization(self, target: Target, wanted: OciReference, challenge: str) -> str:
        """Return the Authorization header that answers a challenge. Raises SourceFailed."""
        login = await self._login(wanted.host)
        scheme = _SCHEME.match(challenge)
        name = scheme.group(1).lower() if scheme is not None else ""
        if name == "basic" and login is not None:
            return login
        if name != "bearer":
            raise SourceFailed(
                target.uri, "the registry wants credentials, and none are configured for it", is_final=True
            )
        parameters = dict(_PARAMETER.findall(challenge[:_LONGEST_CHALLENGE]))
        realm = self._realm(target, parameters.get("realm", ""))
        query = {"scope": f"repository:{wanted.name}:pull"}
        if parameters.get("service"):
            query["service"] = parameters["service"]
        asked = Target(realm.update_query(query), login, {"Accept": "application/json"}, self.hosts)
        response, raw = await self.transfers.body(asked, limit_bytes=_TOKEN_BYTES)
        answer = json_in(raw) if response.status == 200 else None
        found = answer if isinstance(answer, Mapping) else {}
        token = found.get("token") or found.get("access_token")
        # A token with other characters than visible ASCII cannot be sent in a header.
        if not isinstance(token, str) or not all("!" <= each <= "~" for each in token):
            said = f"the token endpoint of the registry answered {response.status} without a token"
            raise SourceFailed(realm, said, is_final=is_final(response.status))
        return f"Bearer {token}"

    def _realm(self, target: Target, text: str) -> URL:
        """Return the token endpoint of a challenge. Raises SourceFailed for one that must not get the credentials."""
        try:
            realm = URL(text)
        except ValueError:
            realm = URL("")
        secure = {"https"} if target.uri.scheme == "https" else {"http", "https"}
        if realm.scheme not in secure or not realm.host:
            reason = f"its token endpoint is none that is called: {' or '.join(secure)} expected"
            raise SourceFailed(target.uri, reason, is_final=True)
        if not target.admits(realm):
            raise SourceFailed(
                target.uri,
                "its token endpoint is on a host that is not allowed (setting artifact_hosts)",
                is_final=True,
            )
        return realm

    async def _login(self, host: str) -> str | None:
        """Return the Authorization of the credentials for a registry; read each time, as the file may have been replaced."""
        path = self.settings.artifact_registry_logins
        return None if path is None else await asyncio.to_thread(_read_login, path, host)


async def _of_size(uri: URL, chunks: AsyncGenerator[bytes], size: int) -> AsyncGenerator[bytes]:
    """Yield content of this size. Raises WrongContent for more or less."""
    received = 0
    try:
        async for chunk in chunks:
            received += len(chunk)
            if received > size:
                raise WrongContent(uri, f"{size} bytes expected, it sends more")
            yield chunk
    finally:
        await chunks.aclose()
    if received != size:
        raise WrongContent(uri, f"{size} bytes expected, it sent {received}")


def _described(uri: URL, raw: bytes, media_types: Collection[str]) -> tuple[str, int]:
    """Return the digest and the size of the one layer of a manifest. Raises WrongContent."""
    manifest: Any = json_in(raw)
    listed = manifest.get("layers") if isinstance(manifest, Mapping) else None
    layers = [each for each in listed if not _is_provenance(each)] if isinstance(listed, list) else []
    if len(layers) != 1 or not isinstance(layers[0], Mapping):
        raise WrongContent(uri, "a manifest of OCI with one layer expected")
    media_type, digest, size = (layers[0].get(name) for name in ("mediaType", "digest", "size"))
    if media_type not in media_types:
        raise WrongContent(uri, f"a layer of the media type {' or '.join(media_types)} expected")
    try:
        found = OciReference.from_text("oci://registry/layer", str(digest))
    except ValueError as error:
        raise WrongContent(uri, f"its layer: {error}") from error
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise WrongContent(uri, "its layer: a size expected")
    return found.digest, size


def _is_provenance(layer: object) -> bool:
    return isinstance(layer, Mapping) and layer.get("mediaType") == _PROVENANCE


def _read_login(path: Path, host: str) -> str | None:
    """Return the Authorization of the credentials that a file in the form of Docker's has for a host."""
    try:
        with path.open("rb") as file:
            found: Any = json_in(file.read(_LOGINS_BYTES))
        entry = found["auths"].get(host) or {}
        if "auth" in entry:
            user, _, password = base64.b64decode(entry["auth"], validate=True).decode().partition(":")
            return aiohttp.encode_basic_auth(user, password)
        return aiohttp.encode_basic_auth(entry["username"], entry["password"]) if "username" in entry else None
    # ValueError: also of the encoding, and of a name with a colon.
    except (OSError, TypeError, KeyError, AttributeError, ValueError) as error:
        unusable = "the setting artifact_registry_logins cannot be used"
        raise SourceFailed(URL(f"https://{host}"), unusable, is_final=True) from error
