"""Call-backs for the tests of credentials-receiver, and a twin of lcm-api."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

import yaml
from kubevnfm_clients.awaited import AwaitedCallback
from kubevnfm_credentials_receiver.settings import Settings
from pydantic import SecretStr

MASTER = bytes(range(32))
TOKEN = "internal"
CREDENTIALS_TOKEN = "for vim-registry alone"
INSTANCE = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
AWAITED = AwaitedCallback(
    event="CREATED",
    operation_id="op-1",
    vnfd_id="vnfd-1",
    management_vim_id="vim-management",
    cluster_name="workload",
    cluster_namespace="default",
    cluster_uid="uid-1",
    vim_name="workload-vim",
)


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
    """Return the body of a call-back, as the operation that it names awaits it."""
    operation = an_operation(event, name=name, uid=uid, register=register)
    body: dict[str, Any] = {
        "schemaVersion": "1",
        "event": event,
        "vnfInstanceId": instance,
        "vnfLcmOpOccId": operation,
        "cluster": {"name": name, "namespace": "default", "uid": uid, "endpoint": "https://10.0.0.5:6443"},
        "vim": {"register": register, "name": "workload-vim"},
    }
    if event != "DELETED":
        text = a_kubeconfig() if kubeconfig is None else kubeconfig
        body["credentials"] = {"format": "kubeconfig", "kubeconfig": base64.b64encode(text.encode()).decode()}
    return body


@dataclass
class AwaitingLcm:
    """The twin of lcm-api: each operation awaits what its id says (`an_operation`), for the instances that exist."""

    known: set[str] = field(default_factory=lambda: {INSTANCE})
    present: AwaitedCallback | None = None
    """Awaited for a call-back that names no such operation."""
    asked: list[str] = field(default_factory=list)
    """The operations that were named."""

    async def awaited(self, vnf_instance_id: str, operation_id: str) -> AwaitedCallback | None:
        self.asked.append(operation_id)
        if vnf_instance_id not in self.known:
            return None
        if operation_id.count("|") != 3:
            return self.present
        event, name, uid, register = operation_id.split("|")
        facts = {"event": event, "cluster_name": name, "cluster_uid": uid, "register_vim": register == "True"}
        return AwaitedCallback.model_validate({**AWAITED.model_dump(), **facts, "operation_id": operation_id})


def an_operation(event: str, *, name: str, uid: str, register: bool) -> str:
    """Return the id of an operation that awaits this call-back; everything else is as in `AWAITED`."""
    return f"{event}|{name}|{uid}|{register}"


def receiver_settings(**changes: Any) -> Settings:
    return Settings(
        port=0,
        internal_token=SecretStr(TOKEN),
        credentials_token=SecretStr(CREDENTIALS_TOKEN),
        keys=SecretStr("unused"),
        master_keys=SecretStr(base64.urlsafe_b64encode(MASTER).decode()),
        **changes,
    )
