"""Forms of requests (JSON Schema, made by the gateway): values of ``--set`` by their types, and what a request still lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubevnfm_cli.call import Call
from kubevnfm_cli.faults import Fault, Refused, UsageFault
from kubevnfm_cli.gateway import Gateway, path_of
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.schema_text import Form, facts_of, properties_of
from kubevnfm_cli.terminal import LINE, printable
from kubevnfm_cli.yaml_text import read_documents

_DEEPEST: Final = 8
_MOST_ASKED: Final = 50
_KINDS: Final[Mapping[str, Any]] = {"string": str, "integer": int, "number": int | float, "boolean": bool}
"""The types of single values."""


class Missing(NamedTuple):
    """A value that a request needs and does not have."""

    path: tuple[str, ...]
    schema: Mapping[str, Any]

    @property
    def is_secret(self) -> bool:
        """Whether it is not shown while it is typed."""
        return bool(self.schema.get("writeOnly"))

    def __str__(self) -> str:
        return printable("/".join(self.path))


def form_of(gateway: Gateway, package_id: str, operation: str, instance_id: str | None) -> Mapping[str, Any]:
    """Return the form of an operation. Raises Refused, Unreachable."""
    path = path_of("kubevnfm", "v1", "packages", package_id, "forms", operation)
    return gateway.get(path, {"instance": instance_id}).object()


def package_of(gateway: Gateway, instance_id: str) -> str:
    """Return the id of the package of an instance. Raises Refused, Unreachable."""
    vnfd_id = gateway.get(path_of("vnflcm", "v2", "vnf_instances", instance_id)).object().get("vnfdId")
    package = gateway.get(path_of("vnfpkgm", "v2", "onboarded_vnf_packages", str(vnfd_id))).object()
    return str(package["id"])


def known_form(gateway: Gateway, instance_id: str, operation: str) -> Form | None:
    """Return the form of an instance's operation; None if the gateway is too old to have forms.

    Raises Refused, also if the instance cannot do this now; Unreachable.
    """
    try:
        return Form(form_of(gateway, package_of(gateway, instance_id), operation, instance_id))
    except Refused as refused:
        if not refused.is_older:
            raise
        return None


def chosen(form: Form, body: Mapping[str, Any]) -> Form:
    """Return the form whose conditions are decided by a body."""
    return Form(form.schema, {name: value for name, value in body.items() if isinstance(value, str)})


def type_at(form: Form | None, names: Sequence[str]) -> Mapping[str, Any]:
    """Return the schema of a value; an empty one if it is not known."""
    if form is None:
        return {}
    here: Mapping[str, Any] = form.resolved(form.schema)
    for name in names:
        inner = properties_of(here).get(name, here.get("additionalProperties"))
        here = form.resolved(inner) if isinstance(inner, Mapping) else {}
    return here


def check_is_parameter(form: Form | None, parameters: str, name: str, option: str) -> None:
    """Raise UsageFault for an attribute of the request itself, unless the package has a parameter of this name too."""
    if form is None or name in properties_of(type_at(form, [parameters])):
        return
    if name in properties_of(form.resolved(form.schema)):
        raise UsageFault(
            f"{option} {printable(name)}: this is an attribute of the request, and {option} sets one of {parameters}: "
            "use an option of its own, or -f FILE"
        )


def value_of(text: str, schema: Mapping[str, Any], source: str) -> Any:
    """Return the value of a text: a text stays one where the form wants one, anything else is read as YAML. Raises UsageFault."""
    is_text = schema.get("type") == "string"
    try:
        documents = read_documents(text, source)
    except UsageFault:
        if is_text:
            return text
        raise
    value = documents[0] if documents else None if text in ("null", "~") else ""
    return text if is_text and not isinstance(value, str) else value


def missing(form: Form, body: Mapping[str, Any]) -> list[Missing]:
    """Return the single values that the form requires and the body lacks, and that have no default."""
    return list(_missing(form.resolved(form.schema), form, body, ()))[:_MOST_ASKED]


def _missing(
    schema: Mapping[str, Any], form: Form, body: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[Missing]:
    if len(path) > _DEEPEST:
        return
    required = schema.get("required") or ()
    for name, each in properties_of(schema).items():
        inner, place = form.resolved(each), (*path, name)
        given = body.get(name)
        if isinstance(given, Mapping):
            yield from _missing(inner, form, given, place)
        elif given is None and name in required and "default" not in inner and "const" not in inner:
            if inner.get("type") in _KINDS or "enum" in inner:
                yield Missing(place, inner)
            elif properties_of(inner):
                yield from _missing(inner, form, {}, place)


def can_ask(call: Call) -> bool:
    """Return whether a person can be asked."""
    return sys.stdin is not None and sys.stdin.isatty() and call.err.is_terminal


def asked(call: Call, form: Form, body: JsonObject) -> JsonObject:
    """Return the body with what it lacks, as a person types it; an empty answer leaves it to the gateway. Raises UsageFault."""
    refused: set[tuple[str, ...]] = set()
    # An answer can make others necessary, such as a flavour.
    for _ in range(_MOST_ASKED):
        wanted = next((one for one in missing(chosen(form, body), body) if one.path not in refused), None)
        if wanted is None:
            break
        value = answer(call, wanted)
        if value is None:
            refused.add(wanted.path)
        else:
            body = _with(body, wanted.path, value)
    return body


def answer(call: Call, wanted: Missing) -> Any:
    """Return the value that a person types; None if the answer is empty. Raises UsageFault."""
    facts = facts_of(wanted.schema)
    title = wanted.schema.get("description") or wanted.schema.get("title") or ""
    about = ". ".join(text.rstrip(".") for text in (str(title), facts) if text)
    if about:
        call.note(call.err.paint(printable(about, LINE), "dim"))
    while True:
        text = _typed(call, f"{wanted}: ", is_secret=wanted.is_secret)
        if not text:
            return None
        try:
            value = value_of(text, wanted.schema, str(wanted))
        except Fault as fault:
            call.note(str(fault))
            continue
        if _fits(value, wanted.schema):
            return value
        call.note(f"{'this' if wanted.is_secret else printable(text)} does not fit")


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    allowed, kind = schema.get("enum"), _KINDS.get(str(schema.get("type")))
    is_kind = kind is None or (isinstance(value, kind) and isinstance(value, bool) is (kind is bool))
    return is_kind and (not isinstance(allowed, list) or value in allowed)


def _typed(call: Call, prompt: str, *, is_secret: bool) -> str:
    if is_secret:
        from getpass import getpass

        return getpass(prompt, stream=call.err.stream)
    call.err.stream.write(prompt)
    call.err.stream.flush()
    line = sys.stdin.readline()
    if not line:
        raise UsageFault("the input has ended before all values were given")
    return line.rstrip("\r\n")


def _with(body: JsonObject, path: Sequence[str], value: Any) -> JsonObject:
    name, *rest = path
    return {**body, name: _with(dict(body.get(name) or {}), rest, value) if rest else value}
