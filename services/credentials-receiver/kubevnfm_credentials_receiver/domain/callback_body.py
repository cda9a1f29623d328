"""Reads and checks the body of a call-back: every error names the field and what was expected."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal

from kubevnfm_clients.awaited import CallbackEvent
from kubevnfm_clients.kubeconfig import self_contained_connection
from kubevnfm_clients.kubeconfig_values import check_server_url
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.printable import printable
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel


def _one_line(text: str) -> str:
    """Return the text. Raises ValueError for control characters, which stores, logs and headers do not take."""
    if printable(text) != text or "\n" in text or "\t" in text:
        raise ValueError("a text without control characters expected")
    return text


def _server(url: str) -> str:
    """Return the URL of an API server, or "". Raises ValueError."""
    try:
        return check_server_url(url, "") if url else url
    except Unprocessable as error:
        raise ValueError(error.reason) from None


Name = Annotated[str, Field(max_length=253), AfterValidator(_one_line)]
"""A name of Kubernetes has 253 characters at most."""
Id = Annotated[str, Field(max_length=128), AfterValidator(_one_line)]
VimName = Annotated[str, Field(max_length=255), AfterValidator(_one_line)]
VnfdId = Annotated[str, Field(max_length=1024), AfterValidator(_one_line)]
"""Packages choose it, and nothing limits its length."""
Server = Annotated[str, AfterValidator(_server)]


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )


class ClusterPart(_Part):
    """The workload cluster."""

    name: Name = Field(min_length=1)
    uid: Id = Field(min_length=1)
    namespace: Name = ""
    endpoint: Server = ""
    kubernetes_version: Id = ""
    contract: Id = ""
    infrastructure_provider: Id = ""


class CredentialsPart(_Part):
    """The credentials of the cluster."""

    format: Literal["kubeconfig"]
    kubeconfig: str = Field(min_length=1, repr=False)
    """Base64."""
    auth_type: Literal["bearer_token", "client_certificate"] | None = None
    expires_at: datetime | None = None


class VimPart(_Part):
    """The facts about the VIM that the sender was given. They decide nothing, and must not differ from the operation; None: left out."""

    register_vim: bool | None = Field(default=None, alias="register", strict=True)
    name: VimName | None = None
    type: Id | None = None
    is_default: bool | None = Field(default=None, strict=True)
    extra: dict[str, Any] | None = None


class Callback(_Part):
    """The body of a call-back."""

    schema_version: Literal["1"]
    event: CallbackEvent
    vnf_instance_id: Id = Field(min_length=1)
    vnf_lcm_op_occ_id: Id = ""
    vnfd_id: VnfdId = ""
    management_vim_id: Id | None = None
    cluster: ClusterPart
    credentials: CredentialsPart | None = None
    vim: VimPart = VimPart()

    @property
    def kubeconfig(self) -> str:
        """The kubeconfig as text. Raises Unprocessable unless it is complete and for one cluster."""
        field = "credentials.kubeconfig"
        if self.credentials is None:
            raise Unprocessable("credentials", f"required with {self.event}")
        try:
            text = base64.b64decode(self.credentials.kubeconfig, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise Unprocessable(field, "base64 of UTF-8 expected") from error
        self_contained_connection(text, field=field)
        return text


def read_callback(body: bytes) -> Callback:
    """Read a body. Raises InvalidInput (not a JSON object) and Unprocessable (a field; DELETED with credentials)."""
    try:
        document: object = read_foreign(body)
    except ValueError as error:
        raise InvalidInput("", "JSON expected") from error
    if not isinstance(document, dict):
        raise InvalidInput("", "a JSON object expected")
    try:
        read = Callback.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        # ``from None``: pydantic's error would show the whole body, and with it the credentials, in a traceback.
        raise Unprocessable(".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")) from None
    if read.event == "DELETED" and read.credentials is not None:
        raise Unprocessable("credentials", "no credentials expected with DELETED")
    return read
