"""The context of one kubectl call: its server, credential and namespace, and the objects that its arguments name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kubevnfm_lab.machines.apiclient import Api, ApiRefusal, Resource, UnknownResource, manifests
from kubevnfm_lab.machines.kubeconfig import Access, BadKubeconfig, read_kubeconfig
from kubevnfm_lab.machines.programs.call import Call, Failed, Options
from kubevnfm_lab.machines.programs.kubeadm.reach import resolved, split_endpoint


@dataclass
class Session:
    """A call of kubectl that talks to a server."""

    call: Call
    given: Options
    api: Api
    namespace: str

    @property
    def all_namespaces(self) -> bool:
        """Return whether -A was given."""
        return self.given.has("-A", "--all-namespaces")

    async def resource(self, name: str) -> Resource:
        """Return a resource type; fail as kubectl does for one that the server lacks."""
        try:
            return await self.api.resource(name)
        except UnknownResource:
            raise Failed(f'error: the server doesn\'t have a resource type "{name}"') from None

    async def named(self, words: Sequence[str]) -> list[tuple[Resource, str]]:
        """Return type and name for ``pods a b``, ``pod/a svc/b`` and ``pods``; an empty name means all."""
        if not words:
            raise Failed("error: You must specify the type of resource to get.")
        if "/" in words[0]:
            pairs = []
            for word in words:
                kind, slash, name = word.partition("/")
                if not slash:
                    raise Failed("error: there is no need to specify a resource type as a separate argument when passing "
                                 "arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of "
                                 "'kubectl get resource resource/<resource_name>'")  # fmt: skip
                pairs.append((await self.resource(kind), name))
            return pairs
        # "kubectl get pods,services" names several types at once.
        kinds = [await self.resource(kind) for kind in words[0].split(",")]
        return [(kind, name) for kind in kinds for name in (words[1:] or [""])]

    def space_of(self, resource: Resource) -> str:
        """Return the namespace to ask in; empty for all and for cluster-scoped resources."""
        return "" if self.all_namespaces or not resource.namespaced else self.namespace

    async def find(self, resource: Resource, name: str) -> dict[str, Any]:
        """Return an object; fail with the server's message."""
        try:
            found: dict[str, Any] = await self.api.request("GET", resource.path(self.space_of(resource), name))
        except ApiRefusal as refusal:
            raise Failed(refused(refusal)) from refusal
        return found

    async def listing(self, resource: Resource, *, accept: str = "application/json") -> dict[str, Any]:
        """Return the list of a type with the given selectors."""
        params = {}
        for names, key in ((("-l", "--selector"), "labelSelector"), (("--field-selector",), "fieldSelector")):
            if self.given.get(*names):
                params[key] = self.given.get(*names)
        listing: dict[str, Any] = await self.api.request(
            "GET", resource.path(self.space_of(resource)), params=params, accept=accept
        )
        return listing

    async def read_manifests(self) -> list[dict[str, Any]]:
        """Return the objects of every ``-f``: a file, a folder, or ``-`` for the input."""
        objects = []
        for name in self.given.all("-f", "--filename"):
            for text in await self._texts(name):
                try:
                    objects += manifests(text)
                except yaml.YAMLError as error:
                    raise Failed(f"error: error parsing {name}: error converting YAML to JSON: {error}") from error
        for obj in objects:
            for field in ("apiVersion", "kind"):
                if not obj.get(field):
                    raise Failed(f"error: error validating data: [{field} not set]; if you choose to ignore these errors, "
                                 "turn validation off with --validate=false")  # fmt: skip
        return objects

    async def _texts(self, name: str) -> list[str]:
        if name == "-":
            return [(await self.call.read_stdin()).decode("utf-8", "replace")]
        path = self.call.path(name)
        if path.is_dir():
            return [file.read_text() for file in sorted(path.iterdir()) if file.suffix in (".yaml", ".yml", ".json")]
        if not path.exists():
            raise Failed(f'error: the path "{name}" does not exist')
        return [path.read_text()]


def refused(refusal: ApiRefusal) -> str:
    """Return a refusal as kubectl prints it."""
    if refusal.status == 401:
        return "error: You must be logged in to the server (Unauthorized)"
    reason = refusal.reason or "InternalError"
    return f"Error from server ({reason}): {refusal.message}"


def open_session(call: Call, given: Options) -> Session:
    """Find server and credential as kubectl does: flags, KUBECONFIG, ~/.kube/config; fail in its words."""
    access = access_of(call, given)
    host, port = split_endpoint(access.server)
    address = resolved(call, host)
    # The machine's own hosts file decides about names, not this host's resolver.
    if address != host and access.server.startswith("https"):
        access = Access(**{**access.__dict__, "server": f"https://{address}:{port}"})
    namespace = given.get("-n", "--namespace") or access.namespace
    return Session(call, given, call.world.apis.api(access), namespace)


def access_of(call: Call, given: Options) -> Access:
    """Return the access that kubeconfig and flags give."""
    name = given.get("--kubeconfig") or call.env.get("KUBECONFIG", "")
    file = call.path(name) if name else call.path(f"{call.env.get('HOME', '/root')}/.kube/config")
    access = Access("http://localhost:8080")
    if name or file.exists():
        try:
            access = read_kubeconfig(file, shown=name or call.machine.shown(file), context=given.get("--context"))
        except BadKubeconfig as error:
            raise Failed(str(error)) from error
        except PermissionError as error:
            raise Failed(f'error: error loading config file "{name}": open {name}: permission denied') from error
    changes: dict[str, Any] = {}
    if given.get("-s", "--server"):
        changes["server"] = given.get("-s", "--server").rstrip("/")
    if given.get("--token"):
        changes["token"] = given.get("--token")
    if given.get("--certificate-authority"):
        changes["ca_pem"] = call.path(given.get("--certificate-authority")).read_text()
    if given.get("--insecure-skip-tls-verify") == "true" or given.values.get("--insecure-skip-tls-verify") == [""]:
        changes["verify"] = False
    return Access(**{**access.__dict__, **changes})
