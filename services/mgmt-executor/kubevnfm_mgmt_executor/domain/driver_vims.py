"""The VIM that a driver class of a package creates for its cluster: judged here, as the class may say anything (sequences.md 6.7)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from kubevnfm_events.common import ClusterAccess
from kubevnfm_events.mgmt import DriverVim
from kubevnfm_kit.ids import derived_id
from kubevnfm_sandbox.answers import place_of
from kubevnfm_secrets import Secret

from kubevnfm_mgmt_executor.domain.certificates import public_key_hash

VIM: Final = "vim"
"""The attribute of the answer."""
_PHASES: Final = ("instantiate_end", "heal_end")


def vim_id_of(value: object, instance_id: str) -> str | None:
    """Return the id of the VIM that the answer creates, as the class was given it; None: it creates none."""
    asked = _asked(value)
    return None if asked is None else derived_id("driver-vim", instance_id, str(asked.get("name")))


def secrets_of(value: object) -> frozenset[str]:
    """Return the texts of the VIM that are secret."""
    token = (_asked(value) or {}).get("bearer_token")
    return frozenset({token}) if isinstance(token, str) and token else frozenset()


def read_vim(value: object, given: Mapping[str, Any], reach: Collection[str]) -> DriverVim | None:
    """Return the VIM that the answer creates. Raises ValueError with the attribute that is malformed or not allowed.

    ``reach``: the addresses of the VNF's machines; its cluster has one of them.
    """
    asked, instance = _asked(value), given.get("vnf_instance") or {}
    if asked is None:
        return None
    vim_id = vim_id_of(value, instance["id"])
    assert vim_id is not None
    if given.get("operation") not in _PHASES:
        raise ValueError(f"create_vim: a VIM is created at {' and '.join(_PHASES)} only")
    name, url, token, ca = (asked.get(part) for part in ("name", "auth_url", "bearer_token", "ssl_ca_cert"))
    if not isinstance(name, str) or not re.fullmatch(r"[^\x00-\x1f\x7f]{1,255}", name):
        raise ValueError("create_vim: name: 1 to 255 printable characters expected")
    # CNFs and users know the VIM: a cluster that is built again has other access data, and the same VIM.
    own = given.get("cluster_vim_name")
    if own is not None and name != own:
        raise ValueError(f"create_vim: name: {own} expected, the VIM that the cluster is registered as")
    if own is None and name in (instance.get("vimConnectionInfo") or {}):
        raise ValueError(f"create_vim: name: the instance has a VIM {place_of((name,))} already")
    if not isinstance(token, str) or not re.fullmatch(r"[!-~]{1,8192}", token):
        raise ValueError("create_vim: auth_cred/bearer_token: the token of a service account expected")
    try:
        ca_hash = public_key_hash(ca if isinstance(ca, str) else "")
    except ValueError:
        raise ValueError("create_vim: auth_cred/ssl_ca_cert: the CA of the cluster as PEM expected") from None
    access = ClusterAccess(
        server=_endpoint(url, reach), bearer_token=Secret(token), ssl_ca_cert=str(ca), ssl_ca_cert_hash=ca_hash
    )
    return DriverVim(vim_id=vim_id, name=name, access=access)


def _asked(value: object) -> Mapping[str, Any] | None:
    asked = value.get(VIM) if isinstance(value, Mapping) else None
    return asked if isinstance(asked, Mapping) else None


def _endpoint(url: object, reach: Collection[str]) -> str:
    """Return the URL. It is called by services that reach more than the class does, so its host must be the VNF's own."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        host = ip_address(parts.hostname or "")
        is_plain = parts.scheme == "https" and not (parts.username or parts.query or parts.fragment)
        is_plain = is_plain and parts.path in ("", "/") and parts.port != 0
    except ValueError:
        is_plain = False
    if not is_plain:
        raise ValueError("create_vim: auth_url: https://<address>:<port> expected")
    if str(host) not in {_normal(one) for one in reach}:
        raise ValueError(f"create_vim: auth_url: {place_of((str(host),))} is no address of the VNF's machines")
    return f"https://{parts.netloc}"


def _normal(address: str) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        return address
