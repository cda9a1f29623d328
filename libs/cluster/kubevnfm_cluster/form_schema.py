"""JSON Schemas of the parameters of a cluster, as a person fills them in: with the bounds of the forms that read them."""

from __future__ import annotations

from typing import Any

from kubevnfm_kit.json_schema import DescribedSchema
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from kubevnfm_cluster.forms import Form, LoginNames, Part


class FormSchema(DescribedSchema):
    """For the argument ``schema_generator`` of pydantic's functions: of requests, where secrets are texts in clear.

    Null and empty texts count as not given, whatever the schema says.
    """

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> JsonSchemaValue:
        """Make the schema of a value with a form."""
        form = getattr(schema["function"]["function"], "__self__", None)
        if not isinstance(form, Form):
            return super().function_before_schema(schema)
        own = dict(form.schema)
        found = own if "type" in own else {**super().function_before_schema(schema), **own}
        return {"description": f"{form.expected[:1].upper()}{form.expected[1:]}", **found}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Make the schema of an object."""
        model, found = schema["cls"], super().model_schema(schema)
        if not (isinstance(model, type) and issubclass(model, Part)):
            return found
        if model.is_closed:
            found["additionalProperties"] = False
        for one, other in model.pairs:
            found.setdefault("dependentRequired", {}).update({one: [other], other: [one]})
        rules = [rule for names in model.logins for rule in _login_rules(names)]
        if rules:
            found["allOf"] = [*found.get("allOf", []), *rules]
        return found


def _login_rules(names: LoginNames) -> list[dict[str, Any]]:
    """Return the rules between the attributes of a login, as `forms` checks them."""
    secret = [{"required": [names.password]}, {"required": [names.private_key]}]
    has_user: dict[str, Any] = {"required": [names.username]}
    exclusive: dict[str, Any] = {"not": {"required": [names.password, names.private_key]}}
    with_key: dict[str, Any] = {"dependentRequired": {names.passphrase: [names.private_key]}}
    if names.is_optional:
        return [
            exclusive,
            with_key,
            {"if": {"anyOf": secret}, "then": has_user},
            {"if": has_user, "then": {"anyOf": secret}},
        ]
    return [exclusive, with_key, {"anyOf": secret}, has_user]
