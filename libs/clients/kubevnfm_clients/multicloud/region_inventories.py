"""Where the kubeconfig of a cloud region is read from, in place of one in the request (multicloud.md MC-078)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from kubevnfm_secrets import Secret
from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, WithJsonSchema

from kubevnfm_clients.multicloud.types import HttpUrl, LabelValue, MultiCloudRequest, MultiCloudType, NamespaceName

_SUBDOMAIN: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$"
_PEM_BYTES: Final = 128 * 1024
_Text = Annotated[str, StringConstraints(min_length=1, max_length=255, pattern=r"^[!-~]+$")]
_Pem = Annotated[str, StringConstraints(min_length=1, max_length=_PEM_BYTES)]
_Hidden = Annotated[Secret, WithJsonSchema({"type": "string"})]


def _is_root(url: str) -> str:
    if "?" in url or "#" in url:
        raise ValueError("a URL without query and fragment expected")
    return url


def _is_user(name: str) -> str:
    if ":" in name:
        raise ValueError("a user name without a colon expected (RFC 7617)")
    return name


class _Read(MultiCloudRequest):
    refresh: int = Field(default=300, ge=60, le=86_400)
    """Seconds from one reading to the next."""


class AaiInventory(_Read):
    """The cloud region of the same owner and name in ONAP's A&AI, with its ``esr-system-info-list``."""

    type: Literal["aai"]
    url: Annotated[HttpUrl, AfterValidator(_is_root)]
    """The root, before ``/aai/v14``. Its address must be public, or one of the setting ``allowed_networks``."""
    path: Annotated[str, StringConstraints(max_length=1024, pattern=r"^(/([^/~]|~[01])*)+$")]
    """JSON Pointer to the kubeconfig in the cloud region: text, or base64 of it."""
    version: int = Field(default=14, ge=1, le=99)
    user: Annotated[_Text, AfterValidator(_is_user)] | None = None
    password: _Hidden | None = None
    client_certificate: _Pem | None = None
    client_key: _Hidden | None = None
    ca: _Pem | None = None
    """PEM of the CAs that its certificate must be of; absent: those of the setting ``outbound_ca_file``, or of the system."""


class ClusterProfileInventory(_Read):
    """A ClusterProfile (``multicluster.x-k8s.io/v1alpha1``) in the cluster of another region, which manages it."""

    type: Literal["cluster-profile"]
    cloud_region_id: Annotated[
        str,
        StringConstraints(max_length=129, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
    ]
    """``<owner>/<region>`` of the other region."""
    namespace: NamespaceName
    name: Annotated[str, StringConstraints(max_length=253, pattern=_SUBDOMAIN)]
    consumer: Annotated[LabelValue, StringConstraints(min_length=1)] = "kubevnfm"
    """The consumer whose namespace there has the credentials."""


class _Typed(MultiCloudType):
    type: Literal["aai", "cluster-profile"]


_CLASSES: Final[Mapping[str, type[AaiInventory | ClusterProfileInventory]]] = {
    "aai": AaiInventory, "cluster-profile": ClusterProfileInventory
}  # fmt: skip


def _by_type(given: Any) -> Any:
    # Not a discriminated union: its errors would name the class in the place.
    return _CLASSES[_Typed.model_validate(given).type].model_validate(given) if isinstance(given, Mapping) else given


RegionInventory = Annotated[AaiInventory | ClusterProfileInventory, BeforeValidator(_by_type)]
