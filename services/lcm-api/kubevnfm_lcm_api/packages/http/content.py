"""The content of VNF packages: uploads and downloads (SOL005 9.4.4 to 9.4.7; api.md 7.4)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, Self

from aiohttp import ClientPayloadError, web
from kubevnfm_csar.files import inside
from kubevnfm_kit.errors import InvalidInput, NotFound
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import Secret
from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.packages import ClientCredentials
from kubevnfm_store.query import Stored
from pydantic import model_validator
from yarl import URL

from kubevnfm_lcm_api.http.bodies import accepts, check_accept, parse_body, read_json
from kubevnfm_lcm_api.http.errors import BodyTooLarge, NotAcceptable, UnsupportedMediaType
from kubevnfm_lcm_api.http.file_answers import answer_file
from kubevnfm_lcm_api.http.routes import ANY_TYPE, Answer, Parameter, Route
from kubevnfm_lcm_api.packages.domain.contents import ArtifactSelection, PackageContents
from kubevnfm_lcm_api.packages.http.context import TAGS, Addresses, package_of, services

ZIP: Final = "application/zip"
TEXT: Final = "text/plain"
_CONTENT_TYPES: Final = (ZIP, "application/octet-stream")
_CHUNK: Final = 256 * 1024
_SIGNATURES: Final = "include_signatures"
_NO_MANO, _NO_NON_MANO = "exclude_all_mano_artifacts", "exclude_all_non_mano_artifacts"
_SETS: Final = "select_non_mano_artifact_sets"
_EXTERNAL: Final = "include_external_artifacts"
_PARAMETERS: Final = (
    Parameter(_SIGNATURES, "With signatures and certificates, as an archive", is_flag=True),
    Parameter(_NO_MANO, "Without those that the VNFM uses", is_flag=True),
    Parameter(_NO_NON_MANO, "Without those that the VNFM does not use", is_flag=True),
    Parameter(_SETS, "Of those only these sets, by commas"),
    Parameter(_EXTERNAL, "With those outside of the package, which were fetched", is_flag=True),
)


class UploadBroken(InvalidInput):
    """The sender has disconnected during the upload. The answer reaches no one, but the upload ends in order."""


# --- content in -------------------------------------------------------------------------------------------------------


async def upload(request: web.Request) -> web.Response:
    """PUT .../package_content: 202 once the archive is on disk; it is checked in the background."""
    if request.content_type not in _CONTENT_TYPES:
        raise UnsupportedMediaType(f"Content-Type: {ZIP} expected, got {request.content_type}")
    limit_bytes = services(request).limit_bytes
    # Before the package becomes UPLOADING. A body without a length is limited while it arrives.
    if request.content_length is not None and request.content_length > limit_bytes:
        raise BodyTooLarge(f"a package may have up to {limit_bytes} bytes, this one has {request.content_length}")
    await services(request).onboarding.upload(request.match_info["id"], _chunks(request))
    return web.Response(status=202)


async def _chunks(request: web.Request) -> AsyncIterator[bytes]:
    """Yield the body. Raises UploadBroken if the sender disconnects before its end."""
    try:
        async for chunk in request.content.iter_chunked(_CHUNK):
            yield chunk
    except (ConnectionError, ClientPayloadError) as error:
        raise UploadBroken("", "the sender disconnected before the end of the archive") from error


class UploadFromUriRequest(SolRequest):
    """UploadVnfPackageFromUriRequest: V2.6.1's userName and password, V3's client credentials."""

    address_information: str
    user_name: str | None = None
    password: Secret | None = None
    auth_type: Literal["BASIC", "OAUTH2_CLIENT_CREDENTIALS"] | None = None
    params_oauth2_client_credentials: ClientCredentials | None = None

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> Self:
        if self.auth_type == "OAUTH2_CLIENT_CREDENTIALS" and self.params_oauth2_client_credentials is None:
            raise ValueError("authType OAUTH2_CLIENT_CREDENTIALS needs paramsOauth2ClientCredentials")
        if self.user_name is not None and self.params_oauth2_client_credentials is not None:
            raise ValueError("userName cannot stand with paramsOauth2ClientCredentials")
        if (self.auth_type == "BASIC" or self.password is not None) and self.user_name is None:
            raise ValueError("userName is needed with a password")
        if self.user_name is not None and ":" in self.user_name:
            raise ValueError("userName: a colon cannot be sent (RFC 7617)")
        return self

    def source(self) -> JsonObject:
        """Return the address and the credentials as the port expects them."""
        found: JsonObject = {"uri": Secret(self.address_information)}
        if self.params_oauth2_client_credentials is not None:
            params = self.params_oauth2_client_credentials
            found["paramsOauth2ClientCredentials"] = {
                "clientId": params.client_id,
                "clientPassword": params.client_password,
                "tokenEndpoint": params.token_endpoint,
            }
        elif self.user_name is not None:
            found.update(userName=self.user_name, password=self.password or Secret(""))
        return found


async def upload_from_uri(request: web.Request) -> web.Response:
    """POST .../package_content/upload_from_uri: 202; the content is fetched and checked in the background."""
    document = await read_json(request)
    _check_addresses(document)
    wanted = await parse_body(request, UploadFromUriRequest, document)
    await services(request).onboarding.upload_from_uri(request.match_info["id"], wanted.source())
    return web.Response(status=202)


def _check_addresses(document: Any) -> None:
    """Raise InvalidInput unless an address is of http or https and has no credentials.

    The document is the original one: `parse` hides addresses with credentials. Errors contain no value of it, as each
    may be a secret.
    """
    check_addresses(document, ("addressInformation",), "")


def check_addresses(document: Any, names: Sequence[str], place: str) -> None:
    """Raise InvalidInput as `_check_addresses`, for the addresses with these names and the token endpoint of an object."""
    if not isinstance(document, Mapping):
        return
    params = document.get("paramsOauth2ClientCredentials")
    of_token = (params, "tokenEndpoint", f"{place}paramsOauth2ClientCredentials/")
    for holder, name, at in (*((document, name, place) for name in names), of_token):
        value = holder.get(name) if isinstance(holder, Mapping) else None
        if not isinstance(value, str):
            continue  # missing or of the wrong type: `parse` reports it
        try:
            address = URL(value)
            is_http = address.scheme in {"http", "https"} and bool(address.host) and address.port is not None
        except ValueError:
            is_http = False
        if not is_http:
            raise InvalidInput(f"{at}{name}", "an http or https URI expected")
        if address.user is not None or address.password is not None:
            raise InvalidInput(f"{at}{name}", "credentials are expected in userName and password, not in the URI")


# --- content out ------------------------------------------------------------------------------------------------------


def _flag(request: web.Request, name: str) -> bool:
    """Return whether a flag is given. SOL013: it has no value; ``true`` is accepted too."""
    value = request.query.get(name)
    if value not in {None, "", "true"}:
        raise InvalidInput(name, "a flag is expected without a value")
    return value is not None


def _admits(request: web.Request, media_type: str) -> bool:
    return accepts(request.headers.get("Accept"), media_type)


async def _opened(request: web.Request) -> tuple[Stored, PackageContents]:
    """Return the package and its contents. Raises NotFound; PackageBusy unless it is ONBOARDED."""
    stored = await package_of(request)
    return stored, await services(request).catalogue.contents(stored)


def _tag(stored: Stored, *parts: str) -> str:
    """Return the strong tag of a part of the package's content, which never changes after onboarding."""
    text = "\0".join((stored.body["checksum"]["hash"], *parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


async def _file(request: web.Request, stored: Stored, name: str, content_type: str, **more: Any) -> web.Response:
    path = services(request).files.folder(stored.id) / name
    tag = _tag(stored, "file", name)
    return await answer_file(request, path, name=path.name, content_type=content_type, tag=tag, **more)


async def _archive(request: web.Request, stored: Stored, names: tuple[str, ...], **more: Any) -> web.Response:
    path = await services(request).files.selection(stored.id, names)
    tag = _tag(stored, "archive", *names)
    return await answer_file(request, path, name=f"{stored.id}.zip", content_type=ZIP, tag=tag, **more)


async def content(request: web.Request) -> web.StreamResponse:
    stored, _ = await _opened(request)
    path = services(request).files.content(stored.id)
    tag = f'"{stored.body["checksum"]["hash"]}"'
    return await answer_file(request, path, name=f"{stored.id}.zip", content_type=ZIP, tag=tag)


async def vnfd(request: web.Request) -> web.StreamResponse:
    """GET .../vnfd: the one file of the VNFD as text, or its files as an archive."""
    signatures = _flag(request, _SIGNATURES)
    stored, contents = await _opened(request)
    is_one_file = len(contents.vnfd_files) == 1 and not signatures
    if is_one_file and _admits(request, TEXT):
        return await _file(request, stored, contents.vnfd_files[0], TEXT, has_ranges=False)
    if not _admits(request, ZIP):
        reason = "signatures come as" if signatures else f"the VNFD has {len(contents.vnfd_files)} files, which come as"
        raise NotAcceptable(f"Accept: {reason} {ZIP}")
    return await _archive(request, stored, contents.vnfd_archive(signatures=signatures), has_ranges=False)


async def manifest(request: web.Request) -> web.StreamResponse:
    """GET .../manifest: the manifest as text; as an archive with its certificate, or if the caller accepts nothing else."""
    signatures = _flag(request, _SIGNATURES)
    stored, contents = await _opened(request)
    if contents.manifest is None:
        raise NotFound(f"VNF package {stored.id} has no manifest")
    has_certificate = signatures and contents.certificate is not None
    if not has_certificate and _admits(request, TEXT):
        return await _file(request, stored, contents.manifest, TEXT, has_ranges=False)
    if not _admits(request, ZIP):
        raise NotAcceptable(f"Accept: the manifest and its certificate come as {ZIP}")
    names = contents.manifest_archive() if signatures else (contents.manifest,)
    return await _archive(request, stored, names, has_ranges=False)


async def artifacts(request: web.Request) -> web.StreamResponse:
    """GET .../artifacts: an archive of the artifacts without images."""
    sets = request.query.get(_SETS)
    selection = ArtifactSelection(
        signatures=_flag(request, _SIGNATURES),
        mano=not _flag(request, _NO_MANO),
        non_mano=not _flag(request, _NO_NON_MANO),
        sets=None if sets is None else frozenset(sets.split(",")),
        external=_flag(request, _EXTERNAL),
    )
    stored, contents = await _opened(request)
    return await _archive(request, stored, contents.artifact_archive(selection))


async def artifact(request: web.Request) -> web.StreamResponse:
    """GET .../artifacts/{path}: any file of the package, images too, with its own media type; Accept is ignored."""
    signatures = _flag(request, _SIGNATURES)
    if signatures:
        check_accept(request, ZIP)
    path = request.match_info["path"]
    name = inside(path)
    if name is None:
        raise InvalidInput("artifactPath", "a path inside the package expected")
    stored, contents = await _opened(request)
    if name not in contents.files:
        raise NotFound(f"VNF package {stored.id} has no file {name}")
    if signatures:
        return await _archive(request, stored, (name, *contents.security.get(name, ())), has_ranges=False)
    entry = contents.artifacts.get(name)
    content_type = entry.content_type if entry is not None else "application/octet-stream"
    return await _file(request, stored, name, content_type)


def _uploads(at: Addresses) -> list[Route]:
    tag, path = TAGS[0], f"{at.of_one[0]}/package_content"
    taken = {202: Answer("Accepted; onboardingState shows the result of its check")}
    again = {409: "The package has content already, or is receiving it"}
    uri, summary, wanted = f"{path}/upload_from_uri", "Have the content fetched", UploadFromUriRequest
    return [
        Route(tag, "PUT", path, upload, "Upload the content", taken, body_types=_CONTENT_TYPES, refusals=again),
        Route(tag, "POST", uri, upload_from_uri, summary, taken, wanted, refusals=again),
    ]


def _downloads(tag: str, one: str, not_ready: Mapping[int, str]) -> list[Route]:
    """Return the downloads below one package. ``not_ready``: how packages without content are refused there."""
    ranges = {**not_ready, 416: "The range begins behind the end"}

    def with_etag(text: str, *media_types: str) -> Answer:
        return Answer(text, media_types=media_types, has_etag=True)

    whole, part = with_etag("The uploaded bytes", ZIP), with_etag("A part of it", ZIP)
    text = with_etag("One file as text, else an archive", TEXT, ZIP)
    signed = with_etag("The manifest as text; with its certificate an archive", TEXT, ZIP)
    file, piece = with_etag("The file", ANY_TYPE), with_etag("A part of it", ANY_TYPE)
    archives = {200: with_etag("An archive of them", ZIP), 206: part}
    get, signatures = partial(Route, tag, "GET", refusals=ranges), _PARAMETERS[:1]
    return [
        get(f"{one}/package_content", content, "Download the content", {200: whole, 206: part}),
        get(f"{one}/vnfd", vnfd, "Read the VNFD", {200: text}, query=signatures, refusals=not_ready),
        get(f"{one}/manifest", manifest, "Read the manifest", {200: signed}, query=signatures, refusals=not_ready),
        get(f"{one}/artifacts", artifacts, "Read all artifacts", archives, query=_PARAMETERS),
        get(f"{one}/artifacts/{{path:.+}}", artifact, "Read one artifact", {200: file, 206: piece}, query=signatures),
    ]


def routes(at: Addresses) -> list[Route]:
    """Return the routes below a package: uploads at its own address, downloads at both."""
    (of_id, of_vnfd), (by_id, by_vnfd) = TAGS, at.of_one
    not_ready = {409: "The package is not ONBOARDED"}
    return [*_uploads(at), *_downloads(of_id, by_id, not_ready), *_downloads(of_vnfd, by_vnfd, {})]
