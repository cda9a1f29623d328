"""kubectl get, describe, logs, version, cluster-info, config and others: the commands that change nothing."""

from __future__ import annotations

import json
from typing import Any

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.apiclient import ApiRefusal, Resource
from kubevnfm_lab.machines.kubeconfig import kubeconfig
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options
from kubevnfm_lab.machines.programs.kubectl import printing
from kubevnfm_lab.machines.programs.kubectl.session import Session, access_of, refused


async def get(session: Session) -> Exit:
    """Kubectl get: objects by type, name, file or raw path."""
    given = session.given
    if given.get("--raw"):
        answer = await session.api.request("GET", given.get("--raw"))
        return Exit(0, answer if isinstance(answer, str) else json.dumps(answer))
    form = given.get("-o", "--output")
    if given.has("-f", "--filename"):
        objects = await session.read_manifests()
        pairs = [(await session.api.resource_of(obj), str(obj["metadata"]["name"])) for obj in objects]
    else:
        pairs = await session.named(given.words[1:])
    if form in ("", "wide"):
        return await _table(session, pairs, wide=form == "wide")
    found: list[tuple[Resource, dict[str, Any]]] = []
    errors = ""
    for resource, name in pairs:
        if not name:
            listing = await session.listing(resource)
            # Items of a list carry no kind in the API; kubectl adds it.
            own = {"apiVersion": resource.api_version, "kind": resource.kind}
            found += [(resource, own | item) for item in listing["items"]]
            continue
        try:
            found.append((resource, await session.api.request("GET", resource.path(session.space_of(resource), name))))
        except ApiRefusal as refusal:
            if not (refusal.status == 404 and given.has("--ignore-not-found")):
                errors += refused(refusal) + "\n"
    if form == "name":
        output = "".join(f"{printing.named(resource, obj)}\n" for resource, obj in found)
    # A single named object is printed as itself, anything else as a List.
    elif len(pairs) == 1 and pairs[0][1]:
        output = printing.structured(form, found[0][1]) if found else ""
    else:
        listed = {
            "apiVersion": "v1",
            "items": [obj for _, obj in found],
            "kind": "List",
            "metadata": {"resourceVersion": ""},
        }
        output = printing.structured(form, listed)
    return Exit(1 if errors else 0, output, errors)


async def _table(session: Session, pairs: list[tuple[Resource, str]], *, wide: bool) -> Exit:
    output, errors, empty = "", "", True
    heads = not session.given.has("--no-headers")
    for resource in dict.fromkeys(resource for resource, _ in pairs):
        names = [name for each, name in pairs if each == resource]
        rows: list[list[str]] = []
        for name in names:
            space = session.space_of(resource)
            try:
                if name:
                    path = resource.path(space, name)
                    table = await session.api.request("GET", path, accept=printing.TABLE)
                else:
                    table = await session.listing(resource, accept=printing.TABLE)
            except ApiRefusal as refusal:
                if not (refusal.status == 404 and session.given.has("--ignore-not-found")):
                    errors += refused(refusal) + "\n"
                continue
            shown = session.all_namespaces and resource.namespaced
            part = printing.table_rows(table, wide=wide, namespaced=shown, heads=heads and not rows)
            # Tables of the same resource are printed under one heading.
            rows += part if len(part) > heads or rows else []
        empty = empty and not rows
        output += printing.aligned(rows)
    if empty and not errors and not session.given.has("--ignore-not-found"):
        namespaced = not session.all_namespaces and all(resource.namespaced for resource, _ in pairs)
        errors = f"No resources found in {session.namespace} namespace.\n" if namespaced else "No resources found\n"
        return Exit(0, output, errors)
    return Exit(1 if errors else 0, output, errors)


async def describe(session: Session) -> Exit:
    """Kubectl describe: the object as YAML, which contains the facts that the real one prints."""
    output = ""
    for resource, name in await session.named(session.given.words[1:]):
        objects = [await session.find(resource, name)] if name else (await session.listing(resource))["items"]
        output += "".join(yaml_text.dump(obj, sort_keys=False) + "\n" for obj in objects)
    return Exit(0, output)


async def logs(session: Session) -> Exit:
    """Kubectl logs of a pod: of the container that -c names, of all, or of the first."""
    given = session.given
    if len(given.words) < 2:
        raise Failed("error: expected 'logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER]'.")
    path = f"/api/v1/namespaces/{session.namespace}/pods/{given.words[1].removeprefix('pod/')}"
    wanted = [given.get("-c", "--container")]
    if not wanted[0]:
        pod = await session.api.request("GET", path)
        names = [container["name"] for container in pod["spec"]["containers"]]
        wanted = names if given.has("--all-containers") else names[:1]
    output = ""
    for name in wanted:
        output += str(
            await session.api.request("GET", f"{path}/log", params={"container": name}, accept="text/plain, */*")
        )
    lines = output.splitlines(keepends=True)
    return Exit(0, "".join(lines[-int(given.get("--tail")) :] if given.get("--tail") else lines))


async def version(call: Call, given: Options, session: Session | None) -> Exit:
    """Kubectl version: the installed client and, unless --client, the server."""
    installed = call.machine.packages.installed.get("kubectl")
    client = "v" + (installed.version.partition("-")[0] if installed else "1.31.4")
    parts = client.lstrip("v").split(".")
    info: dict[str, Any] = {
        "clientVersion": {"major": parts[0], "minor": parts[1], "gitVersion": client, "platform": "linux/amd64"},
        "kustomizeVersion": "v5.4.2",
    }
    if session is not None:
        info["serverVersion"] = await session.api.request("GET", "/version")
    match given.get("-o", "--output"):
        case "json":
            return Exit(0, json.dumps(info, indent=2) + "\n")
        case "yaml":
            return Exit(0, yaml_text.dump(info))
    lines = [f"Client Version: {client}", "Kustomize Version: v5.4.2"]
    if session is not None:
        lines.append(f"Server Version: {info['serverVersion']['gitVersion']}")
    return Exit(0, "\n".join(lines) + "\n")


async def cluster_info(session: Session) -> Exit:
    """Kubectl cluster-info."""
    await session.api.request("GET", "/api/v1/namespaces/kube-system/services")
    server = session.api.access.server
    return Exit(
        0,
        f"Kubernetes control plane is running at {server}\n"
        f"CoreDNS is running at {server}/api/v1/namespaces/kube-system/services/kube-dns:dns/proxy\n\n"
        "To further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n",
    )


async def config(call: Call, given: Options) -> Exit:
    """Kubectl config: view (with --raw, --minify and -o), current-context."""
    access = access_of(call, given)
    user = "kubernetes-admin"
    match given.words[1:2]:
        case ["current-context"]:
            return Exit(0, f"{user}@kubernetes\n")
        case ["view"]:
            document = yaml_text.load(kubeconfig(access, user=user))
            # kubectl hides credentials unless --raw is given.
            if not given.has("--raw"):
                document["clusters"][0]["cluster"]["certificate-authority-data"] = "DATA+OMITTED"
                document["users"][0]["user"] = {"token": "REDACTED"}
            form = given.get("-o", "--output") or "yaml"
            return Exit(0, printing.structured(form, document))
    return Exit(0, f"CURRENT   NAME   CLUSTER   AUTHINFO\n*   {user}@kubernetes   kubernetes   {user}\n")


async def api_resources(session: Session) -> Exit:
    """Kubectl api-resources."""
    rows = [["NAME", "APIVERSION", "NAMESPACED", "KIND"]]
    rows += [[r.plural, r.api_version, str(r.namespaced).lower(), r.kind] for r in await session.api.resources()]
    if session.given.get("-o", "--output") == "name":
        return Exit(0, "".join(f"{resource.full_name}\n" for resource in await session.api.resources()))
    return Exit(0, printing.aligned(rows))
