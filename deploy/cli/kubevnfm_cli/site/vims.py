"""VIMs and cloud regions of a site."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_cli.faults import Refused
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import JsonObject, objects, part
from kubevnfm_cli.site.difference import Difference, differences
from kubevnfm_cli.site.model import LABEL, MARK, Entry
from kubevnfm_cli.site.plans import Plan, Step, taken
from kubevnfm_cli.site.secrets import SecretText, may_be_secret, revealed
from kubevnfm_cli.site.world import Thing, World

_VIMS: Final = "/v1.0/vims"
_REGIONS: Final = "/multicloud/v1/cloud-regions"
_CHANGEABLE: Final = ("description", "is_default", "vim_project", "auth_cred")
LONG_TYPES: Final[Mapping[str, str]] = {
    "openstack": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
    "kubernetes": "ETSINFV.KUBERNETES.V_1",
}


def vim_of_name(world: World, name: str) -> JsonObject | None:
    """Return the VIM of a name; None if there is none."""
    return next(iter(objects(part(world.read(_VIMS, {"name": name}), "vims"))), None)


def vim_of_instance(world: World, instance_id: str) -> Mapping[str, Any] | None:
    """Return id and type of the VIM that a cluster has become, by the id of its VNF instance; None if there is none."""
    wanted = {"type": "kubernetes", "vnf_instance_id": instance_id, "fields": ["id", "extra"]}
    for vim in objects(part(world.read(_VIMS, wanted), "vims")):
        if instance_id in (part(vim, "extra", "vnf_instance_id"), part(vim, "extra", "created_by")):
            return {"vimId": str(vim["id"]), "vimType": LONG_TYPES["kubernetes"]}
    return None


class Vims:
    """OpenStack and Kubernetes VIMs: the mark is in ``extra``."""

    def plan(self, world: World, entry: Entry) -> Plan:
        found = vim_of_name(world, entry.name)
        if found is None:
            wanted = {**entry.body, "name": entry.name, "extra": {**entry.body.get("extra", {}), MARK: world.site.name}}
            return Plan(Thing(), [Step("create", lambda: world.write("POST", _VIMS, {"vim": wanted}))])
        thing = Thing(str(found["id"]), {"vimType": LONG_TYPES.get(str(found["type"]))})
        owner, path = part(found, "extra", MARK), path_of("v1.0", "vims", str(found["id"]))
        steps: list[Step] = []
        if owner != world.site.name:
            refusal = taken(world, "VIM", owner, str(found["id"]))
            if refusal is not None:
                return Plan(thing, refusals=[refusal])
            mark = {"vim": {"extra": {MARK: world.site.name}}}
            steps.append(Step("adopt", lambda: world.write("PUT", path, mark)))
        changed = list(_vim_differences(entry.body, found))
        refusals = [f"{each}; delete the VIM and apply again" for each in changed if each.path[0] not in _CHANGEABLE]
        if world.options.renews_secrets and _has_secrets(entry.body["auth_cred"]) and entry.key not in world.renewed:
            changed.append(Difference(("auth_cred",), "***", "***"))
        parts = {str(each.path[0]) for each in changed}
        if parts and not refusals:
            # A changed user needs its secret again, so the access data are sent whole.
            body = {"vim": {name: entry.body[name] for name in parts}}
            steps.append(Step("update", lambda: _update(world, entry, path, body), [str(each) for each in changed]))
        status = str(found.get("status"))
        note = "" if status == "ACTIVE" else f"it is {status}: {found.get('status_reason', '')}"
        return Plan(thing, steps, refusals, note=note)

    def removal(self, world: World, entry: Entry) -> Plan:
        found = vim_of_name(world, entry.name)
        if found is None or part(found, "extra", MARK) != world.site.name:
            return Plan(Thing())
        path = path_of("v1.0", "vims", str(found["id"]))
        return Plan(Thing(str(found["id"])), [Step("delete", lambda: world.write("DELETE", path), is_last=True)])


def _update(world: World, entry: Entry, path: str, body: JsonObject) -> None:
    world.write("PUT", path, body)
    world.renewed.add(entry.key)


def _vim_differences(wanted: Mapping[str, Any], found: JsonObject) -> Iterator[Difference]:
    for name, value in wanted.items():
        if name == "auth_url":
            # A Keystone without a version in its URL gets one.
            url = str(revealed(value)).rstrip("/")
            if found[name].rstrip("/") not in (url, f"{url}/v3"):
                yield Difference((name,), found[name], value)
        else:
            default: Any = {} if isinstance(value, dict) else False if isinstance(value, bool) else ""
            yield from differences(value, found.get(name, default), (name,))


def _has_secrets(login: Mapping[str, Any]) -> bool:
    return any(isinstance(value, SecretText) or may_be_secret(name) for name, value in login.items())


class Regions:
    """Cloud regions: the mark is a label; a changed kubeconfig is found by its hash."""

    def plan(self, world: World, entry: Entry) -> Plan:
        owner, labels = entry.body["cloud_owner"], {**entry.body.get("labels", {}), LABEL: world.site.name}
        kubeconfig = revealed(entry.body["kubeconfig"])
        access = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
        if "context" in entry.body:
            access["context"] = entry.body["context"]
        path = path_of("multicloud", "v1", "cloud-regions", owner, entry.name)
        found = _region(world, path)
        if found is None:
            body = {"cloud_owner": owner, "cloud_region": entry.name, "labels": labels, **access}
            return Plan(Thing(), [Step("create", lambda: world.write("POST", _REGIONS, body))])
        thing = Thing(str(found["vim_id"]), {"vimType": LONG_TYPES["kubernetes"]})
        of_site, steps = part(found, "labels", LABEL), list[Step]()
        if (
            of_site != world.site.name
            and (refusal := taken(world, "cloud region", of_site, str(found["id"]))) is not None
        ):
            return Plan(thing, refusals=[refusal])
        changed = [str(each) for each in differences(labels, found.get("labels", {}), ("labels",))]
        if changed:
            verb = "update" if of_site == world.site.name else "adopt"
            steps.append(Step(verb, lambda: world.write("PATCH", path, {"labels": labels}), changed))
        hashes = {hashlib.sha256(text.encode()).hexdigest() for text in (kubeconfig, f"{kubeconfig}\n")}
        is_other = found.get("sha256") not in hashes or found.get("context") != access.get(
            "context", found.get("context")
        )
        if is_other or (world.options.renews_secrets and entry.key not in world.renewed):
            rotated = [f"kubeconfig: *** (SHA-256 {str(found.get('sha256'))[:12]}) -> ***"]
            steps.append(Step("update", lambda: _update_access(world, entry, path, access), rotated))
        return Plan(thing, steps)

    def removal(self, world: World, entry: Entry) -> Plan:
        path = path_of("multicloud", "v1", "cloud-regions", entry.body["cloud_owner"], entry.name)
        found = _region(world, path)
        if found is None or part(found, "labels", LABEL) != world.site.name:
            return Plan(Thing())
        return Plan(Thing(str(found["vim_id"])), [Step("delete", lambda: world.write("DELETE", path), is_last=True)])


def _update_access(world: World, entry: Entry, path: str, access: JsonObject) -> None:
    world.write("PUT", f"{path}/kubeconfig", access)
    world.renewed.add(entry.key)


def _region(world: World, path: str) -> JsonObject | None:
    try:
        found = world.read(path)
    except Refused as refusal:
        if refusal.status == 404:
            return None
        raise
    return found if isinstance(found, dict) else None
