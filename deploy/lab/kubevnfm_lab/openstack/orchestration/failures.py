"""Heat's errors: refused requests, and resources that failed during an action."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_lab.openstack.errors import ServiceError


def validation_failed(message: str) -> ServiceError:
    """Return the 400 of an invalid template or parameter."""
    return ServiceError("heat", 400, "StackValidationFailed", message)


def invalid_template(message: str) -> ServiceError:
    """Return the 400 of a template that cannot be read at all."""
    return ServiceError("heat", 400, "HTTPBadRequest", f"Template not in valid format: {message}")


def stack_not_found(name: str) -> ServiceError:
    """Return the 404 of a stack."""
    return ServiceError("heat", 404, "EntityNotFound", f"The Stack ({name}) could not be found.")


def resource_not_found(resource: str, stack: str) -> ServiceError:
    """Return the 404 of a resource."""
    message = f"The Resource ({resource}) could not be found in Stack {stack}."
    return ServiceError("heat", 404, "ResourceNotFound", message)


class ResourceFailure(Exception):
    """A resource could not be created, updated or deleted."""

    def __init__(self, error: str, message: str, path: Sequence[str] = ()) -> None:
        self.error, self.message, self.path = error, message, tuple(path)
        """The exception's name (may be empty), its text, and the parts of ``resources.a.resources.b``."""
        super().__init__(str(self))

    def __str__(self) -> str:
        # Members of a ResourceGroup are written as indexes: resources.group.resources[1].
        path = "".join(f"[{piece}]" if piece.isdigit() else f".{piece}" for piece in self.path).lstrip(".")
        return ": ".join(part for part in (self.error, path, self.message) if part)

    def under(self, resource: str) -> ResourceFailure:
        """Return it as reported by the resource that holds the failed stack."""
        return ResourceFailure(self.error, self.message, ("resources", resource, *self.path))

    @classmethod
    def of_service(cls, error: ServiceError) -> ResourceFailure:
        """Return Heat's failure for another service's refusal."""
        name, message = error.as_seen_by_heat()
        return cls(name, message)


class ResourceInError(ResourceFailure):
    """A server or volume was created and then went to ERROR: the only failure that Heat retries."""

    def __init__(self, message: str, *, status: str = "ERROR") -> None:
        super().__init__("ResourceInError", f'Went to status {status} due to "{message}"')
