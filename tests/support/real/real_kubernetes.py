"""The real Kubernetes API server of `make test-kubernetes`, given by environment variables (docs/real-kubernetes.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kubevnfm_events import VimConnection
from kubevnfm_secrets import Secret

_PREFIX = "KUBEVNFM_KUBERNETES_"


@dataclass(frozen=True)
class RealKubernetes:
    """A cluster that the tests may use, with a token that permits everything."""

    endpoint: str
    token: str
    ca_pem: str
    kill: Sequence[str] = ()
    """The command that kills the API server; () if there is none."""
    start: Sequence[str] = ()
    """The command that starts it again."""

    @classmethod
    def from_environment(cls) -> RealKubernetes | None:
        """Return the cluster that the environment names, None if it names none."""
        endpoint = os.environ.get(f"{_PREFIX}ENDPOINT", "")
        if not endpoint:
            return None
        token, ca_pem = (Path(os.environ[f"{_PREFIX}{name}_FILE"]).read_text() for name in ("TOKEN", "CA"))
        kill, start = (os.environ.get(f"{_PREFIX}{name}", "").split() for name in ("KILL", "START"))
        return cls(endpoint.rstrip("/"), token.strip(), ca_pem, kill, start)

    def vim(self, token: str | None = None) -> VimConnection:
        """Return the connection, with another token if one is given."""
        return VimConnection(
            vim_id="vim",
            vim_type="ETSINFV.KUBERNETES.V_1",
            interface_info={"endpoint": self.endpoint, "ssl_ca_cert": self.ca_pem},
            access_info={"bearer_token": Secret(token or self.token)},
        )
