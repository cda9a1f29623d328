"""Changes the configuration and the images of a CNF in place: the work of the driver ``mgmt-container-update``.

A change is found by comparison with the cluster, and each step leaves a mark there, so that a call that was interrupted
anywhere is continued: a changed ConfigMap or Secret has the operation's annotation, a restarted pod the restart's.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_csar.field_paths import without_fields
from kubevnfm_kit.errors import InvalidInput

from kubevnfm_infra_k8s.domain.changing.handing_over import apply_left
from kubevnfm_infra_k8s.domain.changing.relabelling import is_ours
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ForeignObjects, ObjectsNotReady
from kubevnfm_infra_k8s.domain.objects import (
    INSTANCE_LABEL,
    OPERATION_ANNOTATION,
    PODS,
    RESTART_ANNOTATION,
    WORKLOADS,
    Body,
    ObjectKey,
    Wanted,
    annotations_of,
    field_at,
    group_of,
    name_of,
    uid_of,
)
from kubevnfm_infra_k8s.domain.planning.plan import Plan
from kubevnfm_infra_k8s.domain.ports import Releases
from kubevnfm_infra_k8s.domain.progress import Progress
from kubevnfm_infra_k8s.domain.reading.manifests import FIELD, Manifest
from kubevnfm_infra_k8s.domain.reading.vdus import bears_machines, owner_uid
from kubevnfm_infra_k8s.domain.release import Release, Written
from kubevnfm_infra_k8s.domain.removing.deletion_state import pod_obstacle
from kubevnfm_infra_k8s.domain.watching.readiness_wait import ReadinessWait

VDUS_FIELD: Final = "additionalParams.vdu_params"
CONFIG_FIELD: Final = "metadata.configmap_secret_paths"
_CONFIGS: Final = frozenset({("", "ConfigMap"), ("", "Secret")})
_CONTAINERS: Final = ("containers", "initContainers")


def files_after(
    def_files: Sequence[str],
    before: Sequence[Manifest],
    changed: Mapping[str, Sequence[Manifest]],
    *,
    field: str = CONFIG_FIELD,
) -> tuple[str, ...]:
    """Return the files that describe the CNF once each file of ``changed`` has replaced the one with the same objects.

    ``before``: the manifests of ``def_files``; ``field``: the attribute that names the files. Those of a modification have
    ConfigMaps and Secrets only. Raises InvalidInput naming a file that replaces none.
    """
    files = list(def_files)
    for name, manifests in changed.items():
        for each in manifests if field == CONFIG_FIELD else ():
            if (group_of(each.api_version), each.kind) not in _CONFIGS:
                raise InvalidInput(CONFIG_FIELD, f"{each.place}: a ConfigMap or a Secret expected, found a {each.kind}")
        objects = _names(manifests)
        place = next((n for n, file in enumerate(def_files) if _names(before, of=file) == objects), None)
        if place is None:
            listed = ", ".join(f"{kind} {each}" for kind, _, each in sorted(objects))
            raise InvalidInput(field, f"{name}: no file of the CNF has the same objects ({listed or 'none'})")
        files[place] = name
    return tuple(files)


def _names(manifests: Sequence[Manifest], *, of: str | None = None) -> frozenset[tuple[str, str, str]]:
    return frozenset((each.kind, each.namespace, each.name) for each in manifests if of is None or each.file == of)


@dataclass(frozen=True)
class Updated:
    """The state that one call has reached."""

    release: Release
    restarted: Sequence[Wanted]
    """The workloads that were restarted, by this call or an earlier one."""
    is_ending: bool
    """Whether pods of the earlier state still end."""


@dataclass(frozen=True)
class UpdateRun:
    """The change of one instance's configuration and images in one step."""

    wait: ReadinessWait
    releases: Releases
    progress: Progress
    operation_id: str
    change: str
    """Identifies the change; the value of the annotation that restarted pods get."""

    async def update(self, plan: Plan, release: Release, *, images_of: Collection[str] = ()) -> Updated:
        """Change what differs, and restart what it concerns; ``images_of``: the VDUs whose images alone change.

        Raises: InvalidInput for an object that the CNF does not have, ForeignObjects, ObjectsNotReady.
        """
        stored = [
            each
            for each in plan.objects
            if each.resource.is_persistent and not each.is_read_only and (not images_of or each.vdu_id in images_of)
        ]
        lacking = sorted(set(images_of).difference(each.vdu_id for each in stored if each.vdu_id is not None))
        if lacking:
            raise InvalidInput(VDUS_FIELD, f"no workload of the files implements {', '.join(lacking)}")
        machines = [str(each.key) for each in stored if each.vdu_id in images_of and bears_machines(each.key)]
        if machines:
            named = ", ".join(machines)
            raise InvalidInput(
                VDUS_FIELD, f"workloads with pods expected: the disks of {named} are no images of containers"
            )
        known = {entry.key for entry in release.entries}
        added = [f"{each.key} ({each.file})" for each in stored if each.key not in known]
        if added:
            raise InvalidInput(FIELD, f"a modification adds no objects; the CNF does not have {', '.join(added)}")
        there = await self._find(stored, release)
        fixed = [each for each in stored if each.is_create_only and self._would_change(each, there.get(each.key))]
        if fixed:
            named = ", ".join(f"{each.key} ({each.file})" for each in fixed)
            raise InvalidInput(FIELD, f"apply: create-only, so never changed: {named}")
        applied = await self._configure([each for each in stored if each.key.group_kind in _CONFIGS], there)
        changed = {(key.kind, key.namespace, key.name) for key in applied}
        uids = {entry.key: entry.uid for entry in release.entries}
        restarted: list[Wanted] = []
        is_ending = False
        for each in stored:
            if each.key.group_kind in WORKLOADS and self._is_concerned(each, there.get(each.key), changed):
                restarted.append(each)
                body, ends = await self._restart(each, there.get(each.key))
                is_ending = is_ending or ends
                # A restart alone adds no field that is compared with it later.
                if body is not None and uid_of(body) != uids[each.key]:
                    applied[each.key] = Written.from_body(body, each)
        if is_ending and self.wait.left_s() <= 0:
            raise ObjectsNotReady(f"pods did not end in time: {', '.join(str(each.key) for each in restarted)}")
        planned = release.planned(stored, namespace=plan.namespace).confirmed(applied, applied_by=release.applied_by)
        return Updated(await self.releases.save(planned), restarted, is_ending)

    async def _find(self, objects: Sequence[Wanted], release: Release) -> Mapping[ObjectKey, Body]:
        """Return the ConfigMaps, Secrets and workloads that exist. Raises ForeignObjects for those of others."""
        concerned = [each for each in objects if each.key.group_kind in _CONFIGS | WORKLOADS]
        found = await each_of(concerned, lambda each: self.wait.cluster.get(each.resource, each.key))
        there = {each.key: body for each, body in zip(concerned, found, strict=True) if body is not None}
        resources = {each.key: each.resource for each in concerned}
        ours = await each_of(there.items(), lambda each: is_ours(self.wait.cluster, resources[each[0]], *each, release))
        foreign = [key for key, is_mine in zip(there, ours, strict=True) if not is_mine]
        if foreign:
            raise ForeignObjects(foreign)
        return there

    async def _configure(self, configs: Sequence[Wanted], there: Mapping[ObjectKey, Body]) -> dict[ObjectKey, Written]:
        """Apply the ConfigMaps and Secrets that differ; return all that this operation has applied, also by earlier calls."""
        applied = {
            each.key: Written.from_body(there[each.key], each)
            for each in configs
            if annotations_of(there.get(each.key) or {}).get(OPERATION_ANNOTATION) == self.operation_id
        }
        different = [each for each in configs if _differs(each, there.get(each.key))]
        for each in different:
            body = await apply_left(self.wait.cluster, each, each.body, there.get(each.key))
            applied[each.key] = Written.from_body(body, each)
            await self.progress.on(str(each.key), "changed", done=0, total=len(different))
        return applied

    def _is_concerned(self, wanted: Wanted, there: Body | None, changed: Collection[tuple[str, str, str]]) -> bool:
        if there is None or self._is_marked(wanted.key, there):
            return True
        named = {(kind, wanted.key.namespace, name) for kind, name in _configs_of(_pod_spec(wanted.key, wanted.body))}
        return bool(named & set(changed)) or bool(self._images(wanted, there))

    def _is_marked(self, key: ObjectKey, body: Body) -> bool:
        path = () if key.kind == "Pod" else ("spec", "template")
        return annotations_of(field_at(body, *path) or {}).get(RESTART_ANNOTATION) == self.change

    def _would_change(self, wanted: Wanted, there: Body | None) -> bool:
        if there is None:
            return False
        return _differs(wanted, there) if wanted.key.group_kind in _CONFIGS else bool(self._images(wanted, there))

    @staticmethod
    def _images(wanted: Wanted, there: Body) -> Mapping[str, Sequence[Body]]:
        """Return the lists of containers with the wanted images; none if no image differs."""
        if wanted.key.group_kind not in WORKLOADS:
            return {}
        given = _pod_spec(wanted.key, without_fields(wanted.body, wanted.ignored))
        present = _pod_spec(wanted.key, there)
        lists: dict[str, Sequence[Body]] = {}
        for name in _CONTAINERS:
            images = {each.get("name"): each.get("image") for each in given.get(name) or []}
            before = present.get(name) or []
            after = [{**each, "image": images.get(each.get("name")) or each.get("image")} for each in before]
            if after != before:
                lists[name] = after
        return lists

    async def _restart(self, wanted: Wanted, there: Body | None) -> tuple[Body | None, bool]:
        """Restart a workload unless that was done; return it if it exists, and whether earlier pods still end."""
        cluster, key = self.wait.cluster, wanted.key
        if key.kind == "Pod":
            return await self._replace_pod(wanted, there)
        if there is None:
            return await cluster.apply(wanted.resource, key, _marked(key, wanted.body, self.change)), False
        if not self._is_marked(key, there):
            if not wanted.takes_fields:
                # A patch takes every field: an apply says first whether there is one of another manager.
                await cluster.apply(wanted.resource, key, wanted.body, dry_run=True, takes_fields=False)
            template = {
                "metadata": {"annotations": {RESTART_ANNOTATION: self.change}},
                "spec": self._images(wanted, there),
            }
            await cluster.patch(wanted.resource, key, {"spec": {"template": template}})
            await self.progress.on(str(key), "restarts", done=0, total=1)
        # Only a ReplicaSet keeps the pods of its earlier template.
        return there, key.kind == "ReplicaSet" and await self._end_pods(key, uid_of(there))

    async def _replace_pod(self, wanted: Wanted, there: Body | None) -> tuple[Body | None, bool]:
        """Delete a pod of the earlier state, and create it again when it is gone: its containers cannot be changed."""
        cluster, key = self.wait.cluster, wanted.key
        if there is not None and self._is_marked(key, there):
            return there, False
        if there is not None:
            await self._end(key, there)
            return None, True
        return await cluster.apply(wanted.resource, key, _marked(key, wanted.body, self.change)), False

    async def _end_pods(self, owner: ObjectKey, owner_id: str) -> bool:
        """Delete the pods of the earlier template; return whether there still are some."""
        selector = f"{INSTANCE_LABEL}={self.wait.vnf_instance_id}"
        pods = await self.wait.cluster.list(PODS, namespace=owner.namespace, labels=selector)
        left = [
            pod
            for pod in pods
            if owner_uid(pod) == owner_id and annotations_of(pod).get(RESTART_ANNOTATION) != self.change
        ]
        for pod in left:
            await self._end(ObjectKey("v1", "Pod", owner.namespace, name_of(pod)), pod)
        return bool(left)

    async def _end(self, key: ObjectKey, pod: Body) -> None:
        if not field_at(pod, "metadata", "deletionTimestamp"):
            await self.wait.cluster.delete(PODS, key, uid=uid_of(pod))
        await self.progress.on(str(key), pod_obstacle(pod, self.wait.clock.now()) or "ends", done=0, total=1)


def _differs(wanted: Wanted, there: Body | None) -> bool:
    """Return whether a ConfigMap or a Secret has another content than is wanted, fields that are ignored apart."""
    return there is None or _content(without_fields(there, wanted.ignored)) != _content(
        without_fields(wanted.body, wanted.ignored)
    )


def _content(body: Body) -> object:
    """Return what pods read of a ConfigMap or a Secret, in the form in which the API server returns it."""
    plain = {
        name: base64.b64encode(str(text).encode()).decode() for name, text in (body.get("stringData") or {}).items()
    }
    return {**(body.get("data") or {}), **plain}, body.get("binaryData") or {}


def _pod_spec(key: ObjectKey, body: Body) -> Body:
    spec: Body = field_at(body, *(("spec",) if key.kind == "Pod" else ("spec", "template", "spec"))) or {}
    return spec


def _configs_of(spec: Body) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each ConfigMap and Secret that the containers or volumes of a pod read."""
    containers = [each for name in _CONTAINERS for each in spec.get(name) or []]
    sources: list[Body] = [source for each in containers for source in each.get("envFrom") or []]
    sources += [field_at(variable, "valueFrom") or {} for each in containers for variable in each.get("env") or []]
    for volume in spec.get("volumes") or []:
        sources += [volume, *(field_at(volume, "projected", "sources") or [])]
    for source in sources:
        for attribute, kind in _REFERENCES.items():
            found = source.get(attribute) or {}
            name = found.get("name") or found.get("secretName")
            if name:
                yield kind, str(name)


_REFERENCES: Final = {
    "configMapRef": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "configMap": "ConfigMap",
    "secretRef": "Secret",
    "secretKeyRef": "Secret",
    "secret": "Secret",
}
"""The attributes that name a ConfigMap or a Secret, in ``envFrom``, ``env`` and ``volumes``."""


def _marked(key: ObjectKey, body: Body, change: str) -> Body:
    """Return the workload with the annotation on its pods."""
    if key.kind != "Pod":
        spec = body.get("spec") or {}
        template = spec.get("template") or {}
        return {**body, "spec": {**spec, "template": _annotated(template, change)}}
    return _annotated(body, change)


def _annotated(body: Body, change: str) -> Body:
    metadata = body.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), RESTART_ANNOTATION: change}
    return {**body, "metadata": {**metadata, "annotations": annotations}}
