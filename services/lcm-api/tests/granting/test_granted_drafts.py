"""The changes that a grant makes to the drafts of operations on an instantiated VNF."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_events.stacks import UserData
from kubevnfm_lcm_api.lifecycle.core.granting import GrantUnusable, read_grant
from kubevnfm_lcm_api.lifecycle.machines.change_steps import ScaleVnf
from kubevnfm_lcm_api.lifecycle.machines.changing import ConnectVmDraft
from kubevnfm_lcm_api.lifecycle.machines.scaling import ScaleVmDraft
from kubevnfm_lcm_api.lifecycle.scripts.steps import RunScriptPhase
from kubevnfm_secrets import Secret
from kubevnfm_sol.granting import Grant
from worlds.lcm_builders import (
    NETWORK,
    PACKAGE,
    RING,
    a_change_draft,
    a_cnf_draft,
    a_cnf_terminate_draft,
    a_terminate_draft,
    an_instance,
    an_instantiate_draft,
    an_operate_draft,
)

OPENSTACK = "ETSINFV.OPENSTACK_KEYSTONE.V_3"


def a_grant(**more: Any) -> Grant:
    return read_grant({"id": "g", "vnfInstanceId": "inst-1", "vnfLcmOpOccId": "op-1", **more}, "op-1", "inst-1")


def a_link(link_id: str, network: str, *cps: str) -> dict[str, Any]:
    config = {"a": {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET"}]}}
    return {"id": link_id, "resourceId": network, "extCps": [{"cpdId": cp, "cpConfig": config} for cp in cps]}


def new_access(vim_type: str = OPENSTACK) -> list[dict[str, Any]]:
    """Return vimConnectionInfo in the list form of older NFVOs."""
    access = {"username": "nfv", "password": "rotated", "project": "nfv"}
    where = {"endpoint": "https://keystone/v3"}
    return [{"id": "vim1", "vimId": "vim-1", "vimType": vim_type, "interfaceInfo": where, "accessInfo": access}]


def test_a_connection_point_that_the_grant_names_is_on_the_grants_link_only() -> None:
    before = {"extVirtualLinks": [a_link("one", "net-1", "CP1", "CP2"), a_link("two", "net-2", "CP3")]}
    draft: Any = a_change_draft(ConnectVmDraft, connections=before).granted(
        a_grant(extVirtualLinks=[a_link("new", "net-9", "CP2", "CP3")]),
        {},
    )
    found = {link["id"]: [cp["cpdId"] for cp in link["extCps"]] for link in draft.connections["extVirtualLinks"]}
    assert found == {"one": ["CP1"], "new": ["CP2", "CP3"]}


def test_a_link_is_at_the_vim_that_the_grant_names() -> None:
    """SOL003 4.4.1.11: a request may name a VIM that only the NFVO knows."""
    at_site = {**a_link("one", "net-1", "CP1"), "vimConnectionId": "site"}
    draft = an_instantiate_draft().model_copy(update={"ext_virtual_links": (at_site,)})
    site = {**new_access()[0], "id": "site", "vimId": "vim-9"}
    chosen = {"addResources": [{"resourceDefinitionId": "d", "vimConnectionId": "site"}], "vimConnectionInfo": [site]}
    assert draft.granted(a_grant(**chosen), {}).vim_key == "site"
    with pytest.raises(
        GrantUnusable, match=r"extVirtualLinks\[0\]/vimConnectionId: .*, where the machines are, expected"
    ):
        draft.granted(a_grant(), {})


def test_a_managed_link_of_the_grant_replaces_the_old_one() -> None:
    before = {"extManagedVirtualLinks": [{"id": "a", "vnfVirtualLinkDescId": "internal", "resourceId": "net-1"}]}
    given = {"id": "b", "vnfVirtualLinkDescId": "internal", "resourceId": "net-2"}
    draft: Any = a_change_draft(ScaleVmDraft, connections=before).granted(a_grant(extManagedVirtualLinks=[given]), {})
    assert draft.connections["extManagedVirtualLinks"] == [given]


def test_a_scale_passes_granted_zones_on_and_its_rollback_does_not() -> None:
    zones = [{"id": "z1", "zoneId": "nova"}]
    request = {"operation": "SCALE", "addResources": []}
    draft: Any = a_change_draft(ScaleVmDraft, grant_request=request).granted(a_grant(zones=zones), {"other": 1})
    assert ScaleVnf().ask(draft).grant["zones"] == zones
    assert ScaleVnf().ask(draft).grant_request == request
    undo = ScaleVnf().undo(draft)
    assert undo is not None
    assert undo.grant == {}


def test_scripts_of_a_cnf_get_the_grant() -> None:
    zones = [{"id": "z1", "zoneId": "nova"}]
    request = {"operation": "INSTANTIATE", "addResources": []}
    for draft in (a_cnf_draft(), a_cnf_terminate_draft(package=PACKAGE)):
        moment = f"{draft.plan.partition('_')[0]}_start"
        known = {"scripts": {moment: "own.py"}, "instance": an_instance().vnf.model_dump(by_alias=True)}
        changed: Any = draft.model_copy(update=known).granted(a_grant(zones=zones), request)
        assert RunScriptPhase(moment).ask(changed).given["grant_response"]["zones"] == zones


@pytest.mark.parametrize("draft", [a_change_draft(ScaleVmDraft), an_operate_draft(), a_terminate_draft()])
def test_granted_access_data_of_the_same_vim_replace_the_old(draft: Any) -> None:
    changed: Any = draft.granted(a_grant(vimConnectionInfo=new_access()), {})
    password = changed.vim.access_info["password"]
    assert isinstance(password, Secret)
    assert password.reveal(RING) == "rotated"


@pytest.mark.parametrize("draft", [a_change_draft(ScaleVmDraft), an_operate_draft(), a_terminate_draft()])
def test_a_granted_vim_that_names_none_is_that_of_the_operation(draft: Any) -> None:
    """The form of Tacker's v1, whose access data nothing reads."""
    (entry,) = new_access()
    del entry["vimId"]
    entry["accessInfo"] = {"username": "u", "region": "RegionOne", "password": "p", "tenant": "t"}
    assert draft.granted(a_grant(vimConnectionInfo=[entry]), {}).vim == draft.vim


@pytest.mark.parametrize(
    ("part", "value", "place"),
    [
        ("accessInfo", {"username": "u", "project": "p"}, "accessInfo/password"),
        ("accessInfo", {"colour": "blue"}, "accessInfo/colour"),
        ("extra", {"interface": "private"}, "extra/interface"),
    ],
)
def test_a_granted_vim_that_is_no_login_is_refused(part: str, value: dict[str, str], place: str) -> None:
    (entry,) = new_access()
    with pytest.raises(GrantUnusable, match=f"vim1/{place}"):
        an_operate_draft().granted(a_grant(vimConnectionInfo=[{**entry, part: value}]), {})


@pytest.mark.parametrize("draft", [an_instantiate_draft(), an_operate_draft(), a_terminate_draft()])
def test_a_granted_vim_of_another_type_is_refused(draft: Any) -> None:
    draft = draft.model_copy(update={"vim": draft.vim.model_copy(update={"vim_type": OPENSTACK})})
    with pytest.raises(GrantUnusable, match="vim1/vimType"):
        draft.granted(a_grant(vimConnectionInfo=new_access("kubernetes")), {})


@pytest.mark.parametrize("draft", [a_cnf_draft(is_placed=True), a_cnf_draft(networks=(NETWORK,))])
def test_a_grant_moves_no_vnf_to_another_cloud_region(draft: Any) -> None:
    """Neither one whose request has named the region, nor one on virtual links, which are in their region."""
    reference = {"id": "k", "vimId": draft.vim_id, "vimType": draft.vim.vim_type}
    assert draft.granted(a_grant(vimConnectionInfo=[reference]), {}).vim_id == draft.vim_id
    with pytest.raises(GrantUnusable, match="cloud region"):
        draft.granted(a_grant(vimConnectionInfo=[{**reference, "vimId": "vim-2"}]), {})


def test_an_empty_grant_does_not_change_the_draft() -> None:
    draft = an_operate_draft()
    assert draft.granted(a_grant(), {}) == draft


@pytest.mark.parametrize("draft", [an_instantiate_draft, lambda **known: a_change_draft(ConnectVmDraft, **known)])
def test_a_connection_point_on_two_links_of_the_grant_is_refused_unless_a_class_reads_the_grant(draft: Any) -> None:
    grant = a_grant(extVirtualLinks=[a_link("one", "net-1", "CP1", "CP2"), a_link("two", "net-2", "CP3", "CP1")])
    with pytest.raises(
        GrantUnusable,
        match=r"extVirtualLinks\[1\]/extCps\[1\]/cpdId: CP1 is at extVirtualLinks\[0\]/extCps\[0\] already",
    ):
        draft().granted(grant, {})
    read = draft(user_data=UserData(path="UserData/a.py", class_name="A")).granted(grant, {})
    assert read.grant["extVirtualLinks"] == grant.model_dump(by_alias=True, exclude_none=True)["extVirtualLinks"]
