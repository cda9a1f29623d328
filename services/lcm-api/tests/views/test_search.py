"""``/kubevnfm/v1/packages`` and ``/search``: packages with what was found in them, and everything by the beginning of its id or name."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_clients.multicloud.links import VirtualLink
from kubevnfm_clients.multicloud.volumes import PersistentVolume
from kubevnfm_lcm_api.views.packages import placed_warning
from kubevnfm_store.query import Query
from worlds.lcm_world import World
from worlds.pm_documents import store_action, store_job, store_threshold

PACKAGES, SEARCH = "/kubevnfm/v1/packages", "/kubevnfm/v1/search"
FILES = frozenset({"Definitions/df.yaml", "Scripts/a.py", "note: odd.yaml"})


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("Definitions/df.yaml: node VDU1: cdir is not known (nearest known name: cidr)", {"nearest": "cidr"}),
        ("Definitions/df.yaml: vdu VDU: did you mean VDU1?", {"nearest": "VDU1"}),
        ("Definitions/df.yaml: line 7, column 3: a mapping expected", {"line": 7, "column": 3}),
        ("Scripts/a.py, line 12: SyntaxError: invalid syntax", {"file": "Scripts/a.py", "line": 12}),
        ("without a manifest (*.mf) in the root no digest is checked (SOL004 4.3.2)", {"file": None}),
        ("policy a.yaml: its target is no node", {"file": None}),
        ("https://example.com/a.yaml: cannot be fetched", {"file": None}),
    ],
)
def test_a_warning_says_file_line_and_nearest_name_as_data(text: str, place: dict[str, Any]) -> None:
    warning = placed_warning(text, FILES)
    known = {"file": "Definitions/df.yaml", "line": None, "column": None, "nearest": None, **place}
    assert warning.model_dump() == {"text": text, **known}


@pytest.mark.parametrize("text", [":" * 100_000, "a" * 1_000_000 + ".yaml: x", "line " * 100_000, "\x00\n: ", ""])
def test_a_hostile_warning_is_bounded(text: str) -> None:
    warning = placed_warning(text, FILES)
    assert len(warning.text) <= 600
    assert warning.file is None


async def test_packages_are_listed_with_their_failures_and_warnings(world: World) -> None:
    good = await world.sample()
    bad = await world.upload(b"PK\x05\x06" + bytes(18))
    assert bad["onboardingState"] == "ERROR"
    found = ["Definitions/df.yaml: node VDU1: cdir is not known (nearest known name: cidr)"]
    await world.store.update("vnf_packages", good["id"], {"warnings": found})
    refused = {
        "type": "package-refused",
        "detail": "Definitions/df.yaml: line 3, column 9: a value expected",
        "status": 400,
    }
    await world.store.update("vnf_packages", bad["id"], {"onboardingFailureDetails": refused})

    page = (await world.call("GET", PACKAGES)).must(200).json
    assert [each["id"] for each in page["items"]] == [bad["id"], good["id"]]
    first, second = page["items"]
    assert (first["health"], first["failure"]) == (
        "problem",
        {"code": "package-refused", "text": refused["detail"], "file": "Definitions/df.yaml", "line": 3, "column": 9},
    )
    assert (second["vnfdId"], second["warningCount"], second["usageState"]) == (good["vnfdId"], 1, "NOT_IN_USE")
    for query, wanted in (
        ("state=ERROR", [bad["id"]]),
        ("state=ONBOARDED&limit=1", [good["id"]]),
        (f"vnfdId={good['vnfdId']}", [good["id"]]),
        (f"name={good['vnfProductName'][:3]}", [good["id"]]),
        ("name=no", []),
    ):
        found_now = (await world.call("GET", f"{PACKAGES}?{query}")).must(200).json["items"]
        assert [each["id"] for each in found_now] == wanted, query
    (await world.call("GET", f"{PACKAGES}?state=GOOD")).problem(400)

    shown = (await world.call("GET", f"{PACKAGES}/{good['id']}/warnings")).must(200).json
    assert shown["warnings"][0]["nearest"] == "cidr"
    for name in ("vnfProductName", "vnfSoftwareVersion", "operationalState"):
        assert shown[name] == good[name]
    shown = (await world.call("GET", f"{PACKAGES}/{bad['id']}/warnings")).must(200).json
    assert (shown["failure"]["line"], shown["warnings"]) == (3, [])
    (await world.call("GET", f"{PACKAGES}/00000000-0000-4000-8000-000000000000/warnings")).problem(404)


async def store_what_has_no_name(world: World, instance_id: str) -> None:
    """Store subscriptions, and what is measured of an instance and done for it."""
    callbacks = ("https://nfvo.example/a", "http://***@nfvo.example:8080/b?t=***", "http://oss/nfvo")
    for number, callback in enumerate(callbacks):
        callback_of = {"id": f"sub-{number}", "callbackUri": callback, "apiVersion": "v2", "createdAt": "t"}
        await world.store.insert("subscriptions", f"sub-{number}", callback_of)
    await store_job(world.store, "pm-1", instance_id)
    await store_threshold(world.store, "above-1", instance_id)
    await store_action(world.store, "healed-1", instance_id)


async def test_everything_is_found_by_the_beginning_of_its_id_or_name(world: World) -> None:
    """Exact ones first, 20 of a kind, and a kind whose owner does not answer is named."""
    package = await world.sample()
    ids = [await world.create(vnfInstanceName=f"edge-{number:02}") for number in range(22)]
    operation = await world.instantiate(ids[0])
    world.vims.add("vim-edge", "kubernetes", name="edge-0")
    link = {
        "id": "link-1", "cloud_region_id": "op/edge", "name": "edge-link", "type": "nad", "metadata": {}, "spec": {},
        "use_count": 0, "references": (), "status": "READY", "created_at": "t", "updated_at": "t",
    }  # fmt: skip
    world.links.by_id["link-1"] = VirtualLink.model_validate(link)
    volume = {
        "id": "edge-volume", "cloud_region_id": "op/edge", "name": "data", "phase": "Bound", "size": "1Gi",
        "access_modes": ("ReadWriteOnce",), "volume_mode": "Filesystem", "reclaim": "Retain", "created_at": "t",
        "updated_at": "t",
    }  # fmt: skip
    world.volumes.by_id["edge-volume"] = PersistentVolume.model_validate(volume)

    world.regions.add("op/edge-east", "vim-edge")
    await store_what_has_no_name(world, ids[0])

    async def found(query: str) -> dict[str, Any]:
        view: dict[str, Any] = (await world.call("GET", f"{SEARCH}?{query}")).must(200).json
        return view

    view = await found("q=edge-0")
    kinds = [(each["kind"], each["name"]) for each in view["items"]]
    assert kinds[0] == ("vim", "edge-0"), "the whole name was given"
    assert [name for kind, name in kinds if kind == "instance"] == [f"edge-{number:02}" for number in range(10)]
    view = await found("q=edge-")
    assert (len([each for each in view["items"] if each["kind"] == "instance"]), view["more"]) == (20, ["instance"])
    assert {(each["kind"], each["foundBy"]) for each in view["items"]} == {
        ("instance", "name"), ("vim", "name"), ("virtual-link", "name"), ("persistent-volume", "id"), ("cloud-region", "name"),
    }  # fmt: skip
    for text, kind, wanted, found_by in (
        (ids[3], "instance", ids[3], "id"),
        (ids[3][:13], "instance", ids[3], "id"),
        (operation[:13], "operation", operation, "id"),
        (operation, "operation", operation, "id"),
        (package["id"][:13], "package", package["id"], "id"),
        (package["vnfdId"][:13], "package", package["id"], "vnfdId"),
        (package["vnfProductName"], "package", package["id"], "name"),
        ("vim-e", "vim", "vim-edge", "id"),
        ("link-1", "virtual-link", "link-1", "id"),
        ("dat", "persistent-volume", "edge-volume", "name"),
        ("edge", "cloud-region", "op/edge-east", "name"),
        ("op/edge", "cloud-region", "op/edge-east", "id"),
        ("sub-1", "subscription", "sub-1", "id"),
        ("oss", "subscription", "sub-2", "callbackUri"),
        ("https://nf", "subscription", "sub-0", "callbackUri"),
        ("pm-", "pm-job", "pm-1", "id"),
        ("above-1", "threshold", "above-1", "id"),
        ("heal", "automatic-action", "healed-1", "id"),
    ):
        (hit,) = (await found(f"q={text}&kind={kind}"))["items"]
        assert "/kubevnfm/v1/" in hit["href"], "its own view"
        assert (hit["kind"], hit["id"], hit["foundBy"]) == (kind, wanted, found_by)
    hits = (await found("q=nfvo.example"))["items"]
    assert {(each["id"], each["name"], each["isExact"]) for each in hits} == {
        ("sub-0", "https://nfvo.example/a", True), ("sub-1", "http://***@nfvo.example:8080/b?t=***", True),
    }  # fmt: skip
    for text in ("http", "nothing-of-the-kind", "//nfvo"):
        assert (await found(f"q={text}"))["items"] == [], text
    stored = (await world.store.find("vnf_lcm_op_occs", Query(limit=1)))[0].body
    for number in range(31):
        internal = {**stored["internal"], "isInternal": number < 10}
        one = {**stored, "id": f"clean-{number:02}", "internal": internal}
        await world.store.insert("vnf_lcm_op_occs", one["id"], one)
    view = await found("q=clean-")
    assert [each["id"] for each in view["items"]] == [f"clean-{number}" for number in range(10, 30)]
    assert view["more"] == ["operation"], "a clean-up is in no list, and hides nothing"

    world.links.failure = ServiceUnavailable("infra-k8s does not answer (TimeoutError)")
    view = await found("q=edge&kind=virtual-link,vim")
    assert [each["id"] for each in view["items"]] == ["vim-edge"]
    assert view["away"] == [{"kind": "virtual-link", "text": "infra-k8s does not answer (TimeoutError)"}]
    for query in ("", "q=", f"q={'x' * 256}", "q=a&kind=pod", "q=a&kind=vim,pod", "q=a&limit=3"):
        (await world.call("GET", f"{SEARCH}?{query}")).problem(400)
    assert (await found("q=%00%F0%9F%92%A9%24ne"))["items"] == []
