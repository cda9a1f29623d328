"""Which certificate of a Kubernetes API server is trusted, as its VIM says in ``ssl_ca_cert`` (capi.md CR-007)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

NOT_VERIFIED: Final = "None"
"""The text of Tacker's clients: the certificate is not verified."""
SYSTEM_CAS: Final = "system"
"""The certificate is of a CA of the system on which kubevnfm runs."""


@dataclass(frozen=True)
class ClusterTrust:
    """How the certificate of an API server is verified."""

    ca_pem: str = field(default="", repr=False)
    """"": the system's certificate authorities."""
    is_verified: bool = True


def cluster_trust(ssl_ca_cert: object, *, skips_verification: bool = False) -> ClusterTrust:
    """Return the trust that ``ssl_ca_cert`` means; in requests its line ends are often the two characters ``\\n``.

    Requests without it are refused. A kubeconfig without a CA, and messages of earlier versions, mean the system's CAs.
    """
    if skips_verification or ssl_ca_cert == NOT_VERIFIED:
        return ClusterTrust(is_verified=False)
    if not ssl_ca_cert or ssl_ca_cert == SYSTEM_CAS:
        return ClusterTrust()
    return ClusterTrust(str(ssl_ca_cert).replace("\\n", "\n"))
