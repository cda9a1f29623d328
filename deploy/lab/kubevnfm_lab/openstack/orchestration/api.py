"""Heat's v1 API."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from aiohttp import web

from kubevnfm_lab.openstack.errors import ServiceError, bad_request, webob_page
from kubevnfm_lab.openstack.orchestration.engine import Engine, check_name
from kubevnfm_lab.openstack.orchestration.failures import resource_not_found, stack_not_found
from kubevnfm_lab.openstack.orchestration.parameters import Environment
from kubevnfm_lab.openstack.orchestration.signals import signature
from kubevnfm_lab.openstack.orchestration.stack import Resource, Stack
from kubevnfm_lab.openstack.orchestration.template import Json, Template, parse
from kubevnfm_lab.openstack.orchestration.views import (
    Links,
    event_view,
    resource_detail,
    resource_summary,
    stack_detail,
    stack_summary,
)
from kubevnfm_lab.openstack.wire import Call, Wire, base_url, json_answer, no_content

_TRUE: Final = frozenset({"true", "1", "yes", "on", "t", "y"})
_STACK: Final = "/v1/{project}/stacks/{name}/{id}"


class OrchestrationApi:
    """The handlers of Heat's routes."""

    def __init__(self, engine: Engine, wire: Wire, cfn: Wire, *, signal_key: bytes) -> None:
        self._engine, self._signal_key = engine, signal_key
        named = _stack_name
        for path in ("", "/"):
            wire.route("GET", path, "versions", self.versions, open_to_all=True)
        for path in ("/v1", "/v1/"):
            wire.route("GET", path, "version", self.versions, open_to_all=True)
        root = "/v1/{project}"
        wire.route("GET", root, "version", self.versions, open_to_all=True)
        wire.route("GET", root + "/", "version", self.versions, open_to_all=True)
        wire.route("GET", root + "/build_info", "build_info", self.build_info)
        wire.route("POST", root + "/validate", "template_validate", self.validate)
        wire.route("GET", root + "/resource_types", "resource_type_list", self.resource_types)
        wire.route("POST", root + "/stacks", "stack_create", self.create, node=named)
        wire.route("GET", root + "/stacks", "stack_list", self.list_stacks)
        wire.route("GET", root + "/stacks/detail", "stack_list", self.list_stacks)
        wire.route("POST", root + "/stacks/preview", "stack_preview", self.preview, node=named)
        # Heat redirects every method on a stack that is addressed by name only.
        for method in ("GET", "POST", "DELETE", "PATCH", "PUT"):
            wire.route(method, root + "/stacks/{name}", "stack_lookup", self.lookup)
        for rest in ("resources", "events", "template", "environment", "files", "outputs", "actions"):
            wire.route("GET", root + "/stacks/{name}/" + rest, "stack_lookup", self.lookup)
            wire.route("POST", root + "/stacks/{name}/" + rest, "stack_lookup", self.lookup)
        wire.route("GET", _STACK, "stack_show", self.show, node=named)
        wire.route("DELETE", _STACK, "stack_delete", self.delete, node=named)
        wire.route("PATCH", _STACK, "stack_update", self.patch, node=named)
        wire.route("PUT", _STACK, "stack_update", self.put, node=named)
        wire.route("PATCH", _STACK + "/preview", "stack_preview_update", self.preview_update)
        wire.route("PUT", _STACK + "/preview", "stack_preview_update", self.preview_update)
        wire.route("GET", _STACK + "/template", "stack_template", self.template)
        wire.route("GET", _STACK + "/environment", "stack_environment", self.environment)
        wire.route("GET", _STACK + "/files", "stack_files", self.files)
        wire.route("GET", _STACK + "/outputs", "output_list", self.outputs)
        wire.route("GET", _STACK + "/outputs/{key}", "output_show", self.output)
        wire.route("GET", _STACK + "/events", "event_list", self.events)
        wire.route("POST", _STACK + "/actions", "stack_action", self.action)
        wire.route("GET", _STACK + "/resources", "resource_list", self.resources, node=named)
        resource = _STACK + "/resources/{resource}"
        wire.route("GET", resource, "resource_show", self.resource)
        wire.route("PATCH", resource, "resource_mark_unhealthy", self.mark)
        wire.route("POST", resource + "/signal", "resource_signal", self.signal)
        wire.route("GET", resource + "/metadata", "resource_metadata", self.metadata)
        wire.route("GET", resource + "/events", "event_list", self.events)
        wire.route("GET", resource + "/events/{event}", "event_show", self.event)
        # The signature replaces the token, and alarms send a body that is not JSON.
        cfn.route("POST", "/v1/signal/{arn:.+}", "resource_signal", self.signed_signal, open_to_all=True, raw_body=True)

    # -- the service

    async def versions(self, call: Call) -> web.Response:
        """Return the one version there is."""
        href = f"{base_url(call.request)}/orchestration/v1/"
        version = {"id": "v1.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
        # 300, since several versions could be offered; clients depend on it.
        return json_answer({"versions": [version]}, 300)

    async def build_info(self, call: Call) -> web.Response:
        return json_answer({"api": {"revision": "unknown"}, "engine": {"revision": "unknown"}})

    async def resource_types(self, call: Call) -> web.Response:
        return json_answer({"resource_types": self._engine.types.names()})

    async def validate(self, call: Call) -> web.Response:
        """Validate a template and return its parameters."""
        stack = self._draft(call, name="validate")
        parameters: Json = {}
        for name, schema in stack.template.parameters.items():
            kind = {"comma_delimited_list": "CommaDelimitedList", "json": "Json"}.get(schema.kind, schema.kind.title())
            parameters[name] = {
                "Type": kind,
                "Description": schema.description,
                "NoEcho": str(schema.hidden).lower(),
                "Label": schema.label,
                **({"Default": schema.default} if schema.has_default else {}),
            }
        # Without all parameters only the template itself can be validated.
        if all(s.has_default or n in stack.environment.parameters for n, s in stack.template.parameters.items()):
            self._engine.preview(stack)
        environment = {key: value for key, value in stack.environment.view().items() if key != "encrypted_param_names"}
        return json_answer(
            {
                "Description": stack.template.description,
                "Parameters": parameters,
                "Environment": environment,
            }
        )

    # -- stacks

    async def create(self, call: Call) -> web.Response:
        """Start to create a stack."""
        self._check_project(call)
        if "stack_name" not in call.body:
            raise bad_request("heat", "No stack name specified", "HTTPBadRequest")
        stack = self._draft(call, name=check_name(call.body["stack_name"]))
        self._engine.create(stack)
        href = _links(call).stack(stack)
        body = {"stack": {"id": stack.stack_id, "links": [{"href": href, "rel": "self"}]}}
        return json_answer(body, 201, {"Location": href})

    async def preview(self, call: Call) -> web.Response:
        self._check_project(call)
        stack = self._draft(call, name=check_name(call.body.get("stack_name")))
        self._engine.preview(stack)
        return json_answer({"stack": {**stack_detail(stack, _links(call), outputs=False), "resources": []}})

    async def list_stacks(self, call: Call) -> web.Response:
        """Return the stacks that pass the filters, newest first, after ``marker``, at most ``limit``."""
        self._check_project(call)
        deleted = (call.query("show_deleted") or "").lower() in _TRUE
        found = _filtered(call, self._engine.newest_first(call.project_id, deleted=deleted))
        if (key := call.query("sort_keys")) and key.startswith("creation") and call.query("sort_dir") == "asc":
            found = reversed([*found])
        links = _links(call)
        limit = _whole(call, "limit")
        marker = call.query("marker")
        summaries: list[Json] = []
        skipping = marker is not None
        for stack in found:
            if skipping:
                skipping = stack.stack_id != marker
                continue
            if limit is not None and len(summaries) >= limit:
                break
            summaries.append(stack_summary(stack, links))
        body: Json = {"stacks": summaries}
        if limit is not None and summaries and len(summaries) == limit:
            # A full page may be the last one; Heat too offers a next link then.
            href = f"{links.root}/stacks?limit={limit}&marker={summaries[-1]['id']}"
            body["links"] = [{"rel": "next", "href": href}]
        if (call.query("with_count") or "").lower() in _TRUE:
            body["count"] = len([*_filtered(call, self._engine.newest_first(call.project_id))])
        return json_answer(body)

    async def lookup(self, call: Call) -> web.Response:
        """Redirect to the address with the id."""
        self._check_project(call)
        stack = self._engine.by_name(call.project_id, call.path("name"))
        # The rest of the path and the query must survive the redirect.
        tail = call.request.path.partition(f"/stacks/{call.path('name')}")[2]
        href = _links(call).stack(stack) + tail
        if call.request.query_string:
            href += f"?{call.request.query_string}"
        text = f'The resource was found at <a href="{href}">{href}</a>;\nyou should be redirected automatically.\n'
        return web.Response(
            text=webob_page(302, text), status=302, headers={"Location": href}, content_type="text/html"
        )

    async def show(self, call: Call) -> web.Response:
        stack = self._stack(call)
        outputs = (call.query("resolve_outputs") or "true").lower() in _TRUE
        return json_answer({"stack": stack_detail(stack, _links(call), outputs=outputs)})

    async def delete(self, call: Call) -> web.Response:
        self._engine.delete(self._stack(call))
        return no_content()

    async def patch(self, call: Call) -> web.Response:
        """Start to update a stack; parameters and files that are not given stay."""
        stack = self._stack(call)
        self._engine.update(stack, self._changed(call, stack))
        return _accepted()

    async def put(self, call: Call) -> web.Response:
        """Start to update a stack to exactly the given request."""
        stack = self._stack(call)
        if "template" not in call.body and "template_url" not in call.body:
            raise bad_request("heat", "No template specified", "HTTPBadRequest")
        self._engine.update(stack, self._draft(call, name=stack.name))
        return _accepted()

    async def preview_update(self, call: Call) -> web.Response:
        stack = self._stack(call)
        draft = self._changed(call, stack)
        self._engine.preview(draft)
        wanted = draft.wanted()
        names = {
            "added": [name for name in wanted if name not in stack.resources],
            "deleted": [name for name in stack.resources if name not in wanted],
            "unchanged": [
                name for name, d in wanted.items() if name in stack.resources and stack.resources[name].definition == d
            ],
            "updated": [
                name for name, d in wanted.items() if name in stack.resources and stack.resources[name].definition != d
            ],
            "replaced": [],
        }
        changes = {key: [{"resource_name": one} for one in value] for key, value in names.items()}
        return json_answer({"resource_changes": changes})

    async def template(self, call: Call) -> web.Response:
        return json_answer(self._stack(call).template.raw)

    async def environment(self, call: Call) -> web.Response:
        return json_answer(self._stack(call).environment.view())

    async def files(self, call: Call) -> web.Response:
        return json_answer(self._stack(call).files)

    async def outputs(self, call: Call) -> web.Response:
        stack = self._live(call)
        listed = [
            {"output_key": name, "description": output.description} for name, output in stack.template.outputs.items()
        ]
        return json_answer({"outputs": listed})

    async def output(self, call: Call) -> web.Response:
        stack, key = self._live(call), call.path("key")
        found = stack.output(key) if key in stack.template.outputs else None
        if found is None:
            message = f"Specified output key {key} not found."
            raise ServiceError("heat", 404, "NotFound", message)
        return json_answer({"output": found})

    async def events(self, call: Call) -> web.Response:
        """Return the events of a stack, of nested ones with ``nested_depth``, or of one resource; newest first."""
        stack = self._stack(call)
        links, resource = _links(call), call.request.match_info.get("resource")
        depth = _whole(call, "nested_depth") or 0
        stacks = [stack, *(inner for inner, _ in _inner_stacks(stack, depth))]
        shown_events = [
            event_view(event, one, links)
            for one in stacks
            for event in one.events
            if resource is None or event.resource == resource
        ]
        if len(stacks) > 1:
            shown_events.sort(key=lambda event: str(event["event_time"]), reverse=True)
        limit = _whole(call, "limit")
        return json_answer({"events": shown_events[:limit]})

    async def event(self, call: Call) -> web.Response:
        stack = self._stack(call)
        for event in stack.events:
            if event.event_id == call.path("event"):
                shown_event = event_view(event, stack, _links(call))
                more = {"resource_type": event.resource_type, "resource_properties": event.properties or {}}
                return json_answer({"event": {**shown_event, **more}})
        raise ServiceError("heat", 404, "EventNotFound", f"The Event ({call.path('event')}) could not be found.")

    async def action(self, call: Call) -> web.Response:
        """Check, suspend, resume, or cancel an update."""
        stack = self._live(call)
        if len(call.body) != 1:
            raise bad_request("heat", "No action specified", "HTTPBadRequest")
        (name,) = call.body
        if name == "check":
            self._engine.check(stack)
        elif name in ("suspend", "resume"):
            self._engine.pause(stack, name.upper())
        elif name == "cancel_update":
            self._engine.cancel_update(stack, rollback=True)
        elif name == "cancel_without_rollback":
            self._engine.cancel_update(stack, rollback=False)
        else:
            raise bad_request("heat", f"Invalid action {name} specified", "HTTPBadRequest")
        return json_answer(None)

    # -- resources

    async def resources(self, call: Call) -> web.Response:
        """Return the resources of a stack and of those nested in it down to ``nested_depth``, outer ones first."""
        stack = self._stack(call)
        links = _links(call)
        kind, status, name = call.query("type"), call.query("status"), call.query("name")
        levels: list[tuple[Stack, str | None]] = [(stack, stack.parent.name if stack.parent else None)]
        levels += _inner_stacks(stack, _whole(call, "nested_depth") or 0)
        summaries = [
            resource_summary(resource, links, parent=parent)
            for one, parent in levels
            for resource in one.resources.values()
            if kind in (None, resource.resource_type)
            and status in (None, resource.status)
            and name in (None, resource.name)
        ]
        return json_answer({"resources": summaries})

    async def resource(self, call: Call) -> web.Response:
        return json_answer({"resource": resource_detail(self._resource(call), _links(call))})

    async def mark(self, call: Call) -> web.Response:
        resource = self._resource(call)
        if "mark_unhealthy" not in call.body:
            raise bad_request(
                "heat", "Missing mandatory (mark_unhealthy) key from mark unhealthy request", "HTTPBadRequest"
            )
        unhealthy = call.body["mark_unhealthy"]
        if not isinstance(unhealthy, bool):
            message = f'Unrecognized value "{unhealthy}" for "mark_unhealthy", acceptable values are: true, false.'
            raise bad_request("heat", message, "HTTPBadRequest")
        reason = str(call.body.get("resource_status_reason") or "")
        self._engine.mark(resource, unhealthy=unhealthy, reason=reason)
        return json_answer(None)

    async def signal(self, call: Call) -> web.Response:
        self._engine.signal(self._resource(call))
        return json_answer(None)

    async def signed_signal(self, call: Call) -> web.Response:
        """Signal a resource at the signed address that it published; the signature replaces the token."""
        name = unquote(call.path("arn"))
        given = call.query("Signature") or ""
        # compare_digest takes the same time for every wrong signature.
        if not hmac.compare_digest(given, signature(self._signal_key, name)):
            raise ServiceError("heat", 403, "AccessDenied", "The request signature does not match.")
        _, _, path = name.partition(":stacks/")
        stack_name, stack_id, _, resource = path.split("/")
        stack = self._engine.stacks.get(stack_id)
        if stack is None:
            raise stack_not_found(stack_name)
        self._engine.signal(self._engine.resource(stack, resource))
        return web.Response(text="<SignalResponse></SignalResponse>", content_type="application/xml")

    async def metadata(self, call: Call) -> web.Response:
        return json_answer({"metadata": self._resource(call).definition.metadata})

    # -- the inside

    def _check_project(self, call: Call) -> None:
        if call.path("project") != call.project_id:
            raise ServiceError("heat", 403, "Forbidden", "You are not authorized to complete this action.")

    def _stack(self, call: Call) -> Stack:
        self._check_project(call)
        stack = self._engine.by_id(call.project_id, call.path("id"))
        # Heat's addresses contain name and id, and both must fit.
        if stack is None or stack.name != call.path("name"):
            raise stack_not_found(call.path("name"))
        return stack

    def _live(self, call: Call) -> Stack:
        stack = self._stack(call)
        if stack.gone:
            raise stack_not_found(stack.name)
        return stack

    def _resource(self, call: Call) -> Resource:
        stack, name = self._live(call), call.path("resource")
        # Heat finds resources by name or by physical id.
        found = stack.resources.get(name) or next(
            (one for one in stack.resources.values() if one.physical_id == name), None
        )
        if found is None:
            raise resource_not_found(name, stack.name)
        return found

    def _draft(self, call: Call, *, name: str) -> Stack:
        """Return an unsaved stack from a request."""
        body = call.body
        files = _map(body, "files")
        return self._stack_of(call, name, _template(body), _environment(body, files), files)

    def _changed(self, call: Call, stack: Stack) -> Stack:
        """Return an unsaved stack from a stack with a request's changes applied."""
        body = call.body
        # Files that the request does not repeat are still needed by the stored template.
        files = {**stack.files, **_map(body, "files")}
        template = _template(body) if body.get("template") else stack.template
        base = stack.environment
        if cleared := body.get("clear_parameters"):
            staying = {key: value for key, value in base.parameters.items() if key not in cleared}
            base = Environment(staying, base.parameter_defaults, base.resource_registry)
        environment = base.merged_with(_environment(body, files))
        # A PATCH, unlike a POST, drops parameters that the template lacks.
        environment.parameters = {k: v for k, v in environment.parameters.items() if k in template.parameters}
        draft = self._stack_of(call, stack.name, template, environment, files)
        # Settings that a PATCH does not name stay; the constructor has set defaults for them.
        if "tags" not in body:
            draft.tags = stack.tags
        if "disable_rollback" not in body:
            draft.disable_rollback = stack.disable_rollback
        if "timeout_mins" not in body:
            draft.timeout_mins = stack.timeout_mins
        return draft

    def _stack_of(
        self, call: Call, name: str, template: Template, environment: Environment, files: dict[str, Any]
    ) -> Stack:
        body = call.body
        return Stack(
            name=name,
            project_id=call.project_id,
            owner=call.token.user.name,
            user_id=call.token.user.user_id,
            template=template,
            environment=environment,
            files=files,
            tags=_tags(body.get("tags")),
            disable_rollback=str(body.get("disable_rollback", True)).lower() in _TRUE,
            timeout_mins=_minutes(body.get("timeout_mins")),
        )


def _links(call: Call) -> Links:
    return Links(f"{base_url(call.request)}/orchestration/v1/{call.path('project')}")


def _stack_name(call: Call) -> str:
    return call.request.match_info.get("name") or str(call.body.get("stack_name", ""))


def _accepted() -> web.Response:
    text = "The request is accepted for processing.<br /><br />\n"
    return web.Response(text=webob_page(202, text), status=202, content_type="text/html")


def _template(body: Json) -> Template:
    # The lab has no access to other hosts.
    if body.get("template") is None and isinstance(body.get("template_url"), str):
        raise bad_request("heat", f"Could not retrieve template: {body['template_url']}", "HTTPBadRequest")
    if "template" not in body:
        raise bad_request("heat", "No template specified", "HTTPBadRequest")
    return parse(body["template"] if body["template"] != "" else {})


def _environment(body: Json, files: dict[str, Any]) -> Environment:
    environment = Environment.read(
        body.get("environment"), files=files, names=[str(one) for one in body.get("environment_files") or ()]
    )
    environment.parameters.update(_map(body, "parameters"))
    return environment


def _map(body: Json, key: str) -> dict[str, Any]:
    value = body.get(key) or {}
    if not isinstance(value, dict):
        raise bad_request("heat", f"{key}: a map is expected", "HTTPBadRequest")
    return value


def _tags(value: Any) -> list[str]:
    if not value:
        return []
    tags = value.split(",") if isinstance(value, str) else value
    if not isinstance(tags, list):
        raise bad_request("heat", f'Invalid tags, not a list: "{value}"', "HTTPBadRequest")
    return [str(tag).strip() for tag in tags]


def _minutes(value: Any) -> int | None:
    if value in (None, 0, ""):
        return None
    try:
        minutes = int(value)
    except (TypeError, ValueError) as error:
        message = f"Only integer is allowed for timeout_mins, got {value!r}"
        raise bad_request("heat", message, "HTTPBadRequest") from error
    if minutes < 0:
        raise bad_request("heat", f"Invalid timeout value {minutes}", "HTTPBadRequest")
    return minutes or None


def _whole(call: Call, name: str) -> int | None:
    text = call.query(name)
    if text is None or text == "":
        return None
    # "max" means max_resources_per_stack, whose default is 1000.
    if text.lower() == "max":
        return 1000
    if not text.lstrip("-").isdigit():
        raise bad_request("heat", f"Only integer is acceptable by '{name}'.", "HTTPBadRequest")
    return int(text)


def _filtered(call: Call, stacks: Iterable[Stack]) -> Iterable[Stack]:
    names, ids = set(call.queries("name")), set(call.queries("id"))
    statuses, actions = set(call.queries("status")), set(call.queries("action"))
    tags, any_tags = _comma(call, "tags"), _comma(call, "tags_any")
    not_tags, not_any_tags = _comma(call, "not_tags"), _comma(call, "not_tags_any")
    owners = set(call.queries("owner_id"))
    nested = (call.query("show_nested") or "").lower() in _TRUE
    for stack in stacks:
        if (
            (not names or stack.name in names)
            and (not ids or stack.stack_id in ids)
            and (not statuses or stack.status in statuses)
            and (not actions or stack.action in actions)
            and (not tags or tags <= set(stack.tags))
            and (not any_tags or not any_tags.isdisjoint(stack.tags))
            and (not not_tags or not not_tags <= set(stack.tags))
            and not_any_tags.isdisjoint(stack.tags)
            # Asking for an owner implies nested stacks.
            and (nested or stack.parent is None or bool(owners))
            and (not owners or (stack.parent is not None and stack.parent.stack.stack_id in owners))
        ):
            yield stack


def _comma(call: Call, name: str) -> set[str]:
    return {tag for one in call.queries(name) for tag in one.split(",")}


def _inner_stacks(stack: Stack, depth: int) -> list[tuple[Stack, str | None]]:
    """Return the nested stacks, each with the name of the resource that holds it, outer ones first."""
    found: list[tuple[Stack, str | None]] = []
    level = [stack]
    for _ in range(depth):
        inner = [(r.nested, r.name) for one in level for r in one.resources.values() if r.nested is not None]
        if not inner:
            break
        found += inner
        level = [nested for nested, _ in inner]
    return found
