"""The outputs of a VNF: values of its objects, as an order artifact or a request names them (multicloud.md MC-138)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from kubevnfm_events.outputs import WantedOutput
from kubevnfm_kit.json_pointer import escaped
from kubevnfm_kit.kubernetes_names import LABEL
from kubevnfm_secrets.names import is_secret_name
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError

from kubevnfm_csar.artifact_order import ORDER, ArtifactOrder
from kubevnfm_csar.json_path import LONGEST, parse_path

MOST_OUTPUTS: Final = 64
OUTPUTS: Final = "additionalParams/outputs"


def _not_secret(kind: str) -> str:
    if kind == "Secret":
        raise ValueError("another kind than Secret expected: its data are not shown")
    return kind


def _path(text: str) -> str:
    parse_path(text)
    return text


class _Spec(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class OutputObject(_Spec):
    """An object of the VNF."""

    kind: Annotated[str, StringConstraints(min_length=1, max_length=63), AfterValidator(_not_secret)]
    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    namespace: Annotated[str, StringConstraints(max_length=63, pattern=f"^{LABEL}$")] | None = None
    """Absent: the namespace of the VNF, or none for a kind that has no namespaces."""
    api_version: Annotated[str, StringConstraints(min_length=1, max_length=317)] | None = None
    """Needed if objects of several API groups have this kind and name."""


class OutputSpec(_Spec):
    """A value of an object."""

    object: OutputObject
    jsonpath: Annotated[str, StringConstraints(max_length=LONGEST + 2), AfterValidator(_path)]
    """A path of names and indexes, as ``kubectl wait`` reads it."""

    def wanted(self, name: str) -> WantedOutput:
        """Return the output of this name."""
        return WantedOutput(
            name=name,
            api_version=self.object.api_version,
            kind=self.object.kind,
            namespace=self.object.namespace,
            object_name=self.object.name,
            jsonpath=self.jsonpath,
        )


def _no_secret(name: str) -> str:
    if is_secret_name(name):
        raise ValueError("a name expected that does not say that the value is secret: an output is shown")
    return name


OutputName = Annotated[str, StringConstraints(pattern="^[A-Za-z_][A-Za-z0-9_-]{0,62}$"), AfterValidator(_no_secret)]
_NAME: Final = TypeAdapter(OutputName)


def read_output(name: object, given: object) -> tuple[WantedOutput | None, Sequence[tuple[str, str]]]:
    """Return an output, and what is wrong with it: a path in it, and the reason. Never with what was given."""
    try:
        spec = OutputSpec.model_validate(given)
        return spec.wanted(_NAME.validate_python(name)), ()
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)
        return None, [("".join(f"/{escaped(str(part))}" for part in each["loc"]), _reason(each)) for each in found]


def _reason(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "no such member"
    return str(error["msg"]).removeprefix("Value error, ")


def merged_outputs(order: ArtifactOrder, given: Mapping[str, WantedOutput]) -> tuple[WantedOutput, ...]:
    """Return the outputs of an order with those of a request, which has precedence by name."""
    both = {each.wanted.name: each.wanted for each in order.outputs} | dict(given)
    return tuple(both.values())


def output_faults(
    bodies: Sequence[object], order: ArtifactOrder, given: Mapping[str, WantedOutput], *, namespace: str
) -> Iterator[tuple[str, str]]:
    """Yield the outputs whose object the set does not have, or has several times; ``bodies``: its objects, in any form.

    Each with its place: the line of the order, or the name in the request.
    """
    found: dict[tuple[str, str, str], set[str]] = {}
    for body in bodies:
        metadata = body.get("metadata") if isinstance(body, Mapping) else None
        if isinstance(body, Mapping) and isinstance(metadata, Mapping):
            place = metadata.get("namespace") or namespace
            key = (str(body.get("kind")), str(place), str(metadata.get("name")))
            found.setdefault(key, set()).add(str(body.get("apiVersion")))
    places = {each.wanted.name: each for each in order.outputs}
    for wanted in merged_outputs(order, given):
        versions = found.get((wanted.kind, wanted.namespace or namespace, wanted.object_name), set())
        reason = _fault(wanted, versions)
        if not reason:
            continue
        if wanted.name in given:
            yield f"{OUTPUTS}/{wanted.name}", reason
        else:
            yield ORDER, f"{places[wanted.name].place}: outputs/{wanted.name}: {reason}"


def _fault(wanted: WantedOutput, versions: set[str]) -> str:
    if not versions or wanted.api_version not in (None, *versions):
        return f"an object of the artifacts expected; they have no {wanted.kind} {wanted.object_name} there"
    if wanted.api_version is None and len(versions) > 1:
        return f"api_version expected: {wanted.kind} {wanted.object_name} is in {' and '.join(sorted(versions))}"
    return ""
