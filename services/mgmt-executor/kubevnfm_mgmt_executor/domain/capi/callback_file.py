"""The file in which a script of a package finds what it needs for its call-back (capi.md CR-077, docs/credentials-receiver.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from kubevnfm_kit.json_types import JsonMapping

VARIABLE: Final = "KUBEVNFM_CALLBACK_FILE"
"""The environment variable that names the file."""


@dataclass(frozen=True)
class CallbackFile:
    """The content of the file."""

    url: str
    key_id: str
    key: bytes = field(repr=False)
    """The key of the instance alone."""
    ca_pem: str
    """The CAs of the receiver; "" if it has no TLS."""
    vnf_instance_id: str
    operation_id: str
    body: JsonMapping
    """The whole body of DELETED; of CREATED and ROTATED all but ``credentials.kubeconfig``."""

    def content(self) -> bytes:
        """Return the JSON."""
        return json.dumps(
            {
                "url": self.url,
                "keyId": self.key_id,
                "key": self.key.hex(),
                "tls": {"ca": self.ca_pem} if self.ca_pem else None,
                "vnfInstanceId": self.vnf_instance_id,
                "vnfLcmOpOccId": self.operation_id,
                "body": self.body,
            }
        ).encode()
