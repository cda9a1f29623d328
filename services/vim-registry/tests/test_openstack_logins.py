"""The ways to log in to an OpenStack, and the refusal of one that cannot serve."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_events import VimConnection
from kubevnfm_events.vim import VimStatusChanged
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lab.lab import Lab
from kubevnfm_secrets import revealed
from kubevnfm_vim_registry.settings import Settings
from worlds.vim_world import RING, World, running

LOGIN = {"username": "nfv", "user_domain_name": "Default", "password": "nfv", "cert_verify": "False"}


def an_application_credential(world: World, *, name: str = "ci", rules: list[dict[str, str]] | None = None) -> Any:
    identity = world.lab.cloud.identity
    (user,) = identity.users.values()
    project = next(iter(identity.projects.values()))
    return identity.add_application_credential(
        identity.issue(user, project, methods=("password",)), name=name, secret="", rules=rules
    )


def rules_for(*left_out: tuple[str, str], path: str = "/**") -> list[dict[str, str]]:
    """Return access rules for all services and methods, except those."""
    services = ("orchestration", "compute", "network", "image", "volumev3")
    methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
    every = [(service, method) for service in services for method in methods]
    return [{"service": s, "method": m, "path": path} for s, m in every if (s, m) not in left_out]


async def test_users_projects_and_domains_are_named_by_id_too(world: World) -> None:
    identity = world.lab.cloud.identity
    (user,), project = identity.users.values(), next(iter(identity.projects.values()))
    by_domain_ids = world.openstack(
        auth_cred={"username": "nfv", "password": "nfv", "user_domain_id": "default"},
        vim_project={"name": "nfv", "project_domain_id": "default"},
    )
    by_ids = world.openstack(
        name="ids", auth_cred={"user_id": user.user_id, "password": "nfv"}, vim_project={"id": project.project_id}
    )
    for body in (by_domain_ids, by_ids):
        made = await world.vims.create(body)
        assert made["status"] == "ACTIVE"
    access = (await world.directory.connection(VimConnection(vim_id=made["id"]))).access_info
    assert (access["userId"], access["projectId"]) == (user.user_id, project.project_id)
    with pytest.raises(InvalidInput, match="unauthorized"):
        await world.vims.create(world.openstack(name="n", auth_cred={**LOGIN, "user_domain_name": "nowhere"}))


async def test_an_application_credential_needs_no_user_and_no_project(world: World) -> None:
    credential = an_application_credential(world)
    by_id = {"application_credential_id": credential.credential_id, "application_credential_secret": credential.secret}
    made = await world.vims.create(world.openstack(auth_cred=by_id, vim_project={}))
    assert made["auth_cred"]["application_credential_secret"] == "***"
    connection = await world.directory.connection(VimConnection(vim_id=made["id"]))
    assert revealed(connection.access_info, RING)["applicationCredentialSecret"] == credential.secret
    by_name = {
        "application_credential_name": "ci",
        "application_credential_secret": credential.secret,
        "username": "nfv",
        "user_domain_name": "Default",
    }
    await world.vims.create(world.openstack(name="by name", auth_cred=by_name, vim_project={}))
    with pytest.raises(InvalidInput, match="belongs to project nfv; other was given"):
        await world.vims.create(
            world.openstack(name="x", auth_cred=by_id, vim_project={"name": "other", "project_domain_name": "Default"})
        )
    # A password replaces the credential, as a token replaces a password.
    changed = await world.vims.update(
        made["id"], {"auth_cred": LOGIN, "vim_project": {"name": "nfv", "project_domain_name": "Default"}}
    )
    assert "application_credential_id" not in changed["auth_cred"]


@pytest.mark.parametrize(
    ("login", "project", "text"),
    [
        (
            {"username": "nfv", "user_domain_name": "Other", "user_domain_id": "default"},
            {},
            "user domain Default; Other",
        ),
        ({"username": "other", "user_id": "own"}, {}, "user nfv; other"),
        ({"username": "NFV", "user_id": "own", "user_domain_name": "Other"}, {}, "user domain Default; Other"),
        ({"username": "nfv", "user_domain_id": "default"}, {"id": "own", "name": "other"}, "project nfv; other"),
        (
            {"username": "nfv", "user_domain_id": "default"},
            {"name": "nfv", "project_domain_id": "default", "project_domain_name": "Other"},
            "project domain Default; Other",
        ),
    ],
)
async def test_a_name_beside_an_id_is_that_of_the_login(world: World, login: Any, project: Any, text: str) -> None:
    identity = world.lab.cloud.identity
    (user,), own = identity.users.values(), next(iter(identity.projects.values()))
    auth_cred = {**login, "password": "nfv", **({"user_id": user.user_id} if "user_id" in login else {})}
    vim_project = {**project, **({"id": own.project_id} if "id" in project else {})} or {"id": own.project_id}
    with pytest.raises(InvalidInput, match=f"the login belongs to {text} was given"):
        await world.vims.create(world.openstack(auth_cred=auth_cred, vim_project=vim_project))
    right = {"username": "NFV", "user_id": user.user_id, "user_domain_name": "default", "password": "nfv"}
    await world.vims.create(world.openstack(auth_cred=right, vim_project={"id": own.project_id, "name": "nfv"}))


@pytest.mark.parametrize(
    ("rules", "text"),
    [
        (rules_for(("network", "POST"), ("network", "DELETE")), "do not allow POST, DELETE of Neutron"),
        (
            [rule for rule in rules_for(("image", "GET")) if rule["service"] != "volumev3"],
            "do not allow GET of Glance .image.; GET, POST, DELETE of Cinder",
        ),
        (
            [*rules_for(path="/elsewhere"), *(one for one in rules_for() if one["service"] != "compute")],
            "Nova: it rejects the application credential, whose access rules allow GET /elsewhere, POST /elsewhere",
        ),
    ],
)
async def test_access_rules_that_forbid_a_service_are_named(world: World, rules: Any, text: str) -> None:
    limited = an_application_credential(world, rules=rules)
    auth = {"application_credential_id": limited.credential_id, "application_credential_secret": limited.secret}
    with pytest.raises(InvalidInput, match=text):
        await world.vims.create(world.openstack(auth_cred=auth, vim_project={}))
    enough = an_application_credential(world, name="enough", rules=rules_for(path="/v*/**"))
    auth = {"application_credential_id": enough.credential_id, "application_credential_secret": enough.secret}
    await world.vims.create(world.openstack(auth_cred=auth, vim_project={}))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"auth_cred": {**LOGIN, "colour": "blue"}}, "vim.auth_cred.colour"),
        ({"nmae": "x"}, "vim.nmae: no such attribute: did you mean name?"),
        (
            {"auth_cred": {**LOGIN, "user_nmae": "x"}},
            "vim.auth_cred.user_nmae: no such attribute: did you mean username?",
        ),
        ({"auth_cred": {**LOGIN, "application_credential_id": "c"}}, "vim.auth_cred.password"),
        ({"auth_cred": {"application_credential_id": "c"}}, "vim.auth_cred.application_credential_secret"),
        ({"auth_cred": {"application_credential_secret": "s"}}, "vim.auth_cred.application_credential_id"),
        ({"auth_cred": {**LOGIN, "cacert": "no certificate"}}, "vim.auth_cred.cacert"),
        ({"vim_project": {"name": "nfv", "project_domain_name": "Default", "colour": "x"}}, "vim.vim_project.colour"),
        ({"extra": {"capi": {}}}, "vim.extra.capi"),
        ({"extra": {"interface": "private"}}, "vim.extra.interface"),
        ({"extra": {"region": 5}}, "vim.extra.region"),
    ],
)
async def test_what_is_not_understood_is_refused_by_name(world: World, changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        await world.vims.create(world.openstack(**changes))
    place, _, reason = field.partition(": ")
    assert refusal.value.field == place
    assert reason in str(refusal.value)


async def test_the_region_must_be_in_the_catalogue(world: World) -> None:
    with pytest.raises(InvalidInput, match="no region Mars; there are RegionOne"):
        await world.vims.create(world.openstack(extra={"region": "Mars"}))
    given = {"region": "RegionOne", "interface": "internal"}
    made = await world.vims.create(world.openstack(extra={**given, "area": "a@b", "regions": 5}))
    assert made["extra"] == {**given, "area": "a@b", "regions": 5}
    why = "not used, since kubevnfm reads no attribute of this name"
    assert made["warnings"] == [f"extra.area: {why}", f"extra.regions: {why}; the nearest is region"]
    connection = await world.directory.connection(VimConnection(vim_id=made["id"]))
    assert (connection.access_info["region"], connection.extra["interface"]) == ("RegionOne", "internal")


async def test_the_mark_of_a_site_can_be_changed_and_nothing_else_of_extra(world: World) -> None:
    made = await world.vims.create(world.openstack(extra={"interface": "internal", "kubevnfm_site": "plant"}))
    assert "warnings" not in made
    vim_id = str(made["id"])
    assert "kubevnfm_site" not in (await world.directory.connection(VimConnection(vim_id=vim_id))).extra
    changed = await world.vims.update(vim_id, {"extra": {"interface": "internal", "kubevnfm_site": "field"}})
    assert changed["extra"] == {"interface": "internal", "kubevnfm_site": "field"}
    refused: list[dict[str, object]] = [{"interface": "admin"}, {"kubevnfm_site": {}}, {"other": 1}]
    for extra in refused:
        with pytest.raises(InvalidInput):
            await world.vims.update(vim_id, {"extra": extra})
    assert (await world.vims.update(vim_id, {"extra": {"kubevnfm_site": None}}))["extra"] == {"interface": "internal"}


async def test_a_request_may_name_another_region_of_the_vim(world: World) -> None:
    made = await world.vims.create(world.openstack())
    named = VimConnection(vim_id=made["id"], access_info={"region": "RegionTwo"})
    for _ in range(2):  # the second one is answered from the cache
        assert (await world.directory.connection(named)).access_info["region"] == "RegionTwo"
        assert (await world.directory.connection(VimConnection(vim_id=made["id"]))).access_info["region"] == "RegionOne"


async def test_a_silent_vim_does_not_hold_the_process_up_at_the_end(
    lab: Lab, settings: Settings, tmp_path: Path
) -> None:
    """The lab answers in the same event loop, as other services would: it cannot while that is blocked."""
    async with running(lab, settings, tmp_path) as world:
        await world.vims.create(world.openstack())
        await world.events.has(1)
        fault = lab.faults.add(part="keystone", effect="slow", seconds=2.0, times=1)
        await world.until(lambda: not fault.times)  # a call of the watch waits in it
        began = time.monotonic()
    assert time.monotonic() - began < settings.monitor_timeout_s / 2


@pytest.mark.parametrize(
    ("part", "title"),
    [("heat", "Heat"), ("nova", "Nova"), ("neutron", "Neutron"), ("glance", "Glance"), ("cinder", "Cinder")],
)
async def test_each_service_must_answer_and_the_monitor_sees_when_one_stops(
    world: World, part: str, title: str
) -> None:
    made = await world.vims.create(world.openstack())
    await world.events.has(1)
    world.lab.faults.add(part=part, effect="fail", status=503)
    with pytest.raises(ServiceUnavailable, match=f"{title}: answered 503"):
        await world.vims.create(world.openstack(name="other"))
    await world.events.has(2)
    change = world.events.data[1]
    assert isinstance(change, VimStatusChanged)
    assert (change.vim_id, change.status) == (made["id"], "UNREACHABLE")
    assert title in change.reason


async def test_https_to_a_port_that_speaks_http_is_named(world: World) -> None:
    with pytest.raises(InvalidInput, match="the port speaks http, and the address says https"):
        await world.vims.create(world.openstack(auth_url=world.lab.auth_url.replace("http://", "https://")))


async def test_an_address_that_is_no_keystone_is_named(world: World) -> None:
    root = world.lab.auth_url.removesuffix("/identity/v3")
    for address in (f"{root}/compute/v3", f"{root}/nothing/v3", world.url + "/v3"):
        with pytest.raises(InvalidInput, match="no Keystone v3 answers at this address"):
            await world.vims.create(world.openstack(auth_url=address))
