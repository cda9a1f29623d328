"""kubectl apply, create, delete, patch, label, annotate, taint, scale: the commands that change objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import yaml

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.apiclient import MERGE_PATCH, ApiRefusal, Resource, UnknownResource
from kubevnfm_lab.machines.programs.call import Exit, Failed
from kubevnfm_lab.machines.programs.kubectl import printing
from kubevnfm_lab.machines.programs.kubectl.session import Session, refused
from kubevnfm_lab.machines.programs.kubectl.waiting import until_gone

PATCH_TYPES: Mapping[str, str] = {
    "": "application/strategic-merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "merge": MERGE_PATCH,
    "json": "application/json-patch+json",
}


async def apply(session: Session) -> Exit:
    """Kubectl apply: every object, on the server's side; a failed object does not stop the others."""
    if not session.given.has("-f", "--filename"):
        raise Failed("error: must specify one of -f and -k")
    output, errors = "", ""
    objects = await session.read_manifests()
    if not objects:
        raise Failed("error: no objects passed to apply")
    for obj in objects:
        try:
            resource = await session.api.resource_of(obj)
            path = resource.path(_space(session, obj), str(obj["metadata"]["name"]))
            before = await _version(session, path)
            after = await session.api.apply(obj, namespace=session.namespace)
        except UnknownResource:
            errors += _no_match(obj)
            continue
        except ApiRefusal as refusal:
            errors += refused(refusal) + "\n"
            continue
        changed = after["metadata"].get("resourceVersion")
        # kubectl prints another outcome for server-side apply than for client-side apply.
        if session.given.has("--server-side"):
            outcome = "serverside-applied"
        else:
            # An unchanged version means that the apply had no effect.
            outcome = "created" if before is None else "unchanged" if before == changed else "configured"
        output += f"{printing.named(resource, after)} {outcome}\n"
    return Exit(1 if errors else 0, output, errors)


async def _version(session: Session, path: str) -> str | None:
    try:
        found = await session.api.request("GET", path)
    except ApiRefusal as refusal:
        if refusal.status == 404:
            return None
        raise
    return str(found["metadata"].get("resourceVersion"))


def _space(session: Session, obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("namespace") or session.namespace)


def _no_match(obj: Mapping[str, Any]) -> str:
    return (
        f'error: resource mapping not found for name: "{(obj.get("metadata") or {}).get("name")}" namespace: "" from "STDIN": '
        f'no matches for kind "{obj["kind"]}" in version "{obj["apiVersion"]}"\nensure CRDs are installed first\n'
    )


async def create(session: Session) -> Exit:
    """Kubectl create: from files; namespace, serviceaccount, token, secret generic, configmap."""
    given = session.given
    if given.has("-f", "--filename"):
        objects = await session.read_manifests()
    else:
        match given.words[1:]:
            case ["token", name]:
                return await _token(session, name)
            case ["namespace" | "ns", name]:
                objects = [_object("v1", "Namespace", name)]
            case ["serviceaccount" | "sa", name]:
                objects = [_object("v1", "ServiceAccount", name)]
            case ["secret", "generic", name]:
                objects = [
                    _object("v1", "Secret", name)
                    | {"type": given.get("--type") or "Opaque", "data": await _data(session)}
                ]
            case ["configmap" | "cm", name]:
                # Secrets hold base64, ConfigMaps text; both come from the same options.
                data = {key: base64.b64decode(value).decode() for key, value in (await _data(session)).items()}
                objects = [_object("v1", "ConfigMap", name) | {"data": data}]
            case _:
                raise Failed("error: must specify one of -f and -k")
    if given.get("--dry-run") == "client":
        return Exit(0, "---\n".join(printing.structured(given.get("-o", "--output") or "yaml", obj) for obj in objects))
    output = ""
    for obj in objects:
        try:
            resource = await session.api.resource_of(obj)
        except UnknownResource:
            raise Failed(_no_match(obj)) from None
        made = await session.api.request("POST", resource.path(_space(session, obj)), body=obj)
        output += f"{printing.named(resource, made)} created\n"
    return Exit(0, output)


def _object(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


async def _data(session: Session) -> dict[str, str]:
    data = {}
    for literal in session.given.all("--from-literal"):
        key, _, value = literal.partition("=")
        data[key] = base64.b64encode(value.encode()).decode()
    for place in session.given.all("--from-file"):
        key, equals, name = place.partition("=")
        path = session.call.path(name if equals else place)
        if not path.exists():
            raise Failed(f"error: error reading {path.name}: no such file or directory")
        data[key if equals else path.name] = base64.b64encode(path.read_bytes()).decode()
    return data


async def _token(session: Session, account: str) -> Exit:
    path = f"/api/v1/namespaces/{session.namespace}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = await session.api.request("POST", path, body=request)
    return Exit(0, f"{made['status']['token']}\n")


async def delete(session: Session) -> Exit:
    """Kubectl delete: by name, selector, --all or file; waits until the objects are gone unless --wait=false."""
    given = session.given
    targets: list[tuple[Resource, str, str]] = []
    if given.has("-f", "--filename"):
        targets = [
            (await session.api.resource_of(obj), _space(session, obj), str(obj["metadata"]["name"]))
            for obj in await session.read_manifests()
        ]
    else:
        for resource, name in await session.named(given.words[1:]):
            if name:
                targets.append((resource, session.space_of(resource), name))
            elif given.has("--all", "-l", "--selector", "--field-selector"):
                items = [item["metadata"] for item in (await session.listing(resource))["items"]]
                targets += [(resource, metadata.get("namespace", ""), metadata["name"]) for metadata in items]
            else:
                raise Failed("error: resource(s) were provided, but no name was specified")
    # kubectl's default; without it the API's default would apply.
    body: dict[str, Any] = {"propagationPolicy": "Background"}
    if given.get("--grace-period"):
        body["gracePeriodSeconds"] = int(given.get("--grace-period"))
    elif given.has("--force", "--now"):
        body["gracePeriodSeconds"] = 0 if given.has("--force") else 1
    output, errors, gone = "", "", []
    for resource, space, name in targets:
        try:
            await session.api.request("DELETE", resource.path(space, name), body=body)
        except ApiRefusal as refusal:
            if not (refusal.status == 404 and given.has("--ignore-not-found")):
                errors += refused(refusal) + "\n"
            continue
        gone.append((resource, space, name))
        output += f'{resource.singular_name} "{name}" deleted\n'
    # kubectl waits after all deletions were requested, not after each.
    if given.get("--wait", default="true") != "false":
        for resource, space, name in gone:
            await until_gone(session, resource, space, name)
    return Exit(1 if errors else 0, output, errors)


async def patch(session: Session) -> Exit:
    """Kubectl patch."""
    given = session.given
    text = given.get("-p", "--patch")
    if given.get("--patch-file"):
        text = session.call.path(given.get("--patch-file")).read_text()
    try:
        body = yaml_text.load(text)
    except yaml.YAMLError as error:
        raise Failed(f"error: unable to parse {text!r}: {error}") from error
    kind = PATCH_TYPES.get(given.get("--type"))
    if kind is None:
        raise Failed(f'error: --type must be one of [json merge strategic], not "{given.get("--type")}"')
    output = ""
    for resource, name in await session.named(given.words[1:]):
        path = resource.path(session.space_of(resource), name, given.get("--subresource"))
        changed = await session.api.request("PATCH", path, body=body, content_type=kind)
        output += f"{printing.named(resource, changed)} patched\n"
    return Exit(0, output)


async def label(session: Session) -> Exit:
    """Kubectl label: ``key=value`` sets, ``key-`` removes; another value needs --overwrite."""
    return await _mark(session, "labels", "labeled")


async def annotate(session: Session) -> Exit:
    """Kubectl annotate."""
    return await _mark(session, "annotations", "annotated")


async def _mark(session: Session, field: str, done: str) -> Exit:
    given = session.given
    split = next(
        # Resource names come first; the first word with "=" or a trailing "-" starts the changes.
        (i for i, word in enumerate(given.words) if i > 1 and (word.endswith("-") or "=" in word)),
        len(given.words),
    )
    changes: dict[str, str | None] = {}
    for word in given.words[split:]:
        key, equals, value = word.partition("=")
        changes[key if equals else word.removesuffix("-")] = value if equals else None
    if not changes:
        raise Failed(f"error: at least one {field[:-1]} update is required")
    pairs = await session.named(given.words[1:split])
    if given.has("--all", "-l", "--selector", "--field-selector"):
        pairs = [
            (kind, item["metadata"]["name"]) for kind, _ in pairs for item in (await session.listing(kind))["items"]
        ]
    output, errors = "", ""
    for resource, name in pairs:
        try:
            obj = await session.api.request("GET", resource.path(session.space_of(resource), name))
        except ApiRefusal as refusal:
            errors += refused(refusal) + "\n"
            continue
        held = obj["metadata"].get(field) or {}
        # The same value again is no conflict.
        clash = [key for key, value in changes.items() if value is not None and held.get(key, value) != value]
        if clash and not given.has("--overwrite"):
            errors += f"error: '{clash[0]}' already has a value ({held[clash[0]]}), and --overwrite is false\n"
            continue
        body = {"metadata": {field: changes}}
        path = resource.path(session.space_of(resource), name)
        if all(held.get(key) == value for key, value in changes.items()):
            output += f"{printing.named(resource, obj)} not {done}\n"
            continue
        await session.api.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        output += f"{printing.named(resource, obj)} {done}\n"
    return Exit(1 if errors else 0, output, errors)


async def taint(session: Session) -> Exit:
    """Kubectl taint nodes: ``key=value:effect`` sets, ``key:effect-`` and ``key-`` remove."""
    words = session.given.words
    changes = [word for word in words[2:] if ":" in word or word.endswith("-")]
    resource = await session.resource(words[1])
    output = ""
    for name in [word for word in words[2:] if word not in changes]:
        node = await session.find(resource, name)
        taints = list((node.get("spec") or {}).get("taints") or [])
        for change in changes:
            key, _, effect = change.removesuffix("-").partition(":")
            key, _, value = key.partition("=")
            # A taint is identified by key and effect; setting it again replaces its value.
            remaining = [t for t in taints if t["key"] != key or (effect and t["effect"] != effect)]
            if change.endswith("-") and len(remaining) == len(taints):
                raise Failed(f"error: taint {change.removesuffix('-')!r} not found")
            taints = (
                remaining
                if change.endswith("-")
                else [*remaining, {"key": key, "effect": effect, **({"value": value} if value else {})}]
            )
        body = {"spec": {"taints": taints or None}}
        await session.api.request("PATCH", resource.path("", name), body=body, content_type=MERGE_PATCH)
        output += f"node/{name} {'untainted' if all(c.endswith('-') for c in changes) else 'tainted'}\n"
    return Exit(0, output)


async def scale(session: Session) -> Exit:
    """Kubectl scale --replicas."""
    output = ""
    for resource, name in await session.named(session.given.words[1:]):
        path = resource.path(session.space_of(resource), name)
        body = {"spec": {"replicas": int(session.given.get("--replicas", default="1"))}}
        changed = await session.api.request("PATCH", path, body=body, content_type=MERGE_PATCH)
        output += f"{printing.named(resource, changed)} scaled\n"
    return Exit(0, output)


async def can_i(session: Session) -> Exit:
    """Kubectl auth can-i."""
    verb, kind = (*session.given.words[2:4], "", "")[:2]
    group = (await session.resource(kind)).group if kind not in ("", "*") else "*"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {"verb": verb, "resource": kind, "group": group, "namespace": session.namespace}
        },
    }
    answer = await session.api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
    allowed = bool(json.loads(json.dumps(answer))["status"]["allowed"])
    return Exit(0 if allowed else 1, "yes\n" if allowed else "no\n")
