"""Values of a later request that replace those of the instantiation, for its own operation (sequences.md 2.1 and 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from kubevnfm_kit.errors import InvalidInput, Unprocessable

from kubevnfm_cluster.forms import LoginNames, Part
from kubevnfm_cluster.parameters import (
    CLUSTER,
    ROOT,
    ClusterParameters,
)
from kubevnfm_cluster.registries import REGISTRIES, Registry
from kubevnfm_cluster.request import read_cluster_parameters, read_part
from kubevnfm_cluster.ssh_login import Password, PrivateKey, SshLogin, UserName

_GROUPS: Final = ("master_node", "worker_node", "storage_server")
_SECRETS: Final = ("password", "private_key", "private_key_passphrase")
_DESTINATION: Final = ("username", "ssh_port", "bastion")
"""The attributes that a stored password or key of a login is for, beside the machines: a change needs the secret again."""
_LOGIN: Final = frozenset({*_DESTINATION, *_SECRETS})
_MERGED: Final = ("proxy", "x_timeouts", "x_drain", "x_mirror")
"""Objects of which a request may give some attributes."""
_FREE: Final = frozenset({"script_path", "x_install_script", "x_max_parallel_nodes", *_MERGED})
"""Attributes that a request may change. Every other one describes the cluster as it is."""


class _OneTimeLogins(Part):
    """Logins beside the cluster's object, as Tacker's v1 API has them."""

    logins: ClassVar = (LoginNames("master_node_", is_optional=True), LoginNames("worker_node_", is_optional=True))

    master_node_username: UserName | None = None
    master_node_password: Password | None = None
    master_node_private_key: PrivateKey | None = None
    master_node_private_key_passphrase: Password | None = None
    worker_node_username: UserName | None = None
    worker_node_password: Password | None = None
    worker_node_private_key: PrivateKey | None = None
    worker_node_private_key_passphrase: Password | None = None


def with_overrides(
    present: ClusterParameters, stored: Mapping[str, object], given: Mapping[str, object]
) -> ClusterParameters:
    """Return the cluster of an instance for an operation whose request has the additionalParams ``given``.

    ``present``: as it was instantiated; ``stored``: the additionalParams that it was read from; secrets may be sealed. Packages
    for Tacker's v2 API send all parameters again: equal ones are accepted.
    Raises: InvalidInput for a malformed value, Unprocessable for one that the operation cannot change, by its field.
    """
    section, logins = given.get(CLUSTER), _logins(given)
    if section is None and not logins:
        return present
    if section is not None and not isinstance(section, Mapping):
        raise InvalidInput(ROOT, "an object expected")
    before = stored[CLUSTER]
    assert isinstance(before, Mapping)
    merged = dict(before)
    for name, value in (section or {}).items():
        merged[name] = _merged(name, before.get(name), value)
    for group, login in logins.items():
        merged[group] = _merged(group, merged.get(group), login)
    wanted = read_cluster_parameters({CLUSTER: merged})
    # From the same text as `wanted`: two seals of one secret, as in two documents, are not known to be equal.
    present = read_cluster_parameters(stored)
    _check_same(present, wanted)
    for group in _GROUPS:
        # The sealed secret of the instantiation cannot be equal to one that the request gives.
        _check_login(group, getattr(present, group), getattr(wanted, group))
    return wanted


def _logins(given: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return the one-time login of each group that has one."""
    read = read_part(_OneTimeLogins, given, path="additionalParams")
    found: dict[str, dict[str, object]] = {}
    for name in type(read).model_fields:
        value, group = getattr(read, name), next(group for group in _GROUPS if name.startswith(group))
        if value is not None:
            found.setdefault(group, {})[name.removeprefix(f"{group}_")] = value
    return found


def _merged(name: str, before: object, given: object) -> object:
    if given is None or given == "":
        return before
    if name not in (*_GROUPS, *_MERGED) or not isinstance(given, Mapping) or not isinstance(before, Mapping):
        return given
    merged = dict(before)
    # One login replaces the other as a whole: a password beside a key would be refused.
    if name in _GROUPS and any(given.get(one) for one in _SECRETS):
        merged = {key: value for key, value in merged.items() if key not in _SECRETS}
    return {**merged, **{key: value for key, value in given.items() if value is not None and value != ""}}


def _check_same(present: ClusterParameters, wanted: ClusterParameters) -> None:
    for name in ClusterParameters.model_fields:
        if name in _FREE:
            continue
        old, new = getattr(present, name), getattr(wanted, name)
        if isinstance(old, SshLogin) and isinstance(new, SshLogin):
            for attribute in type(old).model_fields:
                if attribute not in _LOGIN and getattr(old, attribute) != getattr(new, attribute):
                    raise _fixed(f"{name}/{attribute}")
        elif name == REGISTRIES:
            # Their logins may be new ones: a password can have changed since the instantiation.
            if [_without_login(one) for one in old] != [_without_login(one) for one in new]:
                raise _fixed(name)
        elif old != new:
            raise _fixed(name)


def _check_login(group: str, old: SshLogin | None, new: SshLogin | None) -> None:
    """Raise InvalidInput for a stored secret with another user, at another port, or behind another bastion than it was given for."""
    changed = next((name for name in _DESTINATION if getattr(old, name, None) != getattr(new, name, None)), None)
    if old is None or new is None or changed is None:
        return
    for name in ("password", "private_key"):
        secret = getattr(new, name)
        if secret is not None and secret == getattr(old, name):
            reason = f"required again, because {changed} changes: a stored secret is only for the user and host that it was given for"
            raise InvalidInput(f"{ROOT}/{group}/{name}", reason)


def _without_login(registry: Registry) -> Registry:
    return registry.model_copy(update={"username": None, "password": None})


def _fixed(place: str) -> Unprocessable:
    return Unprocessable(
        f"{ROOT}/{place}", "differs from that of the instantiation, which this operation cannot change"
    )
