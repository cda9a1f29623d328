"""The Secrets with the login to an OpenStack that the objects of a workload cluster name (capi.md CR-049).

Provider and clusterctl read them as Cluster API Provider OpenStack documents: ``clouds.yaml`` with one entry for each
``identityRef.cloudName``, and ``cacert``. Their content is made from what vim-registry gives, is sent, and is stored nowhere else.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from kubevnfm_clients.ports import CloudIdentities
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.writing import write_yaml
from kubevnfm_secrets import KeyRing, revealed

from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    SECRETS,
    Body,
    ObjectKey,
    Wanted,
    digest_of,
    field_at,
    labels_of,
)
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.planning.preparing import prepared
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.manifests import Manifest
from kubevnfm_infra_k8s.domain.release import Release

log = structlog.get_logger()

FIELD: Final = "additionalParams.capi.openstack_vim_id"
"""The parameter; also the ``file`` of such a Secret in the inventory."""
_GROUP: Final = "infrastructure.cluster.x-k8s.io"
_CLOUDS: Final = "clouds.yaml"
_MOVED: Final = {"clusterctl.cluster.x-k8s.io/move": "true"}
"""``clusterctl move`` takes the Secret along with the cluster."""
_ID, _SECRET = "application_credential_id", "application_credential_secret"


def cloud_secrets(objects: Sequence[Wanted]) -> Mapping[ObjectKey, Sequence[str]]:
    """Return the Secrets that the objects name as their identity, each with the names of the clouds to have in it.

    Raises InvalidInput if no object names one, and for one that the files have themselves.
    """
    found: dict[ObjectKey, list[str]] = {}
    for each in objects:
        if each.key.group == _GROUP:
            for name, cloud in _identities(each.body.get("spec")):
                clouds = found.setdefault(ObjectKey("v1", "Secret", each.key.namespace, name), [])
                clouds += [cloud] if cloud not in clouds else []
    if not found:
        raise InvalidInput(
            FIELD, "an identityRef with name and cloudName of a Secret expected in the files; they have none"
        )
    for each in objects:
        if each.key in found:
            raise InvalidInput(FIELD, f"{each.key} is in {each.file}: leave it out of the files, or leave this out")
    return found


def _identities(spec: object) -> Iterator[tuple[str, str]]:
    """Yield the name of the Secret and of the cloud of each ``identityRef`` in a spec, that of a template included."""
    if isinstance(spec, Mapping):
        reference = spec.get("identityRef")
        if isinstance(reference, Mapping) and reference.get("type", "Secret") == "Secret":
            name, cloud = reference.get("name"), reference.get("cloudName")
            if isinstance(name, str) and name and isinstance(cloud, str) and cloud:
                yield name, cloud
        for value in spec.values():
            yield from _identities(value)
    elif isinstance(spec, list | tuple):
        for value in spec:
            yield from _identities(value)


@dataclass(frozen=True)
class CloudSecretRun:
    """Makes the Secrets of one instance in one step."""

    cluster: Cluster
    identities: CloudIdentities
    key_ring: KeyRing
    progress: Progress
    vnf_instance_id: str
    operation_id: str

    def with_empty_secrets(self, planned: Plan) -> Plan:
        """Return the plan with the Secrets, without content, before the other objects. Raises as `cloud_secrets`."""
        mine = [self._wanted(key, {}) for key in cloud_secrets(planned.objects)]
        return replace(planned, objects=[*mine, *planned.objects])

    async def with_secrets(self, planned: Plan, release: Release, *, changed: Collection[ObjectKey] = ()) -> Plan:
        """Return the plan with the Secrets before the other objects. Raises as `cloud_secrets` and `CloudIdentities.give`.

        ``release``: as it is stored, with the VIM of the login, so that a termination takes the login back. ``changed``: the Secrets
        whose content is another party's.
        """
        vim_id = release.openstack_vim_id
        others = [each for each in planned.objects if each.file != FIELD]
        secrets = cloud_secrets(others)
        # Those of an earlier package may have another name.
        earlier = [entry.key for entry in release.entries if entry.file == FIELD]
        present = await self._present([key for key in dict.fromkeys([*secrets, *earlier]) if key not in changed])
        login = await self.identities.give(
            vim_id, self.vnf_instance_id, present=None if present is None else present[_ID]
        )
        message = f"{_SAID[login.kind]}; {login.note}" if login.note else _SAID[login.kind]
        await self.progress.on(f"Login to OpenStack VIM {vim_id}", message, done=0, total=1)
        given: Mapping[str, Any] = revealed(login.cloud, self.key_ring)
        auth = dict(given["auth"])
        if login.kind == "kept":
            assert present is not None
            auth[_SECRET] = present[_SECRET]
        cloud = {**given, "auth": auth}
        mine = [
            self._wanted(key, _content(dict.fromkeys(clouds, cloud), login.cacert)) for key, clouds in secrets.items()
        ]
        return replace(planned, objects=[*mine, *others])

    async def _present(self, keys: Iterable[ObjectKey]) -> Mapping[str, str] | None:
        """Return id and secret of the application credential that a Secret of the instance has; None: none has one."""
        for key in keys:
            body = await self.cluster.get(SECRETS, key)
            if body is not None and labels_of(body).get(INSTANCE_LABEL) == self.vnf_instance_id:
                for cloud in _clouds_in(body):
                    found = {each: field_at(cloud, "auth", each) for each in (_ID, _SECRET)}
                    if all(isinstance(value, str) and value for value in found.values()):
                        return found
        return None

    def _wanted(self, key: ObjectKey, data: Mapping[str, str]) -> Wanted:
        body = {
            "apiVersion": key.api_version,
            "kind": key.kind,
            "metadata": {"name": key.name, "namespace": key.namespace, "labels": _MOVED},
            "type": "Opaque",
            "data": data,
        }
        sent = prepared(
            Manifest(FIELD, 1, body),
            namespace=key.namespace,
            vnf_instance_id=self.vnf_instance_id,
            operation_id=self.operation_id,
        )
        return Wanted(key, sent, SECRETS, FIELD, digest_of(body))


_SAID: Final = {
    "own": "the application credential of the VIM",
    "created": "an application credential was made",
    "kept": "its application credential is kept",
    "password": "the user and password of the VIM",
}


def _content(clouds: Mapping[str, Any], cacert: str) -> Mapping[str, str]:
    files = {_CLOUDS: write_yaml({"clouds": clouds}), "cacert": cacert}
    return {name: base64.b64encode(text.encode()).decode() for name, text in files.items() if text}


def _clouds_in(secret: Body) -> Sequence[object]:
    """Return the entries of ``clouds.yaml``; none if it is unreadable, as when another party has written it."""
    try:
        text = base64.b64decode(str(field_at(secret, "data", _CLOUDS) or ""), validate=True).decode()
        clouds = field_at(read_one_kubernetes_yaml(text), "clouds")
    except (binascii.Error, ValueError):
        return ()
    return list(clouds.values()) if isinstance(clouds, Mapping) else ()
