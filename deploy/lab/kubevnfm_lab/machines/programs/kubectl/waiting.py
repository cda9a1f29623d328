"""kubectl wait and rollout: watch objects until a condition holds or the timeout expires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kubevnfm_lab.machines.apiclient import MERGE_PATCH, ApiRefusal, Resource
from kubevnfm_lab.machines.jsonpath import render
from kubevnfm_lab.machines.programs.call import Exit, Failed
from kubevnfm_lab.machines.programs.kubeadm.config import seconds
from kubevnfm_lab.machines.programs.kubectl import printing
from kubevnfm_lab.machines.programs.kubectl.session import Session

DEFAULT_WAIT_S = 30.0
WATCH_AGAIN_S = 0.1
FOR_EVER_S = 7 * 86_400.0

Obj = dict[str, Any]


async def until(
    session: Session, resource: Resource, space: str, name: str, fits: Callable[[Obj | None], bool], timeout_s: float
) -> Obj | None:
    """Watch one object until it matches (None: it is gone); raise TimeoutError."""
    async with asyncio.timeout(timeout_s):
        while True:
            current: Obj | None = None
            try:
                current = await session.api.request("GET", resource.path(space, name))
            except ApiRefusal as refusal:
                if refusal.status != 404:
                    raise
            if fits(current):
                return current
            params = {"fieldSelector": f"metadata.name={name}"}
            # Starting from the version that was read misses no change in between.
            if current:
                params["resourceVersion"] = str(current["metadata"]["resourceVersion"])
            # The server may end the watch at any time; list and watch start again after a moment.
            async for kind, obj in session.api.watch(resource.path(space), params):
                seen = None if kind == "DELETED" else obj
                if kind in ("ADDED", "MODIFIED", "DELETED") and fits(seen):
                    return seen
            await asyncio.sleep(WATCH_AGAIN_S)


async def until_gone(session: Session, resource: Resource, space: str, name: str) -> None:
    """Wait until an object is gone; fail if that takes longer than --timeout."""
    timeout_s = _timeout(session, FOR_EVER_S)
    try:
        await until(session, resource, space, name, lambda obj: obj is None, timeout_s or FOR_EVER_S)
    except TimeoutError:
        raise Failed(f"error: timed out waiting for the condition on {resource.plural}/{name}") from None


def _timeout(session: Session, default: float) -> float:
    text = session.given.get("--timeout")
    try:
        return seconds(text) if text else default
    except ValueError as error:
        raise Failed(f'error: invalid argument "{text}" for "--timeout" flag: {error}') from error


async def wait(session: Session) -> Exit:
    """Kubectl wait --for=condition=…, jsonpath=…, delete or create; all objects at once."""
    given = session.given
    asked = given.get("--for")
    fits = _condition(asked)
    timeout_s = _timeout(session, DEFAULT_WAIT_S)
    pairs: list[tuple[Resource, str, str]] = []
    for resource, name in await session.named(given.words[1:]):
        if name:
            pairs.append((resource, session.space_of(resource), name))
        else:
            items = (await session.listing(resource))["items"]
            pairs += [(resource, item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in items]
    if not pairs:
        raise Failed("error: no matching resources found")

    async def one(resource: Resource, space: str, name: str) -> tuple[str, str]:
        # kubectl does not wait for an object that does not exist: it fails.
        if asked not in ("delete", "create"):
            await session.api.request("GET", resource.path(space, name))
        try:
            await until(session, resource, space, name, fits, timeout_s)
        except TimeoutError:
            return "", f"error: timed out waiting for the condition on {resource.plural}/{name}\n"
        return f"{resource.singular_name}/{name} {'deleted' if asked == 'delete' else 'condition met'}\n", ""

    ended = await asyncio.gather(*(one(*pair) for pair in pairs))
    errors = "".join(error for _, error in ended)
    return Exit(1 if errors else 0, "".join(line for line, _ in ended), errors)


def _condition(asked: str) -> Callable[[Obj | None], bool]:
    kind, _, rest = asked.partition("=")
    if kind == "delete":
        return lambda obj: obj is None
    if kind == "create":
        return lambda obj: obj is not None
    if kind == "condition" and rest:
        name, _, wanted = rest.partition("=")

        def has_condition(obj: Obj | None) -> bool:
            conditions = ((obj or {}).get("status") or {}).get("conditions") or []
            return any(
                c.get("type", "").lower() == name.lower() and c.get("status", "").lower() == (wanted or "true").lower()
                for c in conditions
            )

        return has_condition
    if kind == "jsonpath" and rest:
        # The template may hold "=" itself (filters), so the value is what follows the closing brace.
        path, _, value = rest.partition("}=") if "}" in rest else rest.partition("=")
        template = path.strip("'\"{}")
        return lambda obj: bool(obj) and (render("{" + template + "}", obj) or None) == (value.strip("'\"") or None)
    raise Failed(f'error: unrecognized condition: "{asked}"')


async def rollout(session: Session) -> Exit:
    """Kubectl rollout status and restart."""
    verb, *words = session.given.words[1:] or [""]
    output = ""
    for resource, name in await session.named(words):
        path = resource.path(session.namespace, name)
        if verb == "restart":
            moment = {"kubectl.kubernetes.io/restartedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
            body = {"spec": {"template": {"metadata": {"annotations": moment}}}}
            changed = await session.api.request("PATCH", path, body=body, content_type=MERGE_PATCH)
            output += f"{printing.named(resource, changed)} restarted\n"
        elif verb == "status":
            await session.api.request("GET", path)
            output += await _rolled_out(session, resource, name)
        else:
            raise Failed(f'error: unknown command "rollout {verb}"')
    return Exit(0, output)


async def _rolled_out(session: Session, resource: Resource, name: str) -> str:
    timeout_s = _timeout(session, FOR_EVER_S) or FOR_EVER_S
    try:
        await until(session, resource, session.namespace, name, lambda obj: obj is not None and _is_out(obj), timeout_s)
    except TimeoutError:
        raise Failed("error: timed out waiting for the condition") from None
    word = {"DaemonSet": "daemon set", "StatefulSet": "statefulset"}.get(resource.kind, "deployment")
    return f'{word} "{name}" successfully rolled out\n'


def _is_out(obj: Obj) -> bool:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    # Status of an older generation says nothing about this rollout.
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        return False
    if obj["kind"] == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        return bool(status.get("updatedNumberScheduled", 0) >= wanted and status.get("numberAvailable", 0) >= wanted)
    for condition in status.get("conditions") or []:
        if condition.get("type") == "Progressing" and condition.get("reason") == "ProgressDeadlineExceeded":
            raise Failed(f'error: deployment "{obj["metadata"]["name"]}" exceeded its progress deadline')
    wanted = spec.get("replicas", 1)
    # StatefulSets publish readyReplicas; availableReplicas came to them later.
    available = status.get("availableReplicas", 0) if obj["kind"] == "Deployment" else status.get("readyReplicas", 0)
    fresh = status.get("updatedReplicas", 0) >= wanted and status.get("replicas", 0) <= max(wanted, 0)
    return bool(fresh and available >= wanted)
