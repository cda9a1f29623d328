"""The form of stacks, resources and events in Heat's API."""

from __future__ import annotations

from kubevnfm_lab.openstack.orchestration.parameters import shown
from kubevnfm_lab.openstack.orchestration.stack import Event, Resource, Stack
from kubevnfm_lab.openstack.orchestration.template import Json


class Links:
    """Addresses under one project's root: ``http://.../orchestration/v1/<project>``."""

    def __init__(self, root: str) -> None:
        self.root = root

    def stack(self, stack: Stack) -> str:
        """Return a stack's address."""
        return f"{self.root}/stacks/{stack.path}"

    def resource(self, resource: Resource) -> str:
        """Return a resource's address."""
        return f"{self.stack(resource.stack)}/resources/{resource.name}"


def stack_summary(stack: Stack, links: Links) -> Json:
    """Return a stack as a list shows it."""
    return {
        "id": stack.stack_id,
        "links": [{"href": links.stack(stack), "rel": "self"}],
        "stack_name": stack.name,
        "description": "" if stack.template.description == "No description" else stack.template.description,
        "stack_status": stack.state,
        "stack_status_reason": stack.reason,
        "creation_time": stack.created,
        "updated_time": stack.updated,
        "deletion_time": None,
        "stack_owner": stack.owner,
        "parent": _parent_id(stack),
        "stack_user_project_id": stack.user_project_id,
        "tags": stack.tags or None,
    }


def stack_detail(stack: Stack, links: Links, *, outputs: bool) -> Json:
    """Return a stack in full."""
    detail: Json = {
        "stack_name": stack.name,
        "id": stack.stack_id,
        "links": [{"href": links.stack(stack), "rel": "self"}],
        "creation_time": stack.created,
        "updated_time": stack.updated,
        "deletion_time": None,
        "notification_topics": [],
        "parameters": {
            "OS::stack_id": stack.stack_id,
            "OS::project_id": stack.project_id,
            "OS::stack_name": stack.name,
            **{name: shown(stack.template.parameters[name], value) for name, value in stack.parameters.items()},
        },
        "description": stack.template.description,
        "template_description": stack.template.description,
        "capabilities": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "stack_owner": stack.owner,
        "parent": _parent_id(stack),
        "stack_user_project_id": stack.user_project_id,
        "tags": stack.tags,
        "stack_status": stack.state,
        "stack_status_reason": stack.reason,
    }
    # Resources of a stack in deletion are partly gone, so its outputs cannot be computed.
    if outputs and stack.action != "DELETE":
        detail["outputs"] = stack.outputs()
    return detail


def resource_summary(resource: Resource, links: Links, *, parent: str | None = None) -> Json:
    """Return a resource as a list shows it; ``parent`` is the resource that holds its stack."""
    own = [
        {"href": links.resource(resource), "rel": "self"},
        {"href": links.stack(resource.stack), "rel": "stack"},
    ]
    if resource.nested is not None:
        own.append({"href": links.stack(resource.nested), "rel": "nested"})
    summary: Json = {
        "updated_time": resource.updated,
        "creation_time": resource.created,
        "logical_resource_id": resource.name,
        "resource_name": resource.name,
        "physical_resource_id": resource.physical_id or "",
        "resource_status": resource.state,
        "resource_status_reason": resource.reason,
        "resource_type": resource.resource_type,
        "links": own,
        "required_by": [
            other.name for other in resource.stack.resources.values() if resource.name in other.definition.references
        ],
    }
    if parent is not None:
        summary["parent_resource"] = parent
    return summary


def resource_detail(resource: Resource, links: Links) -> Json:
    """Return a resource in full."""
    parent = resource.stack.parent
    summary = resource_summary(resource, links, parent=parent.name if parent else None)
    return {
        **summary,
        "description": resource.definition.description,
        "attributes": resource.kind.show(resource) if resource.made else {},
    }


def event_view(event: Event, stack: Stack, links: Links) -> Json:
    """Return an event as a list shows it."""
    address = f"{links.stack(stack)}/resources/{event.resource}"
    return {
        "id": event.event_id,
        "links": [
            {"href": f"{address}/events/{event.event_id}", "rel": "self"},
            {"href": address, "rel": "resource"},
            {"href": links.stack(stack), "rel": "stack"},
        ],
        "event_time": event.time,
        "logical_resource_id": event.resource,
        "resource_name": event.resource,
        "physical_resource_id": event.physical_id,
        "resource_status": event.status,
        "resource_status_reason": event.reason,
    }


def _parent_id(stack: Stack) -> str | None:
    return stack.parent.stack.stack_id if stack.parent is not None else None
