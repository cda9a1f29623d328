"""Artifacts outside of packages, which their manifests list by URI: fetched at onboarding (SOL004 4.3.2; SOL005 9.4.4a)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_csar.errors import External
from kubevnfm_csar.manifest import HASH_NAMES
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import KeyRing, Secret, opened, sealed, shown_url
from kubevnfm_sol.packages import ExternalArtifactsAccessConfig
from kubevnfm_store.port import StoreUnavailable

from kubevnfm_lcm_api.packages.domain.ports import Checksum, PackageFiles, PackageSources

ACCESS: Final = "internal/externalAccess"
"""The stored access configuration, secrets sealed."""


class ArtifactNotFetched(
    VnfmError, code="external-artifact-not-fetched", title="External artifact not fetched", status=502
):
    """An artifact outside of a package could not be fetched; the package is not used without it."""

    def __init__(self, uri: str, reason: VnfmError) -> None:
        super().__init__(f"{shown_url(uri)}: {reason}")


@dataclass(frozen=True)
class ExternalArtifacts:
    """Fetches the artifacts, each with the access configuration that callers have given for it."""

    files: PackageFiles
    sources: PackageSources
    ring: KeyRing
    limit_bytes: int
    """The largest artifact."""
    total_bytes: int
    """The limit of all artifacts that one check of a package fetches."""

    async def fetch(self, package_id: str, body: JsonMapping, missing: Iterable[External]) -> None:
        """Store the artifacts beside the package. ``body``: its document. Raises ArtifactNotFetched, StoreUnavailable."""
        configured = _by_uri(body)
        left = self.total_bytes
        for one in missing:
            try:
                async with self.sources.open(_source(one, configured.get(one.uri, {}))) as content:
                    limit_bytes = min(left, self.limit_bytes)
                    upload = await self.files.store_external(package_id, one, content.chunks, limit_bytes=limit_bytes)
            except StoreUnavailable:
                raise
            except VnfmError as error:
                raise ArtifactNotFetched(one.uri, error) from error
            left -= upload.size_bytes

    def stored(self, config: ExternalArtifactsAccessConfig) -> JsonObject:
        """Return a configuration as it is stored."""
        return {ACCESS: sealed({"artifact": [_entry(one) for one in config.artifact]}, self.ring)}


def shown(body: JsonMapping) -> JsonObject:
    """Return the configuration of a package without credentials and without what may be a token."""
    found = [
        {
            "artifactUri": uri,
            **({"overrideUri": one["shownUri"]} if "shownUri" in one else {}),
            **({"authType": one["authType"]} if "authType" in one else {}),
        }
        for uri, one in _by_uri(body).items()
    ]
    return {"artifact": found} if found else {}


def unused(body: JsonMapping, uris: Sequence[str]) -> Sequence[str]:
    """Return a warning for each artifact of the configuration that the package does not list."""
    return [
        f"ext_artifacts_access: the package lists no artifact {shown_url(uri)}"
        for uri in _by_uri(body)
        if uri not in uris
    ]


def _by_uri(body: JsonMapping) -> Mapping[str, JsonMapping]:
    config = opened(body.get("internal", {}).get("externalAccess")) or {}
    return {one["artifactUri"]: one for one in config.get("artifact", ())}


def _entry(one: Any) -> JsonObject:
    found: JsonObject = {"artifactUri": one.artifact_uri}
    if one.override_uri is not None:
        found |= {"overrideUri": Secret(one.override_uri), "shownUri": shown_url(one.override_uri)}
    if one.params_oauth2_client_credentials is not None:
        params = one.params_oauth2_client_credentials
        found["paramsOauth2ClientCredentials"] = {
            "clientId": params.client_id,
            "clientPassword": params.client_password,
            "tokenEndpoint": params.token_endpoint,
        }
        found["authType"] = "OAUTH2_CLIENT_CREDENTIALS"
    elif one.params_basic is not None:
        found |= {"userName": one.params_basic.user_name, "password": one.params_basic.password, "authType": "BASIC"}
    return found


def _source(one: External, access: JsonMapping) -> JsonObject:
    """Return where an artifact is fetched from, and with which credentials."""
    names = ("paramsOauth2ClientCredentials", "userName", "password")
    return {
        "uri": access.get("overrideUri") or Secret(one.uri),
        "checksum": Checksum(HASH_NAMES[one.algorithm], one.hash),
        **{name: access[name] for name in names if name in access},
    }
