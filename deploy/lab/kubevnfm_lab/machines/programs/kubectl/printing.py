"""How kubectl prints objects: json, yaml, name, jsonpath, custom columns and the server's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.apiclient import Resource
from kubevnfm_lab.machines.jsonpath import BadTemplate, render
from kubevnfm_lab.machines.programs.call import Failed

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def named(resource: Resource, obj: dict[str, Any]) -> str:
    """Return ``deployment.apps/web``."""
    return f"{resource.singular_name}/{obj['metadata']['name']}"


def structured(form: str, document: Any) -> str:
    """Return a document as json, yaml or the output of a template; fail for unknown formats."""
    kind, _, template = form.partition("=")
    try:
        match kind:
            case "json":
                return json.dumps(document, indent=4) + "\n"
            case "yaml":
                return yaml_text.dump(document, sort_keys=True)
            case "jsonpath":
                return render(template, document)
            case "custom-columns":
                return _columns(template, document)
    except BadTemplate as error:
        raise Failed(str(error)) from error
    raise Failed(
        f'error: unable to match a printer suitable for the output format "{form}", allowed formats are: '
        "custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,"
        "name,template,templatefile,wide,yaml"
    )


def _columns(template: str, document: Any) -> str:
    columns = [column.partition(":")[::2] for column in template.split(",")]
    items = document["items"] if isinstance(document, dict) and "items" in document else [document]
    rows = [[head for head, _ in columns]]
    rows += [[render("{" + path + "}", item) or "<none>" for _, path in columns] for item in items]
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows with aligned columns, three spaces apart."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    lines = ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)


def table_rows(table: dict[str, Any], *, wide: bool, namespaced: bool, heads: bool) -> list[list[str]]:
    """Return a server's Table as rows of text; with the namespace first if objects of several are listed."""
    chosen = [
        (index, column["name"].upper())
        for index, column in enumerate(table.get("columnDefinitions", []))
        if wide or not column.get("priority")
    ]
    rows = [["NAMESPACE"] * namespaced + [name for _, name in chosen]] if heads else []
    for row in table.get("rows", []):
        space = [(row.get("object") or {}).get("metadata", {}).get("namespace", "")] if namespaced else []
        rows.append([*space, *(_cell(row["cells"][index]) for index, _ in chosen)])
    return rows


def _cell(value: Any) -> str:
    return "<none>" if value is None or value == "" else str(value)
