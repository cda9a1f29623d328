"""The document as a page for people: made here, one file, without scripts and without anything from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Final

from kubevnfm_kit.json_types import JsonMapping

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'"
"""Content-Security-Policy of the page: the browser fetches and runs nothing."""
_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2128; background: #fff }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #d0d7de }
code { font: 13px/1.5 ui-monospace, monospace } a { color: #0550ae }
details { border: 1px solid #d0d7de; border-radius: 6px; margin: .4rem 0; padding: .3rem .7rem }
summary { cursor: pointer } .method { display: inline-block; min-width: 4.2rem; font-weight: 600 }
.GET { color: #0550ae } .POST { color: #116329 } .PUT, .PATCH { color: #953800 } .DELETE { color: #a40e26 }
table { border-collapse: collapse; margin: .4rem 0; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .15rem .8rem .15rem 0; border-top: 1px solid #eaeef2 }
.small { color: #57606a }
@media (prefers-color-scheme: dark) {
  body { color: #d1d7e0; background: #151b23 } a, .GET { color: #79b8ff } .POST { color: #7ee787 }
  .PUT, .PATCH { color: #ffa657 } .DELETE { color: #ff7b72 } details, h2, td, th { border-color: #3d444d }
}
"""


def make_page(document: JsonMapping) -> str:
    """Return the page of an OpenAPI document."""
    info = document["info"]
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])}</h1><p>{escape(info['summary'])}. "
        f'Version {escape(info["version"])}. The document that this page is made of: <a href="openapi.json">openapi.json'
        "</a>.</p>"
    )
    return "".join([head, *_tags(document), *_schemas(document), "</body></html>"])


def _tags(document: JsonMapping) -> Iterator[str]:
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'])}</h2>"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(method.upper(), path, operation)


def _operation(method: str, path: str, operation: JsonMapping) -> Iterator[str]:
    yield (
        f'<details id="{escape(operation["operationId"])}"><summary><span class="method {method}">{method}</span> '
        f'<code>{escape(path)}</code> <span class="small">{escape(operation["summary"])}</span></summary>'
    )
    if operation["parameters"]:
        rows = (
            (
                f"<code>{escape(one['name'])}</code>",
                escape(one["in"]) + (", required" if one.get("required") else ""),
                _text(one.get("description", "")) + _values(one["schema"]),
            )
            for one in operation["parameters"]
        )
        yield from _table(("Parameter", "In", ""), rows)
    body = operation.get("requestBody")
    if body is not None:
        needed = "required" if body["required"] else "optional"
        yield f"<p>Body ({needed}): {_content(body['content'])}</p>"
    answers = (
        (f"<code>{escape(status)}</code>", _text(answer["description"]), _content(answer.get("content", {})))
        for status, answer in operation["responses"].items()
    )
    yield from _table(("Answer", "", ""), answers)
    yield "</details>"


def _content(content: JsonMapping) -> str:
    return "<br>".join(
        f"{_type(one['schema'])} <span class=small>{escape(media_type)}</span>" for media_type, one in content.items()
    )


def _schemas(document: JsonMapping) -> Iterator[str]:
    yield "<h2>Types</h2>"
    for name, schema in sorted(document["components"]["schemas"].items()):
        yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
        yield f"<p>{_text(schema.get('description', ''))}</p>"
        if "enum" in schema:
            yield f"<p>{_values(schema)}</p>"
        required = schema.get("required", ())
        rows = (
            (
                f"<code>{escape(attribute)}</code>" + (" *" if attribute in required else ""),
                _type(one),
                _text(one.get("description", "")) + _values(one),
            )
            for attribute, one in schema.get("properties", {}).items()
        )
        yield from _table(("Attribute (* required)", "Type", ""), rows)
        yield "</details>"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield "<table><tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</table>"


def _type(schema: JsonMapping) -> str:
    """Return the name of a type, linked where it is described."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f'<a href="#{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return f"map of {_type(values)}"
    return escape(str(schema.get("type", "anything")))


def _values(schema: JsonMapping) -> str:
    values = [value for value in schema.get("enum", ()) if value != ""]
    return " " + ", ".join(f"<code>{escape(str(value))}</code>" for value in values) if values else ""


def _text(text: str) -> str:
    """Return a description as HTML; what stands between back-quotes is code."""
    return re.sub(r"``(.+?)``", r"<code>\1</code>", escape(text))
