"""``/multicloud/v1/artifacts/{csar_id}/variables`` over HTTP (multicloud.md MC-022)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from packages.package_variants import OTHER_CNF, variant
from worlds.lcm_world import Answer, World, lcm_world

FOLDER = "Files/kubernetes"
DB = """\
apiVersion: v1
kind: Service
metadata: {name: "db-${vnf_id}"}
spec: {ports: [{port: "${db.port}"}]}
---
apiVersion: v1
kind: Secret
metadata: {name: s, labels: {zone: "${zone:-none}", site: "$site"}}
stringData: {key: "$db_password", other: "$token"}
"""
ORDER = """\
artifacts: [{file: db.yaml}, {file: off.yaml, substitute: false}]
values: {level: 3, db: {port: 5432}, token: default-token, other: {list: [1]}, vnf_name: x}
"""
SCHEMA = {
    "required": ["site", "db", "mode"],
    "properties": {
        "db": {
            "required": ["host"],
            "properties": {
                "host": {"type": "string", "description": "of the database"},
                "port": {"type": "integer"},
            },
        },
        "mode": {"enum": ["a", "b"], "type": ["string", "null"]},
        "size": {"default": 7},
    },
}
FILES = {
    f"{FOLDER}/artifact-order.yaml": ORDER,
    f"{FOLDER}/values.schema.json": json.dumps(SCHEMA),
    f"{FOLDER}/db.yaml": DB,
    f"{FOLDER}/off.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {script: 'echo $HOME'}\n",
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with lcm_world(tmp_path) as running:
        yield running


async def variables(world: World, package_id: str, **more: Any) -> Answer:
    return await world.call("GET", f"/multicloud/v1/artifacts/{package_id}/variables", headers={}, **more)


def variable(name: str, kind: str | None, places: list[tuple[int, str]] = [], **more: Any) -> dict[str, Any]:  # noqa: B006
    file = f"{FOLDER}/db.yaml"
    return {
        "name": name,
        **({} if kind is None else {"type": kind}),
        "required": False,
        "secret": False,
        "places": [{"file": file, "document": document, "path": path} for document, path in places],
        **more,
    }


async def test_all_that_a_request_can_set_is_listed(world: World) -> None:
    """MC-022: of the schema, the order and the artifacts; reserved names, and files that are left as they are, not."""
    package_id = (await world.upload(variant(world.folder, files=FILES)))["id"]
    answer = (await variables(world, package_id)).must(200)
    assert answer.json == [
        variable("db.host", "string", required=True, description="of the database"),
        variable("db.port", "integer", [(0, "/spec/ports/0/port")], default=5432),
        variable("db_password", None, [(1, "/stringData/key")], required=True, secret=True),
        variable("level", "integer", default=3),
        variable("mode", "string", required=True, enum=["a", "b"]),
        variable("other.list", "array", default=[1]),
        variable("site", None, [(1, "/metadata/labels/site")], required=True),
        variable("size", "integer", default=7),
        variable("token", "string", [(1, "/stringData/other")], default="***", secret=True),
        variable("vnf_name", "string", default="x"),
        variable("zone", None, [(1, "/metadata/labels/zone")]),
    ]
    assert "default-token" not in str(answer.raw)
    tag = answer.headers["ETag"]
    again = await world.call("GET", f"/multicloud/v1/artifacts/{package_id}/variables", headers={"If-None-Match": tag})
    again.must(304)


async def test_a_package_that_cannot_be_listed_is_refused(world: World) -> None:
    """Bad input: an unknown package, one that is not onboarded, one with several orders or a fault; none has none."""
    (await variables(world, "11111111-2222-4333-8444-555555555555")).problem(404)
    created = (await world.packages("POST", body={})).must(201).json["id"]
    (await variables(world, created)).problem(409)
    plain = (await world.sample("cnf"))["id"]
    assert (await variables(world, plain)).must(200).json == []
    (await variables(world, plain, params={"hue": "x"})).problem(400)

    other = {**FILES, "metadata.yaml": f"artifacts: [{{file: {FOLDER}/bad.yaml}}]", f"{FOLDER}/bad.yaml": "a: b: c\n"}
    many = {f"p{n}": {"$ref": "#/$defs/long"} for n in range(400)}
    other["Artifacts/artifact-order.yaml"] = f"artifacts: [{{file: {FOLDER}/db.yaml}}]"
    other["Artifacts/values.schema.json"] = json.dumps(
        {"$defs": {"long": {"default": "x" * 30_000}}, "properties": many}
    )
    package_id = (await world.upload(variant(world.folder, vnfd_id=OTHER_CNF, files=other)))["id"]
    for params, reason in (
        ({}, "several order artifacts"),
        ({"order_artifact": "none.yaml"}, "the path of a file in the package expected"),
        ({"order_artifact": "Artifacts/artifact-order.yaml"}, "the list of its variables has more than 8388608 bytes"),
        ({"order_artifact": "metadata.yaml"}, f"{FOLDER}/bad.yaml:1:5: invalid YAML"),
    ):
        problem = (await variables(world, package_id, params=params)).problem(422)
        assert [each["pointer"] for each in problem["errors"]] == ["/csar_id"]
        assert reason in problem["detail"]
    named = {"order_artifact": f"{FOLDER}/artifact-order.yaml"}
    assert len((await variables(world, package_id, params=named)).must(200).json) == 11
