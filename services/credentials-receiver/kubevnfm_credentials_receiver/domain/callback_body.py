"""Reads and checks the body of a call-back: every error names the field and what was expected."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import Literal

from kubevnfm_clients.kubeconfig import kubeconfig_connection
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_json import read_foreign
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel


class _Part(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )


class ClusterPart(_Part):
    """The workload cluster."""

    name: str = Field(min_length=1, max_length=253)
    uid: str = Field(min_length=1, max_length=128)
    namespace: str = ""
    endpoint: str = ""
    kubernetes_version: str = ""
    contract: str = ""
    infrastructure_provider: str = ""


class CredentialsPart(_Part):
    """The credentials of the cluster."""

    format: Literal["kubeconfig"]
    kubeconfig: str = Field(min_length=1, repr=False)
    """Base64."""
    auth_type: Literal["bearer_token", "client_certificate"] | None = None
    expires_at: datetime | None = None


class VimPart(_Part):
    """How to register the cluster as a VIM."""

    register_vim: bool = Field(default=True, alias="register")
    name: str | None = Field(default=None, max_length=255)
    type: str = "ETSINFV.KUBERNETES.V_1"
    is_default: bool = False


class Callback(_Part):
    """The body of a call-back."""

    schema_version: Literal["1"]
    event: Literal["CREATED", "ROTATED", "DELETED"]
    vnf_instance_id: str = Field(min_length=1, max_length=128)
    vnf_lcm_op_occ_id: str = ""
    vnfd_id: str = ""
    management_vim_id: str | None = None
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
        except (binascii.Error, UnicodeDecodeError) as error:
            raise Unprocessable(field, "base64 of UTF-8 expected") from error
        kubeconfig_connection(text, field=field)
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
        raise Unprocessable(".".join(map(str, first["loc"])), first["msg"]) from None
    if read.event == "DELETED" and read.credentials is not None:
        raise Unprocessable("credentials", "no credentials expected with DELETED")
    return read
