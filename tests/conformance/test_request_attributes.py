"""Every attribute of every request, and of the grants that we read: done, refused, or not used with a warning (attributes.md).

The attributes come from ETSI's files (`callers.etsi_attributes`) and from the types of the gateway. Each is sent through the gateway, and the verdict of the
page found true. One that is done is accepted without a warning, and refused by name with a value of a wrong type; the page names the test of its effect.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from callers.etsi import VARIABLE
from callers.etsi_attributes import Types, listed_types, read_types
from callers.request_bodies import BODIES, LINKS, LOGIN, MANAGED, PLAIN_LINK, PORTS, VIM, Sent, a_link, a_port
from contracts.named_tests import docstrings
from kubevnfm_events.objects import AttachedLink
from kubevnfm_events.snapshots import MachineReverted, MachineSnapshot, SnapshotTaken
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.lab import Lab
from kubevnfm_lcm_api.gateway.models import VimChange, VimWanted
from kubevnfm_lcm_api.notifications.domain.lifecycle import LccnSubscriptionRequest
from kubevnfm_lcm_api.notifications.domain.packages import PkgmSubscriptionRequest
from kubevnfm_lcm_api.packages.http.content import UploadFromUriRequest
from kubevnfm_sol import lcm, packages, snapshots
from kubevnfm_sol.attributes import attributes_of, inner_types
from kubevnfm_sol.granting import Grant
from packages.package_variants import variant
from packages.vm_packages import OTHER_IMAGE, TWO_FLAVOURS, TWO_POINTS, other_image, two_flavours, two_points
from pydantic import BaseModel
from servers.nfvo import StubNfvo
from worlds import vim_world
from worlds.lcm_builders import RESOURCES
from worlds.lcm_world import Answer, World, lcm_world, sample_request
from worlds.vim_world import World as VimWorld

PAGE: Final = Path(__file__).parents[2] / "docs/specification/attributes.md"
VERDICTS: Final = ("done", "refused", "warned")
ANSWERS: Final = ("given", "never")
MODELS: Final[Mapping[str, type[BaseModel]]] = {
    **{
        name: getattr(lcm, name)
        for name in (
            "CreateVnfRequest",
            "InstantiateVnfRequest",
            "ScaleVnfRequest",
            "ScaleVnfToLevelRequest",
            "ChangeVnfFlavourRequest",
            "TerminateVnfRequest",
            "HealVnfRequest",
            "OperateVnfRequest",
            "ChangeExtVnfConnectivityRequest",
            "ChangeCurrentVnfPkgRequest",
            "VnfInfoModificationRequest",
            "CancelMode",
        )
    },
    "CreateVnfSnapshotInfoRequest": snapshots.CreateVnfSnapshotInfoRequest,
    "VnfSnapshotInfoModificationRequest": snapshots.VnfSnapshotInfoModificationRequest,
    "CreateVnfSnapshotRequest": snapshots.CreateVnfSnapshotRequest,
    "RevertToVnfSnapshotRequest": snapshots.RevertToVnfSnapshotRequest,
    "LccnSubscriptionRequest": LccnSubscriptionRequest,
    "PkgmSubscriptionRequest": PkgmSubscriptionRequest,
    "CreateVnfPkgInfoRequest": packages.CreateVnfPkgInfoRequest,
    "VnfPkgInfoModifications": packages.VnfPkgInfoModificationRequest,
    "UploadVnfPackageFromUriRequest": UploadFromUriRequest,
    "ExternalArtifactsAccessConfig": packages.ExternalArtifactsAccessConfig,
    "Grant": Grant,
    "VimWanted": VimWanted,
    "VimChange": VimChange,
}
"""Our types by those of ETSI, and those of the VIM API."""
ANSWERED: Final[Mapping[str, type[BaseModel]]] = {
    "VnfInstance": lcm.VnfInstance,
    "VnfLcmOpOcc": lcm.VnfLcmOpOcc,
    "VnfPkgInfo": packages.VnfPkgInfo,
    "LccnSubscription": LccnSubscriptionRequest,
    "PkgmSubscription": PkgmSubscriptionRequest,
}
"""The types of answers that are written from our own."""


# --- the attributes, and the page --------------------------------------------------------------------------------------


@cache
def types() -> Types:
    """Return the attributes of each type: those of ETSI, and those that only the gateway has."""
    found = {name: dict(attributes) for name, attributes in listed_types()["requests"].items()}
    for name, model in MODELS.items():
        _add(found, name, model)
    return found


def _add(found: dict[str, dict[str, str]], name: str, model: type[BaseModel], etsi: Types | None = None) -> None:
    """Add the attributes of a type; ``etsi``: the names of types in it, None: those that are found already."""
    known = found.setdefault(name, {})
    named = known if etsi is None else etsi.get(name, {})
    inner = inner_types(model)
    for attribute in attributes_of(model):
        known.setdefault(attribute, "")
        if attribute in inner:
            known[attribute] = named.get(attribute) or inner[attribute].__name__
            _add(found, known[attribute], inner[attribute], etsi)


@dataclass(frozen=True)
class Row:
    """A row of the page."""

    attribute: str
    """With its type: ``ExtVirtualLinkData.resourceId``."""
    where: frozenset[str]
    """The requests, versions and kinds of VNF that it is about; empty: all."""
    verdict: str
    text: str

    @property
    def tests(self) -> Sequence[str]:
        return re.findall(r"`([^`]+::[^`]+)`", self.text)


@cache
def rows(verdicts: Sequence[str] = VERDICTS) -> Sequence[Row]:
    """Return the rows with one of the verdicts: about requests, or `ANSWERS`."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 4 and cells[2] in verdicts:
            where = frozenset(cells[1].split(", ")) if cells[1] else frozenset[str]()
            found.append(Row(cells[0].strip("`"), where, cells[2], cells[3]))
    return found


def verdict(attribute: str, *where: str) -> str | None:
    """Return what the row says that fits best; None: there is no row."""
    fit = [row for row in rows() if row.attribute == attribute and row.where <= set(where)]
    return max(fit, key=lambda row: len(row.where)).verdict if fit else None


def test_the_list_is_that_of_etsi() -> None:
    folder = os.environ.get(VARIABLE)
    if folder is None:
        pytest.skip(f"NOT CHECKED AGAINST ETSI: {VARIABLE} does not name the folder of its OpenAPI files")
    assert read_types(Path(folder)) == listed_types()


def test_each_attribute_has_a_verdict() -> None:
    """API-160."""
    wanted = {f"{name}.{one}" for name, attributes in types().items() for one in attributes}
    assert sorted(wanted - {row.attribute for row in rows()}) == []
    assert sorted({row.attribute for row in rows()} - wanted) == []


def test_what_is_done_is_shown_by_tests_that_exist() -> None:
    """API-160."""
    assert [row.attribute for row in rows() if row.verdict == "done" and not row.tests] == []
    assert [one for row in rows() for one in row.tests if one not in docstrings()] == []
    assert [row.attribute for row in rows() if row.verdict != "done" and not row.text] == []


def test_each_attribute_of_an_answer_is_given_or_there_is_a_reason() -> None:
    """API-152: those of V3.7.1 that no answer of the second version has."""
    ours: dict[str, dict[str, str]] = {}
    for name, model in ANSWERED.items():
        _add(ours, name, model, listed_types()["answers"])
    whole = {row.attribute for row in rows(ANSWERS) if row.verdict == "given" or "." not in row.attribute}
    never = {row.attribute for row in rows(ANSWERS)} - whole
    etsi = listed_types()["answers"]
    missing = {
        f"{name}.{one}"
        for name, attributes in etsi.items()
        for one in attributes
        if one not in ours.get(name, ())
        and not any(f"{name}.{one}.".startswith(f"{each}.") for each in whole)
        and not any(f"{name}.".startswith(f"{each}.") for each in never)
    }
    assert sorted(missing - never) == []
    assert sorted(never - missing) == []
    assert [row.attribute for row in rows(ANSWERS) if row.verdict == "given" and not row.tests] == []
    assert [one for row in rows(ANSWERS) for one in row.tests if one not in docstrings()] == []
    assert [row.attribute for row in rows(ANSWERS) if not row.text] == []


# --- the requests -------------------------------------------------------------------------------------------------------

MAPS: Final = frozenset({"cpConfig", "vimConnectionInfo"})
VALUES: Final[Mapping[str, Any]] = {
    "createExtLinkPort": True,
    "segmentationType": "VLAN",
    "netAttDefResourceId": ["x"],
    "extLinkPorts": PORTS,
    "addressRange": {"minAddress": "10.0.0.9", "maxAddress": "10.0.0.12"},
    "vnfLinkPort": [{"vnfLinkPortId": "x", "resourceHandle": {"resourceId": "x"}}],
}
"""Right values of attributes that are refused; those of the others are texts."""
Place = tuple[str | int, ...]


@dataclass(frozen=True)
class Found:
    """An attribute at its place in a body."""

    attribute: str
    """With its type."""
    place: Place

    @property
    def name(self) -> str:
        return str(self.place[-1])


def attributes_in(type_name: str, body: Any, place: Place = ()) -> Iterator[Found]:
    """Yield the attributes that a body has, or could have where it has an object."""
    for name, inner in types()[type_name].items():
        yield Found(f"{type_name}.{name}", (*place, name))
        if inner and name in body:
            yield from _inside(inner, body[name], (*place, name), is_map=name in MAPS)


def _inside(inner: str, value: Any, place: Place, *, is_map: bool) -> Iterator[Found]:
    if isinstance(value, list):
        for index, one in enumerate(value):
            yield from attributes_in(inner, one, (*place, index))
    elif is_map:
        for key, one in value.items():
            yield from attributes_in(inner, one, (*place, key))
    else:
        yield from attributes_in(inner, value, place)


def value_at(body: Any, place: Place) -> Any:
    """Return the value at a place; None: there is none."""
    for part in place:
        body = body.get(part) if isinstance(body, Mapping) else body[part]
        if body is None:
            return None
    return body


def with_value(body: Mapping[str, Any], place: Place, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(dict(body))
    holder: Any = changed
    for part in place[:-1]:
        holder = holder.setdefault(part, {}) if isinstance(holder, dict) else holder[part]
    holder[place[-1]] = value
    return changed


def in_v1(body: Any) -> Any:
    """Return a body with the maps of v2 as the lists of v1."""
    if isinstance(body, list):
        return [in_v1(one) for one in body]
    if not isinstance(body, Mapping):
        return body
    found = {name: in_v1(value) for name, value in body.items()}
    for name, key in (("vimConnectionInfo", "id"), ("cpConfig", "cpInstanceId")):
        if isinstance(body.get(name), Mapping):
            found[name] = [{key: one, **in_v1(value)} for one, value in body[name].items()]
    return found


def names(answer: Answer, attribute: str) -> bool:
    """Return whether a refusal names the attribute by its place."""
    places = [one["name"] for one in answer.json.get("invalidParams", ())]
    return any(re.search(rf"(^|/){re.escape(attribute)}(\[\d+\])?(/|$)", place) for place in places)


@dataclass
class Stage:
    """A gateway with packages, and VNFs in the states that requests need; each is made once."""

    world: World
    packages: dict[str, str] = field(default_factory=dict)
    vnfs: dict[tuple[str, str], str] = field(default_factory=dict)

    async def send(self, sent: Sent, version: str, body: Mapping[str, Any]) -> Answer:
        path = sent.path
        for state in re.findall(r"\{(\w+)\}", path):
            path = path.replace(f"{{{state}}}", await self.id_of(state, version))
        named = await self._named(body, version)
        prefix = "/vnfpkgm" if path.startswith("/vnfpkgm") else "/vnflcm"
        url = f"{prefix}/{version}{path.removeprefix(prefix)}"
        return await self.world.call(
            sent.method, url, in_v1(named) if version == "v1" else named, headers=HEADERS[version]
        )

    async def _named(self, body: Any, version: str) -> Any:
        if isinstance(body, Mapping):
            return {name: await self._named(value, version) for name, value in body.items()}
        if isinstance(body, list):
            return [await self._named(one, version) for one in body]
        if body == "{vnfc}":
            shown = (await self.world.lcm("GET", f"/vnf_instances/{await self.id_of('up', version)}")).json
            return shown["instantiatedVnfInfo"]["vnfcInfo"][0]["id"]
        if body in ("{info}", "{taken}"):
            return await self.id_of(body[1:-1], version)
        return self.packages[body[1:-1]] if isinstance(body, str) and body.startswith("{") else body

    async def id_of(self, state: str, version: str) -> str:
        """Return a VNF, an operation or a package in a state."""
        key = (state, version)
        if key not in self.vnfs:
            self.vnfs[key] = await self._made(state)
        return self.vnfs[key]

    async def _made(self, state: str) -> str:
        world = self.world
        if state == "package":
            return str((await world.packages("POST", body={})).must(201).json["id"])
        if state == "enabled":
            return self.packages["vm"]
        if state == "info":
            return str((await world.lcm("POST", "/vnf_snapshots", {})).must(201).json["id"])
        if state == "taken":
            given = {"vnfSnapshotInfoId": await self._made("info")}
            await world.reached(await world.ask(await self.id_of("up", "v2"), "create_snapshot", given), "COMPLETED")
            return given["vnfSnapshotInfoId"]
        if state == "running":
            world.twins.waiting.add("infra.openstack.create_resources")
            operation = await world.instantiate(await world.create())
            return str((await world.reached(operation, "PROCESSING"))["id"])
        vnfd_id = {"flavours": TWO_FLAVOURS, "vm": sample_request("vm", "create")["vnfdId"]}.get(state, TWO_POINTS)
        instance = await world.create("cnf") if state == "cnf" else await world.create(vnfdId=vnfd_id)
        if state not in ("new", "cnf"):
            both = PLAIN_LINK if vnfd_id != TWO_POINTS else [*PLAIN_LINK, a_link("VDU1_CP2", a_port())]
            vims = {"vim": VIM}
            body = {"flavourId": "simple", "extVirtualLinks": both, "vimConnectionInfo": vims}
            await world.reached(await world.ask(instance, "instantiate", body), "COMPLETED")
        return instance

    async def ended(self, answer: Answer) -> Sequence[str]:
        """Wait for the end of the operation that was accepted, if it is one; return its warnings."""
        await self.world.twins.release()
        self.vnfs.pop(("running", "v1"), None)
        self.vnfs.pop(("running", "v2"), None)
        if any(state == "enabled" for state, _ in self.vnfs):
            await self.world.packages("PATCH", f"/{self.packages['vm']}", {"operationalState": "ENABLED"})
        operation = answer.headers.get("Location", "").rpartition("/vnf_lcm_op_occs/")[2]
        if answer.status != 202 or not operation:
            return []
        found: list[str] = (await self.world.reached(operation)).get("warnings", [])
        return found

    def forget(self, version: str) -> None:
        """Make new VNFs for the next requests."""
        for key in [key for key in self.vnfs if key[1] == version and key[0] not in ("vm", "flavours")]:
            del self.vnfs[key]


HEADERS: Final = {"v1": {}, "v2": {"Version": "2.3.0"}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("attributes")
    async with lcm_world(folder, allowed_networks="127.0.0.0/8") as world:
        world.vims.records["vim-1"]["placement_attr"] = {"regions": ["RegionOne"]}
        world.vims.add("VIM_ID", "kubernetes")
        for server in RESOURCES.servers:
            image = f"image-of-{server.server_id}"
            machine = MachineSnapshot(vnfc_id=server.vnfc_id, server_id=server.server_id, image_id=image)
            back = MachineReverted(server_id=server.server_id, image_id=image)
            world.twins.answers[f"infra.openstack.take_snapshot/snapshot/{server.vnfc_id}"] = SnapshotTaken(
                machine=machine
            )
            world.twins.answers[f"infra.openstack.revert_machine/revert/{server.vnfc_id}"] = back
        world.links.attachable["link-1"] = AttachedLink(name="protected", type="kube-ovn", definition="protected")
        contents = {
            "vm": world.zipped("vm"),
            "two_points": two_points(folder),
            "two_flavours": two_flavours(folder),
            "other_image": other_image(folder),
            "cnf": variant(folder, cps={"oam": None, "data": "inner"}),
        }
        found = Stage(world)
        for name, content in contents.items():
            package = await world.upload(content)
            assert package["onboardingState"] == "ONBOARDED", package
            found.packages[name] = package["id"]
        yield found


CASES: Final = [
    pytest.param(sent, version, id=f"{sent.type}-{number}-{version}")
    for number, sent in enumerate(BODIES)
    for version in sent.versions
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("sent", "version"), CASES)
async def test_each_attribute_is_treated_as_the_page_says(stage: Stage, sent: Sent, version: str) -> None:
    """API-160."""
    where = (sent.type, version, sent.kind)
    wrong: list[str] = []
    seen: set[str] = set()
    for one in attributes_in(sent.type, sent.body):
        value, said = value_at(sent.body, one.place), verdict(one.attribute, *where)
        if one.attribute in seen or (value is None and said != "refused"):
            continue
        seen.add(one.attribute)
        if said == "refused" and value is not None:
            wrong.append(f"{one.place} is in the body that is accepted: it is not refused")
            continue
        if said == "refused":
            given = VALUES.get(one.name, "probe")
        else:
            given = 5 if isinstance(value, dict | list) else {"probe": 1}
        answer = await stage.send(sent, version, with_value(sent.body, one.place, given))
        if answer.status not in (400, 422) or not names(answer, one.name):
            wrong.append(f"{one.place} with {given}: {answer.status} {answer.raw.decode()[:300]}")
    assert wrong == []
    accepted = await stage.send(sent, version, sent.body)
    assert accepted.status < 300, accepted.raw
    assert await stage.ended(accepted) == []
    stage.forget(version)
    if sent.warned:
        body: Mapping[str, Any] = sent.body
        for place, value in sent.warned.items():
            body = with_value(body, read_place(place), value)
        accepted = (await stage.send(sent, version, body)).must(202)
        warnings = await stage.ended(accepted)
        assert len(warnings) == len(sent.warned), warnings
        for place in sent.warned:
            last = place.rpartition("/")[2]
            assert any(re.search(rf"(^|/){last}:", warning) for warning in warnings), (place, warnings)
        stage.forget(version)


def test_each_attribute_is_sent() -> None:
    """API-160: but for the attributes of objects that are refused, or not used, as a whole."""
    sent = {one.attribute for each in BODIES for one in attributes_in(each.type, each.body)}
    sent |= {one.attribute for body in GRANTS for one in attributes_in("Grant", body)}
    whole = {row.attribute for row in rows() if row.text.startswith("with ")}
    of_vims = {f"{name}.{one}" for name in ("VimWanted", "VimChange") for one in types()[name]}
    assert {row.attribute for row in rows()} - sent - whole - of_vims == set()


def test_the_page_says_of_each_attribute_with_a_warning_that_it_has_one() -> None:
    """API-160: the other tests find the warnings of `Sent.warned` and `WARNED` true."""
    warned: set[str] = set()
    for each in BODIES:
        body: Mapping[str, Any] = each.body
        for place, value in each.warned.items():
            body = with_value(body, read_place(place), value)
        found = {one.place: one.attribute for one in attributes_in(each.type, body)}
        warned |= {found[place] for place in map(read_place, each.warned) if place in found}
    for place in WARNED:
        path = read_place(place.replace("[0]", "/0"))
        warned |= {one.attribute for one in attributes_in("Grant", UNUSED) if one.place == path}
    whole = {row.attribute for row in rows(("warned",)) if row.text.startswith("with ")}
    said = {row.attribute for row in rows(("warned",))} - whole
    assert said <= warned
    assert {row.attribute for row in rows() if row.verdict != "warned" and "warning" not in row.text} & warned == set()


def read_place(text: str) -> Place:
    return tuple(int(part) if part.isdigit() else part for part in text.split("/"))


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_stored_is_shown(stage: Stage) -> None:
    """API-160: attributes whose effect is what the instance and the occurrence show, or that are compared with it."""
    world = stage.world

    async def shown(instance_id: str) -> Any:
        return (await world.lcm("GET", f"/vnf_instances/{instance_id}")).must(200).json

    sent = next(each for each in BODIES if each.type == "InstantiateVnfRequest")
    port = with_value(
        sent.body, ("extVirtualLinks", 1, "extLinkPorts", 0, "resourceHandle", "vimConnectionId"), "other"
    )
    refused = await stage.send(sent, "v2", port)
    assert refused.problem(422)["detail"].startswith(
        "extVirtualLinks[1]/extLinkPorts[0]/resourceHandle/vimConnectionId: "
    )
    instance_id = await stage.id_of("new", "v2")
    await stage.ended(await stage.send(sent, "v2", sent.body))
    one = await shown(instance_id)
    assert one["instantiatedVnfInfo"]["localizationLanguage"] == "en"
    (link,) = one["instantiatedVnfInfo"]["extManagedVirtualLinkInfo"]
    assert link["extManagedMultisiteVirtualLinkId"] == "of all sites"
    assert one["extensions"] == {"site": "there"}
    assert one["vnfConfigurableProperties"]["isAutoscaleEnabled"] is True
    other = {"scaleInfo": [{"aspectId": "VDU1_scale", "vnfdId": OTHER_IMAGE, "scaleLevel": 0}]}
    level = await world.lcm("POST", f"/vnf_instances/{instance_id}/scale_to_level", other)
    assert level.problem(400)["detail"].startswith("scaleInfo[0]/vnfdId: ")
    healed = await world.reached(await world.ask(instance_id, "heal", {"cause": "the machine does not answer"}))
    assert healed["operationParams"]["cause"] == "the machine does not answer"
    vnfc = (await shown(instance_id))["instantiatedVnfInfo"]["vnfcInfo"][0]["id"]
    given = {
        "vnfInstanceDescription": "changed",
        "extensions": {"site": "elsewhere"},
        "vnfConfigurableProperties": {"isAutoscaleEnabled": False},
        "vnfcInfoModifications": [{"id": vnfc, "vnfcConfigurableProperties": {"a": "b"}}],
    }
    await stage.ended((await world.lcm("PATCH", f"/vnf_instances/{instance_id}", given)).must(202))
    one = await shown(instance_id)
    assert (one["vnfInstanceDescription"], one["extensions"]) == ("changed", {"site": "elsewhere"})
    assert one["vnfConfigurableProperties"]["isAutoscaleEnabled"] is False
    assert one["instantiatedVnfInfo"]["vnfcInfo"][0]["vnfcConfigurableProperties"] == {"a": "b"}
    for name, state in (("ChangeVnfFlavourRequest", "flavours"), ("ChangeCurrentVnfPkgRequest", "vm")):
        change = next(each for each in BODIES if each.type == name)
        stage.vnfs.pop((state, "v2"), None)
        instance_id = await stage.id_of(state, "v2")
        await stage.ended(await stage.send(change, "v2", change.body))
        one = await shown(instance_id)
        assert one["extensions"] == {"site": "there"}, name
        assert one["vnfConfigurableProperties"]["isAutoscaleEnabled"] is True, name
        (link,) = one["instantiatedVnfInfo"]["extVirtualLinkInfo"]
        assert (link["id"], link["resourceHandle"]["resourceId"]) == ("link of VDU1_CP1", "net0"), name
        del stage.vnfs[state, "v2"]


# --- grants ---------------------------------------------------------------------------------------------------------------

OWN_VIM: Final = {"vimConnectionId": "vim"}
OTHER_VIM: Final = {"vimConnectionId": "other", "resourceProviderId": "x"}
RESOURCE: Final = {"resourceDefinitionId": "VDU1-add-0", **OWN_VIM}
HREF: Final = {"href": "http://127.0.0.1:9/"}
USED: Final[Mapping[str, Any]] = {
    "vimConnectionInfo": {"vim": {**VIM, **LOGIN}},
    "zones": [{"id": "z", "zoneId": "nova", **OWN_VIM}],
    "addResources": [{**RESOURCE, "zoneId": "z"}],
    "tempResources": [RESOURCE],
    "removeResources": [RESOURCE],
    "updateResources": [RESOURCE],
    "vimAssets": {
        "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "VDU1", "vimFlavourId": "m1.tiny", **OWN_VIM}],
        "softwareImages": [{"vnfdSoftwareImageId": "VDU1", "vimSoftwareImageId": "i", **OWN_VIM}],
    },
    "extVirtualLinks": LINKS,
    "extManagedVirtualLinks": MANAGED,
    "additionalParams": {"a": "b"},
    "_links": {"self": HREF, "vnfLcmOpOcc": HREF, "vnfInstance": HREF},
}
UNUSED: Final[Mapping[str, Any]] = {
    "zones": [{"id": "z", "zoneId": "nova", **OTHER_VIM}],
    "zoneGroups": [{"zoneId": ["z"]}],
    **{
        name: [{"resourceDefinitionId": "x", "zoneId": "z", "reservationId": "x", "resourceGroupId": "x", **OTHER_VIM}]
        for name in ("addResources", "tempResources", "removeResources", "updateResources")
    },
    "vimAssets": {
        "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "VDU1", "vimFlavourId": "m1.tiny", **OTHER_VIM}],
        "softwareImages": [{"vnfdSoftwareImageId": "VDU1", "vimSoftwareImageId": "i", **OTHER_VIM}],
        "snapshotResources": [{"vimSnapshotResourceId": "x"}],
    },
    "extVirtualLinks": [{**LINKS[0], "resourceProviderId": "x"}, *LINKS[1:]],
    "unknown": "x",
}
GRANTS: Final = (USED, UNUSED)
_RESOURCES: Final = ("addResources", "tempResources", "removeResources", "updateResources")
_LISTS: Final = ("zones", *_RESOURCES, "vimAssets/computeResourceFlavours", "vimAssets/softwareImages")
WARNED: Final = frozenset(
    {
        *(f"{name}[0]/{one}" for name in _LISTS for one in ("vimConnectionId", "resourceProviderId")),
        *(f"{name}[0]/{one}" for name in _RESOURCES for one in ("reservationId", "resourceGroupId")),
        *(f"{name}[0]/zoneId" for name in _RESOURCES[1:]),
        "zoneGroups",
        "unknown",
        "vimAssets/snapshotResources",
        "extVirtualLinks[0]/resourceProviderId",
    }
)
"""The places of `UNUSED` with a warning."""


@pytest_asyncio.fixture
async def granting(tmp_path: Path) -> AsyncIterator[tuple[World, StubNfvo]]:
    async with AsyncExitStack() as stack:
        nfvo = await stack.enter_async_context(StubNfvo.listening())
        world = await stack.enter_async_context(lcm_world(tmp_path, nfvo_url=nfvo.url, nfvo_poll_s=0.02))
        await world.upload(two_points(tmp_path))
        yield world, nfvo


async def granted(world: World, nfvo: StubNfvo, grant: Mapping[str, Any]) -> dict[str, Any]:
    """Return an instantiate that gets the grant, at its end."""
    nfvo.more = dict(grant)
    both = [*PLAIN_LINK, a_link("VDU1_CP2", a_port())]
    body = {"flavourId": "simple", "extVirtualLinks": both, "vimConnectionInfo": {"vim": VIM}}
    return await world.reached(await world.ask(await world.create(vnfdId=TWO_POINTS), "instantiate", body))


async def test_what_a_grant_has_and_the_operation_does_not_use_is_a_warning(granting: tuple[World, StubNfvo]) -> None:
    """API-160."""
    world, nfvo = granting
    used = await granted(world, nfvo, USED)
    assert (used["operationState"], used.get("warnings", [])) == ("COMPLETED", [])
    places: set[str] = set()
    for name, value in UNUSED.items():
        unused = await granted(world, nfvo, {name: value})
        assert unused["operationState"] == "COMPLETED"
        places |= {warning.removeprefix("the NFVO's grant: ").partition(":")[0] for warning in unused["warnings"]}
    assert places == WARNED


async def test_what_cannot_be_done_ends_the_operation(granting: tuple[World, StubNfvo]) -> None:
    """API-160."""
    world, nfvo = granting
    wrong: list[str] = []
    found = {one.attribute: one for one in attributes_in("Grant", USED) if verdict(one.attribute, "Grant") == "refused"}
    assert len(found) > 5
    for one in found.values():
        shown = await granted(world, nfvo, with_value(USED, one.place, VALUES.get(one.name, "probe")))
        detail = shown.get("error", {}).get("detail", "")
        if shown["operationState"] != "ROLLED_BACK" or not re.search(rf"/{one.name}(\[\d+\])?: ", detail):
            wrong.append(f"{one.place}: {shown['operationState']} {detail}")
    for name in ("vnfInstanceId", "vnfLcmOpOccId"):
        shown = await granted(world, nfvo, {name: "another"})
        assert (shown["operationState"], shown["error"]["detail"].split(": ")[1]) == ("ROLLED_BACK", name)
    assert wrong == []


# --- VIMs -----------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[VimWorld]:
    async with Lab.start() as lab, vim_world.running(lab, vim_world.given_settings(), tmp_path) as world:
        yield world


async def test_each_attribute_of_a_vim_is_done_or_refused(registry: VimWorld) -> None:
    """API-160: those of a new VIM and of a change; others are refused."""
    world = registry
    whole = {**world.openstack(), "description": "d", "tenant_id": "t", "is_default": False, "extra": {"area": "x"}}
    assert whole.keys() == types()["VimWanted"].keys()
    for name, value in whole.items():
        with pytest.raises(InvalidInput, match=rf"^vim\.{name}: "):
            await world.vims.create({**whole, name: 5 if isinstance(value, dict | bool) else {"probe": 1}})
    made = await world.vims.create(whole)
    assert [warning.partition(":")[0] for warning in made["warnings"]] == ["extra.area"]
    for name, value in made.items():
        if name in types()["VimChange"]:
            with pytest.raises(InvalidInput, match=rf"^vim\.{name}: "):
                await world.vims.update(made["id"], {name: 5 if isinstance(value, dict | bool) else {"probe": 1}})
        elif name not in types()["VimWanted"]:
            with pytest.raises(InvalidInput, match=rf"^vim\.{name}: "):
                await world.vims.create({**whole, "name": "another", name: value})
            with pytest.raises(InvalidInput, match=rf"^vim\.{name}: "):
                await world.vims.update(made["id"], {name: value})
