"""Keystone's v3 API: versions, tokens, catalogue, projects, application credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urljoin

from aiohttp import web

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, conflict, not_found
from kubevnfm_lab.openstack.ids import new_hex
from kubevnfm_lab.openstack.tokens import (
    ApplicationCredential,
    Domain,
    Identity,
    Project,
    Token,
    User,
    keystone_time,
    unauthorized,
)
from kubevnfm_lab.openstack.wire import Call, Json, Wire, base_url, json_answer, no_content

PATHS: Final[tuple[tuple[str, str, str], ...]] = (
    ("identity", "keystone", "/identity"),
    ("orchestration", "heat", "/orchestration/v1/{project}"),
    ("cloudformation", "heat-cfn", "/cloudformation/v1"),
    ("compute", "nova", "/compute/v2.1"),
    ("network", "neutron", "/network"),
    ("image", "glance", "/image"),
    ("load-balancer", "octavia", "/load-balancer"),
    ("volumev3", "cinderv3", "/volume/v3/{project}"),
    ("block-storage", "cinder", "/volume/v3/{project}"),
)
"""Type, name and path of every service in the catalogue."""


class IdentityApi:
    """The handlers of Keystone's routes."""

    def __init__(self, identity: Identity, wire: Wire, *, region: str, others: Mapping[str, str]) -> None:
        """``others``: services that the lab does not have, URL by type."""
        self._identity, self._region = identity, region
        self._services = (*PATHS, *((kind, kind, url) for kind, url in others.items()))
        self._ids = {kind: (new_hex(), [new_hex() for _ in range(3)]) for kind, _, _ in self._services}
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v3", "/v3/"):
            wire.route("GET", path, "version", self.version, open_to_all=True)
        wire.route("POST", "/v3/auth/tokens", "token_create", self.create_token, open_to_all=True)
        wire.route("GET", "/v3/auth/tokens", "token_show", self.show_token)
        wire.route("HEAD", "/v3/auth/tokens", "token_check", self.show_token)
        wire.route("DELETE", "/v3/auth/tokens", "token_delete", self.delete_token)
        wire.route("GET", "/v3/auth/catalog", "catalog", self.catalog)
        wire.route("GET", "/v3/auth/projects", "project_list", self.list_projects)
        wire.route("GET", "/v3/projects", "project_list", self.list_projects)
        wire.route("GET", "/v3/projects/{id}", "project_show", self.show_project)
        wire.route("GET", "/v3/domains", "domain_list", self.list_domains)
        wire.route("GET", "/v3/services", "service_list", self.list_services)
        wire.route("GET", "/v3/endpoints", "endpoint_list", self.list_endpoints)
        wire.route("GET", "/v3/regions", "region_list", self.list_regions)
        wire.route("GET", "/v3/users/{id}", "user_show", self.show_user)
        credentials = "/v3/users/{id}/application_credentials"
        wire.route("GET", credentials, "application_credential_list", self.list_application_credentials)
        wire.route("POST", credentials, "application_credential_create", self.create_application_credential)
        wire.route("GET", credentials + "/{cid}", "application_credential_show", self.show_application_credential)
        wire.route(
            "DELETE", credentials + "/{cid}", "application_credential_delete", self.delete_application_credential
        )

    async def versions(self, call: Call) -> web.Response:
        return json_answer({"versions": {"values": [_version(call)]}}, 300)

    async def version(self, call: Call) -> web.Response:
        return json_answer({"version": _version(call)})

    async def create_token(self, call: Call) -> web.Response:
        """Issue a token for a password, an application credential or another token."""
        auth = call.part_of_body("keystone", "auth")
        identity = auth.get("identity")
        methods = identity.get("methods") if isinstance(identity, dict) else None
        if not isinstance(identity, dict) or not isinstance(methods, list) or not methods:
            raise bad_request("keystone", "Invalid input for field 'identity/methods': a list of methods is expected")
        user, credential = self._authenticate(identity, str(methods[0]))
        project = None if credential is None else credential.project
        scope = auth.get("scope")
        if project is None and isinstance(scope, dict):
            project = self._scope(scope)
        token = self._identity.issue(
            user, project, methods=tuple(str(method) for method in methods), credential=credential
        )
        return json_answer({"token": self._token_body(call, token)}, 201, {"X-Subject-Token": token.token_id})

    def _authenticate(self, identity: Json, method: str) -> tuple[User, ApplicationCredential | None]:
        data = identity.get(method)
        if not isinstance(data, dict):
            raise bad_request("keystone", f"Expecting to find {method} in identity. The server could not comply.")
        if method == "password":
            user = data.get("user") or {}
            found = self._identity.by_password(
                name=str(user.get("name", "")),
                user_id=str(user.get("id", "")),
                domain=self._identity.domain_of(user.get("domain") or {}),
                password=str(user.get("password", "")),
            )
            return found, None
        if method == "application_credential":
            credential = self._identity.by_application_credential(
                credential_id=str(data.get("id", "")),
                name=str(data.get("name", "")),
                secret=str(data.get("secret", "")),
            )
            return credential.user, credential
        if method == "token":
            token = self._identity.find(str(data.get("id", "")))
            if token is None:
                raise unauthorized()
            return token.user, None
        raise ServiceError("keystone", 401, "Unauthorized", "Attempted to authenticate with an unsupported method.")

    def _scope(self, scope: Json) -> Project | None:
        wanted = scope.get("project")
        if not isinstance(wanted, dict):
            return None
        if "id" in wanted:
            project = self._identity.projects.get(str(wanted["id"]))
        else:
            domain, name = self._identity.domain_of(wanted.get("domain") or {}), wanted.get("name")
            project = next((p for p in self._identity.projects.values() if p.name == name and p.domain is domain), None)
        if project is None:
            raise unauthorized()
        return project

    async def show_token(self, call: Call) -> web.Response:
        subject = self._identity.find(call.request.headers.get("X-Subject-Token", ""))
        if subject is None:
            raise not_found("keystone", "NotFound", "Could not recognize Fernet token")
        return json_answer({"token": self._token_body(call, subject)}, 200, {"X-Subject-Token": subject.token_id})

    async def delete_token(self, call: Call) -> web.Response:
        self._identity.revoke(call.request.headers.get("X-Subject-Token", ""))
        return no_content()

    async def catalog(self, call: Call) -> web.Response:
        url = f"{base_url(call.request)}/identity/v3/auth/catalog"
        return json_answer({"catalog": self._catalog(call, call.token), "links": {"self": url}})

    async def list_projects(self, call: Call) -> web.Response:
        name = call.query("name")
        projects = [
            _project(p)
            for p in self._identity.projects.values()
            if p.project_id in call.token.user.roles_by_project and name in (None, p.name)
        ]
        return json_answer({"projects": projects, "links": _links(call)})

    async def show_project(self, call: Call) -> web.Response:
        project = self._identity.projects.get(call.path("id"))
        if project is None:
            raise not_found("keystone", "NotFound", f"Could not find project: {call.path('id')}.")
        return json_answer({"project": _project(project)})

    async def list_domains(self, call: Call) -> web.Response:
        domains = [
            {"id": d.domain_id, "name": d.name, "description": "", "enabled": True, "options": {}, "tags": []}
            for d in self._identity.domains.values()
        ]
        return json_answer({"domains": domains, "links": _links(call)})

    async def list_services(self, call: Call) -> web.Response:
        services = [
            {"id": self._ids[kind][0], "type": kind, "name": name, "enabled": True, "links": {}}
            for kind, name, _ in self._services
        ]
        return json_answer({"services": services, "links": _links(call)})

    async def list_endpoints(self, call: Call) -> web.Response:
        endpoints = [
            {"service_id": service["id"], "enabled": True, "links": {}, **endpoint}
            for service in self._catalog(call, call.token)
            for endpoint in service["endpoints"]
        ]
        return json_answer({"endpoints": endpoints, "links": _links(call)})

    async def list_regions(self, call: Call) -> web.Response:
        region: Json = {"id": self._region, "description": "", "parent_region_id": None, "links": {}}
        return json_answer({"regions": [region], "links": _links(call)})

    async def show_user(self, call: Call) -> web.Response:
        user = self._identity.users.get(call.path("id"))
        if user is None:
            raise not_found("keystone", "NotFound", f"Could not find user: {call.path('id')}.")
        return json_answer(
            {"user": {"id": user.user_id, "name": user.name, "domain_id": user.domain.domain_id, "enabled": True}}
        )

    async def list_application_credentials(self, call: Call) -> web.Response:
        name = call.query("name")
        mine = [
            _application_credential(c)
            for c in self._identity.application_credentials.values()
            if c.user is self._own_user(call, "list") and name in (None, c.name)
        ]
        return json_answer({"application_credentials": mine, "links": _links(call)})

    async def create_application_credential(self, call: Call) -> web.Response:
        user = self._own_user(call, "create")
        _check_is_no_credential(call)
        body = call.part_of_body("keystone", "application_credential")
        name = body.get("name")
        if not isinstance(name, str) or not name.strip():
            raise bad_request("keystone", f"Invalid input for field 'name': {name!r} is too short")
        if any(c.user is user and c.name == name for c in self._identity.application_credentials.values()):
            raise conflict(
                "keystone",
                "Conflict",
                "Conflict occurred attempting to store application_credential - Duplicate entry found with name"
                f" {name}.",
            )
        made = self._identity.add_application_credential(
            call.token, name=name, secret=str(body.get("secret") or ""), description=body.get("description"),
            rules=[dict(one, id=new_hex()) for one in body.get("access_rules") or ()],
        )  # fmt: skip
        # The only answer that contains the secret, as in Keystone.
        return json_answer({"application_credential": {**_application_credential(made), "secret": made.secret}}, 201)

    async def show_application_credential(self, call: Call) -> web.Response:
        return json_answer({"application_credential": _application_credential(self._credential(call, "get"))})

    async def delete_application_credential(self, call: Call) -> web.Response:
        self._own_user(call, "delete")
        _check_is_no_credential(call)
        del self._identity.application_credentials[self._credential(call, "delete").credential_id]
        return no_content()

    def _own_user(self, call: Call, verb: str) -> User:
        """Return the user of the path. If a caller is another user, raise Keystone's 403."""
        if call.path("id") != call.token.user.user_id:
            what = "application_credentials" if verb == "list" else "application_credential"
            raise _forbidden(f"identity:{verb}_{what}.")
        return call.token.user

    def _credential(self, call: Call, verb: str) -> ApplicationCredential:
        found = self._identity.application_credentials.get(call.path("cid"))
        if found is None or found.user is not self._own_user(call, verb):
            message = f"Could not find Application Credential: {call.path('cid')}."
            raise not_found("keystone", "NotFound", message)
        return found

    def _token_body(self, call: Call, token: Token) -> Json:
        body: Json = {
            "methods": list(token.methods),
            "user": {
                "domain": _domain(token.user.domain),
                "id": token.user.user_id,
                "name": token.user.name,
                "password_expires_at": None,
            },
            "audit_ids": [token.token_id[-22:]],
            "expires_at": keystone_time(token.expires_at),
            "issued_at": keystone_time(token.issued_at),
        }
        if token.credential is not None:
            body["application_credential"] = {
                "id": token.credential.credential_id,
                "name": token.credential.name,
                "restricted": True,
                **({"access_rules": token.credential.rules} if token.credential.rules else {}),
            }
        if token.scoped:
            body["project"] = {
                "domain": _domain(token.project.domain),
                "id": token.project.project_id,
                "name": token.project.name,
            }
            body["is_domain"] = False
            body["roles"] = [{"id": f"role-{role}", "name": role} for role in token.roles]
            body["catalog"] = self._catalog(call, token)
        return body

    def _catalog(self, call: Call, token: Token) -> list[Json]:
        base = base_url(call.request)
        return [
            {
                "endpoints": [
                    {
                        "id": endpoint_id,
                        "interface": interface,
                        "region_id": self._region,
                        "url": urljoin(base, place.replace("{project}", token.project.project_id)),
                        "region": self._region,
                    }
                    for endpoint_id, interface in zip(self._ids[kind][1], ("public", "internal", "admin"), strict=True)
                ],
                "id": self._ids[kind][0],
                "type": kind,
                "name": name,
            }
            for kind, name, place in self._services
        ]


def _version(call: Call) -> Json:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{base_url(call.request)}/identity/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


def _domain(domain: Domain) -> Json:
    return {"id": domain.domain_id, "name": domain.name}


def _project(project: Project) -> Json:
    return {
        "id": project.project_id,
        "name": project.name,
        "domain_id": project.domain.domain_id,
        "description": "",
        "enabled": True,
        "parent_id": project.domain.domain_id,
        "is_domain": False,
        "tags": [],
        "options": {},
        "links": {"self": f"/identity/v3/projects/{project.project_id}"},
    }


def _application_credential(credential: ApplicationCredential) -> dict[str, Any]:
    return {
        "id": credential.credential_id,
        "name": credential.name,
        "description": credential.description,
        "user_id": credential.user.user_id,
        "project_id": credential.project.project_id,
        "system": None,
        "expires_at": None,
        "unrestricted": None,
        "roles": [
            {"id": f"role-{role}", "name": role}
            for role in credential.user.roles_by_project.get(credential.project.project_id, ())
        ],
        "links": {"self": f"/identity/v3/application_credentials/{credential.credential_id}"},
    }


def _check_is_no_credential(call: Call) -> None:
    """Raise Keystone's 403: all application credentials here are restricted ones."""
    if "application_credential" in call.token.methods:
        raise _forbidden(
            "Using method 'application_credential' is not allowed for managing additional application credentials.."
        )


def _forbidden(why: str) -> ServiceError:
    message = f"You are not authorized to perform the requested action: {why}"
    return ServiceError("keystone", 403, "Forbidden", message)


def _links(call: Call) -> Json:
    return {"next": None, "self": str(call.request.url), "previous": None}
