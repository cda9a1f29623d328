"""kubeconfig files: written by kubeadm, read by kubectl."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubevnfm_lab import yaml_text


@dataclass(frozen=True)
class Access:
    """The address of an API server and the credential of a user."""

    server: str
    ca_pem: str = ""
    token: str = ""
    client_certificate_pem: str = ""
    client_key_pem: str = ""
    verify: bool = True
    namespace: str = "default"


class BadKubeconfig(Exception):
    """A kubeconfig cannot be used; the text is the one that kubectl prints."""


def kubeconfig(access: Access, *, user: str, cluster: str = "kubernetes") -> str:
    """Return a kubeconfig with one context, as kubeadm writes it (with a token as its credential here)."""
    credential: dict[str, str] = {"token": access.token}
    if not access.token:
        credential = {
            "client-certificate": "/var/lib/kubelet/pki/kubelet-client-current.pem",
            "client-key": "/var/lib/kubelet/pki/kubelet-client-current.pem",
        }
    ca = base64.b64encode(access.ca_pem.encode()).decode()
    # In kubeadm's own order and form: scripts search for the line "server: https://…".
    document = {
        "apiVersion": "v1",
        "clusters": [{"cluster": {"certificate-authority-data": ca, "server": access.server}, "name": cluster}],
        "contexts": [{"context": {"cluster": cluster, "user": user}, "name": f"{user}@{cluster}"}],
        "current-context": f"{user}@{cluster}",
        "kind": "Config",
        "preferences": {},
        "users": [{"name": user, "user": credential}],
    }
    return yaml_text.dump(document, sort_keys=False)


def read_kubeconfig(file: Path, *, shown: str, context: str = "") -> Access:
    """Return the access of the file's current context; raise BadKubeconfig in kubectl's words."""
    try:
        document = yaml_text.load(file.read_text())
    except (FileNotFoundError, IsADirectoryError):
        raise BadKubeconfig(f"error: stat {shown}: no such file or directory") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadKubeconfig(f'error: error loading config file "{shown}": {error}') from error
    if not isinstance(document, dict):
        raise BadKubeconfig(f'error: error loading config file "{shown}": not a kubeconfig')
    name = context or str(document.get("current-context") or "")
    chosen = _named(document, "contexts", name).get("context") or {}
    if context and not chosen:
        raise BadKubeconfig(f'error: context "{context}" does not exist')
    cluster = _named(document, "clusters", str(chosen.get("cluster"))).get("cluster") or {}
    user = _named(document, "users", str(chosen.get("user"))).get("user") or {}
    try:
        return Access(
            server=str(cluster.get("server") or "http://localhost:8080"),
            ca_pem=_pem(cluster, "certificate-authority", file),
            token=str(user.get("token") or ""),
            client_certificate_pem=_pem(user, "client-certificate", file),
            client_key_pem=_pem(user, "client-key", file),
            verify=not cluster.get("insecure-skip-tls-verify"),
            namespace=str(chosen.get("namespace") or "default"),
        )
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadKubeconfig(f'error: error loading config file "{shown}": illegal base64 data: {error}') from error


def _named(document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
    entries = document.get(kind) or []
    return next((entry for entry in entries if isinstance(entry, dict) and entry.get("name") == name), {})


def _pem(entry: dict[str, Any], name: str, file: Path) -> str:
    if entry.get(f"{name}-data"):
        return base64.b64decode(str(entry[f"{name}-data"]), validate=True).decode()
    if entry.get(name):
        path = file.parent / str(entry[name])
        return path.read_text() if path.is_file() else ""
    return ""
