"""How Heat says what went wrong: refused requests, and resources that failed on the way."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_lab.openstack.errors import ServiceError


def validation_failed(message: str) -> ServiceError:
    """Return the 400 of a template or parameter that does not pass."""
    return ServiceError("heat", 400, "StackValidationFailed", message)


def invalid_template(message: str) -> ServiceError:
    """Return the 400 of a template that cannot even be read."""
    return ServiceError("heat", 400, "HTTPBadRequest", f"Template not in valid format: {message}")


def stack_not_found(name: str) -> ServiceError:
    """Return the 404 of a stack."""
    return ServiceError("heat", 404, "EntityNotFound", f"The Stack ({name}) could not be found.")


def resource_not_found(resource: str, stack: str) -> ServiceError:
    """Return the 404 of a resource."""
    message = f"The Resource ({resource}) could not be found in Stack {stack}."
    return ServiceError("heat", 404, "ResourceNotFound", message)


class ResourceFailure(Exception):
    """A resource could not be made, changed or removed."""

    def __init__(self, error: str, message: str, path: Sequence[str] = ()) -> None:
        self.error, self.message, self.path = error, message, tuple(path)
        """The exception's name (may be empty), its text, and ``resources.a.resources.b`` in pieces."""
        super().__init__(str(self))

    def __str__(self) -> str:
        # Members of a group of numbers are written as indexes: resources.group.resources[1].
        path = "".join(f"[{piece}]" if piece.isdigit() else f".{piece}" for piece in self.path).lstrip(".")
        return ": ".join(part for part in (self.error, path, self.message) if part)

    def under(self, resource: str) -> ResourceFailure:
        """Return it as the resource that holds the failed stack tells it."""
        return ResourceFailure(self.error, self.message, ("resources", resource, *self.path))

    @classmethod
    def of_service(cls, error: ServiceError) -> ResourceFailure:
        """Return what Heat makes of another service's refusal."""
        name, message = error.as_seen_by_heat()
        return cls(name, message)


class ResourceInError(ResourceFailure):
    """A server or volume was made and then went to ERROR: the one failure that Heat tries again."""

    def __init__(self, message: str, *, status: str = "ERROR") -> None:
        super().__init__("ResourceInError", f'Went to status {status} due to "{message}"')
