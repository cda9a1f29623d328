"""What of a kubeconfig a VIM needs: endpoint, CA and one user's credentials."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from kubevnfm_kit.errors import InvalidInput


def access_of(kubeconfig: Any) -> tuple[str, dict[str, Any]]:
    """Return the endpoint and ``auth_cred`` of the current context (Kubernetes docs: kubeconfig v1).

    Raises: InvalidInput for files, exec plug-ins, or anything but one usable context.
    """
    if not isinstance(kubeconfig, Mapping):
        raise InvalidInput("kubeconfig", "a YAML mapping expected")
    context = _named(kubeconfig, "contexts", kubeconfig.get("current-context"), "context")
    cluster = _named(kubeconfig, "clusters", context.get("cluster"), "cluster")
    user = _named(kubeconfig, "users", context.get("user"), "user")
    if "exec" in user or "auth-provider" in user:
        raise InvalidInput("kubeconfig/users", "a token or client certificate expected, not a program")
    cred: dict[str, Any] = {}
    if "certificate-authority-data" in cluster:
        cred["ssl_ca_cert"] = _decoded(cluster["certificate-authority-data"], "certificate-authority-data")
    if user.get("token"):
        cred["bearer_token"] = str(user["token"])
    elif "client-certificate-data" in user and "client-key-data" in user:
        cred["client_certificate"] = _decoded(user["client-certificate-data"], "client-certificate-data")
        cred["client_key"] = _decoded(user["client-key-data"], "client-key-data")
    else:
        raise InvalidInput("kubeconfig/users", "token, or client-certificate-data and client-key-data, expected")
    return str(cluster.get("server", "")), cred


def _named(kubeconfig: Mapping[str, Any], listing: str, name: Any, inner: str) -> Mapping[str, Any]:
    entries = kubeconfig.get(listing)
    if isinstance(entries, Sequence):
        for entry in entries:
            if isinstance(entry, Mapping) and entry.get("name") == name and isinstance(entry.get(inner), Mapping):
                return dict(entry[inner])
    raise InvalidInput(f"kubeconfig/{listing}", f"no entry named {name}")


def _decoded(text: Any, name: str) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInput(f"kubeconfig/{name}", "base64 of PEM expected") from error
