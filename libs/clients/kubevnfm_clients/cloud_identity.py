"""The login to an OpenStack that a workload cluster is given, as vim-registry hands it over (capi.md CR-049)."""

from __future__ import annotations

from typing import Literal

from kubevnfm_secrets import SecretParams
from pydantic import BaseModel, ConfigDict

IdentityKind = Literal["own", "created", "kept", "password"]


class CloudIdentity(BaseModel):
    """An entry of ``clouds.yaml``."""

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    kind: IdentityKind
    """``own``: the VIM's application credential; ``created``: one that was made for this cluster now; ``kept``: the one that the
    caller has named, whose secret Keystone shows no more; ``password``: the VIM's user, since Keystone makes no application credential."""
    cloud: SecretParams
    """The entry; ``kept``: its secret is missing."""
    cacert: str = ""
    """PEM of the CAs that sign the certificates of the cloud; "": the clients' own CAs."""
    credential_id: str | None = None
    """The id of the application credential; None: ``password``."""
    note: str = ""
    """For operators: why it is the password, or which credential is left in Keystone."""


def credential_name(vnf_instance_id: str) -> str:
    """Return the name in Keystone by which operators find the application credential that was made for an instance."""
    return f"kubevnfm-{vnf_instance_id}"
