"""The rehearsal: every object of a set is sent once as a dry run, and all refusals are reported together (capi.md CR-017).

A dry run stores nothing, so an object that needs another one of the set is refused there although it would be accepted
after that one. Such a refusal does not count: the object is judged by its real apply. The denial of a webhook that others
have registered counts, unless it names another object of the set.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from kubevnfm_infra_k8s.domain.changing.handing_over import check_ignored, fields_rehearsed
from kubevnfm_infra_k8s.domain.changing.unchangeable import Replacing, refused_change, unchangeable_fields
from kubevnfm_infra_k8s.domain.concurrency import each_of
from kubevnfm_infra_k8s.domain.errors import ObjectRefused, ObjectsRefused, WebhookUnavailable
from kubevnfm_infra_k8s.domain.objects import Body, ObjectKey, Wanted, field_at, uid_of
from kubevnfm_infra_k8s.domain.ports import Cluster
from kubevnfm_infra_k8s.domain.step_warnings import StepWarnings, listening

log = structlog.get_logger()

_SUBJECT: Final = re.compile(r'^\S+ "[^"]*" is forbidden: ')
_WITHOUT_PERMISSION: Final = re.compile(r'\bUser "[^"]*" cannot ')
_DENIAL: Final = re.compile(r'^admission webhook "(?P<name>[^"]*)" denied the request')
_WEBHOOK_KINDS: Final = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})
_DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_MISSING_LIMITS: Final = "failed quota"
_OF_THE_PRESENT: Final = re.compile(r"exceeded quota|already allocated|metadata\.name\b|\" cannot patch resource ")
"""Refusals because the present object is there, or because of another name: rights can be limited to names."""
_LONGEST_STEM: Final = 56
_LOOKING_AT_OTHERS: Final = frozenset({403, 404})
"""Answers of admission plugins, which read other objects. Validation (400, 422) reads only the object itself."""


def kinds_of(objects: Sequence[Wanted]) -> frozenset[tuple[str, str]]:
    """Return the groups and kinds that the definitions among these define."""
    specs = [each.body.get("spec") for each in objects if each.key.group_kind == _DEFINITION]
    return frozenset((str(field_at(spec, "group")), str(field_at(spec, "names", "kind"))) for spec in specs)


def _generation(body: Body) -> object:
    return field_at(body, "metadata", "generation")


def webhooks_of(objects: Sequence[Wanted]) -> frozenset[str]:
    """Return the names of the admission webhooks that a set registers."""
    configurations = [each.body for each in objects if each.key.kind in _WEBHOOK_KINDS]
    return frozenset(str(field_at(hook, "name")) for body in configurations for hook in body.get("webhooks") or [])


def may_be_cured(
    refusal: ObjectRefused, refused: ObjectKey, others: Collection[ObjectKey], webhooks: Collection[str]
) -> bool:
    """Return whether the object could be accepted once the ``others`` exist.

    Examples: the ServiceAccount or PriorityClass of a pod, the Role of a RoleBinding, the LimitRange without which a
    quota refuses pods, and whatever a webhook of the set itself (``webhooks``: `webhooks_of`) expects to find.
    """
    if not others:
        return False
    if (denial := _DENIAL.match(refusal.message)) is not None:
        # A policy that the set changes can be what denies; the object's own name and namespace say nothing.
        own = {refused.name, refused.namespace}
        return denial["name"] in webhooks or any(
            each.name not in own and _names(refusal.message[denial.end() :], each) for each in others
        )
    if refusal.http_status not in _LOOKING_AT_OTHERS or _WITHOUT_PERMISSION.search(refusal.message):
        return False
    reason = _SUBJECT.sub("", refusal.message)
    if reason.startswith(_MISSING_LIMITS):
        return any(key.kind == "LimitRange" and key.namespace == refused.namespace for key in others)
    return any(_names(reason, key) for key in others)


def _names(text: str, key: ObjectKey) -> bool:
    return bool(key.name and re.search(rf"(?<![\w.-]){re.escape(key.name)}(?![\w.-])", text))


async def rehearse(
    cluster: Cluster,
    objects: Sequence[Wanted],
    there: Mapping[ObjectKey, Body],
    replacing: Replacing | None = None,
    *,
    only_unchangeable: bool = False,
) -> Mapping[ObjectKey, str]:
    """Have the API server check all objects with a dry run; return the uids of those that have to be replaced.

    ``there``: those of them that exist; ``replacing``: which of these may be replaced, None: none; ``only_unchangeable``: whether
    other errors than fields that cannot be changed are left to the real apply. Raises ObjectsRefused with all errors that count.
    """
    replaced: dict[ObjectKey, str] = {}
    namespaces = {
        each.key.name for each in objects if each.key.api_kind == ("v1", "Namespace") and each.key not in there
    }
    keys = {each.key for each in objects}
    webhooks = webhooks_of(objects)
    refusals: list[ObjectRefused] = []
    redefined: set[tuple[str, str]] = set()

    # Where the namespace does not exist yet, the API server would reject all.
    checked = [
        each
        for each in objects
        if each.key.namespace not in namespaces and not (each.is_create_only and each.key in there)
    ]
    if all(each.is_implied for each in checked):
        # The Namespace is sent first and by itself, so its apply says the same.
        return {}

    async def check(each: Wanted) -> None:
        present = there.get(each.key)
        body = fields_rehearsed(each, present)
        try:
            after = await cluster.apply(each.resource, each.key, body, dry_run=True, takes_fields=each.takes_fields)
            check_ignored(each, after if present is None else present)
            if present is not None and _generation(after) != _generation(present):
                redefined.update(kinds_of([each]))
        except ObjectRefused as refusal:
            fields = unchangeable_fields(refusal) if present is not None else ""
            if fields and present is not None and replacing is not None:
                # Many are read with their metadata alone.
                whole = await cluster.get(each.resource, each.key)
                if whole is None:
                    return
                if why := replacing.obstacle(each, whole):
                    refusals.append(refused_change(each, fields, why))
                    return
                # An update that is refused for one field says little of the others, and what is deleted has to come again.
                if (wrong := await _refused_as_new(cluster, each)) and not may_be_cured(
                    wrong, each.key, keys - {each.key}, webhooks
                ):
                    refusals.append(wrong)
                replaced[each.key] = uid_of(whole)
            elif fields:
                refusals.append(refused_change(each, fields))
            elif only_unchangeable:
                log.info("refusal_left_to_the_apply", object=str(each.key), reason=str(refusal))
            elif each.key.group_kind in redefined or may_be_cured(refusal, each.key, keys - {each.key}, webhooks):
                log.info("refusal_may_be_cured", object=str(each.key), reason=str(refusal))
            else:
                refusals.append(refusal)
        except WebhookUnavailable as error:  # the real request waits for it
            log.info("webhook_unavailable", object=str(each.key), reason=str(error))

    # A resource of a definition that changes is judged by its real apply, by what it will be then.
    await each_of([each for each in checked if each.key.group_kind == _DEFINITION], check)
    await each_of([each for each in checked if each.key.group_kind != _DEFINITION], check)
    if refusals:
        raise ObjectsRefused(refusals)
    return replaced


async def _refused_as_new(cluster: Cluster, wanted: Wanted) -> ObjectRefused | None:
    """Return why an object would not be created in the place of the present one.

    It is rehearsed under a name that is free, since the present one is still there; what is said because of that does not count.
    """
    key = wanted.key
    name = f"{key.name[:_LONGEST_STEM].rstrip('-.')}-{secrets.token_hex(3)}"
    body = {**wanted.body, "metadata": {**wanted.body["metadata"], "name": name}}
    try:
        # Its warnings are those of the present name.
        with listening(StepWarnings()):
            await cluster.apply(wanted.resource, replace(key, name=name), body, dry_run=True)
    except WebhookUnavailable:
        return None
    except ObjectRefused as refusal:
        if _DENIAL.match(refusal.message) or _OF_THE_PRESENT.search(refusal.message):
            return None
        return ObjectRefused.with_status(str(key), refusal.message.replace(name, key.name), refusal.http_status)
    return None
