"""Call-backs for the tests of credentials-receiver, and a twin of lcm-api."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import yaml
from kubevnfm_credentials_receiver.settings import Settings
from pydantic import SecretStr

MASTER = bytes(range(32))
TOKEN = "internal"
CREDENTIALS_TOKEN = "for vim-registry alone"
INSTANCE = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"


def a_kubeconfig(token: str = "swordfish") -> str:
    return yaml.safe_dump(
        {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [
                {"name": "c", "cluster": {"server": "https://10.0.0.5:6443", "insecure-skip-tls-verify": True}}
            ],
            "users": [{"name": "u", "user": {"token": token}}],
        }
    )


def a_body(
    *,
    event: str = "CREATED",
    instance: str = INSTANCE,
    uid: str = "uid-1",
    name: str = "workload",
    kubeconfig: str | None = None,
    register: bool = True,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "schemaVersion": "1",
        "event": event,
        "vnfInstanceId": instance,
        "cluster": {"name": name, "namespace": "default", "uid": uid, "endpoint": "https://10.0.0.5:6443"},
        "vim": {"register": register, "name": "workload-vim"},
    }
    if event != "DELETED":
        text = a_kubeconfig() if kubeconfig is None else kubeconfig
        body["credentials"] = {"format": "kubeconfig", "kubeconfig": base64.b64encode(text.encode()).decode()}
    return body


@dataclass
class KnownInstances:
    known: set[str] = field(default_factory=lambda: {INSTANCE})

    async def exists(self, vnf_instance_id: str) -> bool:
        return vnf_instance_id in self.known


def receiver_settings(**changes: Any) -> Settings:
    return Settings(
        port=0,
        internal_token=SecretStr(TOKEN),
        credentials_token=SecretStr(CREDENTIALS_TOKEN),
        keys=SecretStr("unused"),
        master_keys=SecretStr(base64.urlsafe_b64encode(MASTER).decode()),
        **changes,
    )
