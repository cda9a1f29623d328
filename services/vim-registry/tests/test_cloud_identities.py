"""The logins to an OpenStack that workload clusters are given: made in Keystone, kept, replaced and taken back."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_clients.http import ServiceUnavailable
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_lab.kubernetes.cluster import LabCluster
from kubevnfm_lab.openstack.tokens import ApplicationCredential
from kubevnfm_secrets import revealed
from kubevnfm_store.query import Query
from worlds.vim_world import RING, World

INSTANCE = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
NAME = f"kubevnfm-{INSTANCE}"
CREDENTIALS = "/identity/v3/users/{user}/application_credentials"


def credentials(world: World) -> dict[str, ApplicationCredential]:
    """The lab's application credentials, by name."""
    return {one.name: one for one in world.lab.cloud.identity.application_credentials.values()}


def own_credential(world: World) -> ApplicationCredential:
    """Make one as an operator does."""
    identity = world.lab.cloud.identity
    (user,), project = identity.users.values(), next(iter(identity.projects.values()))
    token = identity.issue(user, project, methods=("password",))
    return identity.add_application_credential(token, name="of the operator", secret="")


def login_of(given: CloudIdentity) -> dict[str, Any]:
    """The log-in of an entry, in clear."""
    return dict(revealed(given.cloud, RING)["auth"])


async def test_a_credential_is_made_for_a_cluster_and_taken_back(
    world: World, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """CR-049: its secret is in no document, event or log."""
    vim = await world.vims.create(world.openstack())
    given = await world.identities.give(vim["id"], INSTANCE, present=None)
    made = credentials(world)[NAME]
    assert (given.kind, given.credential_id, given.note) == ("created", made.credential_id, "")
    assert login_of(given) == {
        "auth_url": world.lab.auth_url,
        "application_credential_id": made.credential_id,
        "application_credential_secret": made.secret,
    }
    rest = {name: value for name, value in given.cloud.items() if name != "auth"}
    assert rest == {
        "auth_type": "v3applicationcredential",
        "identity_api_version": 3,
        "interface": "public",
        "region_name": "RegionOne",
        "verify": False,
    }
    captured = capsys.readouterr()
    documents = repr([one.body for one in await world.store.find("vims", Query())])
    seen = documents + captured.out + captured.err + caplog.text + repr(given) + repr(world.events.data)
    assert made.secret not in seen
    assert "cloud_identity_given" in captured.out + captured.err + caplog.text

    assert [await world.identities.take_back(vim["id"], INSTANCE) for _ in range(2)] == [1, 0]
    assert credentials(world) == {}


async def test_a_credential_is_kept_as_long_as_keystone_has_it(world: World) -> None:
    """CR-049: a repeated step changes nothing, and one whose secret is lost is replaced."""
    vim = await world.vims.create(world.openstack())
    first = await world.identities.give(vim["id"], INSTANCE, present=None)
    repeated = await world.identities.give(vim["id"], INSTANCE, present=first.credential_id)
    assert (repeated.kind, repeated.credential_id) == ("kept", first.credential_id)
    assert set(login_of(repeated)) == {"auth_url", "application_credential_id"}
    # The step was killed before the Secret was written.
    second = await world.identities.give(vim["id"], INSTANCE, present=None)
    assert second.kind == "created"
    assert list(world.lab.cloud.identity.application_credentials) == [second.credential_id]
    # Someone has deleted it in Keystone.
    world.lab.cloud.identity.application_credentials.clear()
    third = await world.identities.give(vim["id"], INSTANCE, present=second.credential_id)
    assert third.kind == "created"
    assert third.note == f"Keystone no longer shows the application credential {second.credential_id} to this user"


@pytest.mark.parametrize("by", ["id", "name"])
async def test_the_vims_own_credential_is_preferred(world: World, by: str) -> None:
    """CR-049: it makes no other one, and clusters get it by its id."""
    own = own_credential(world)
    named: dict[str, str] = {"application_credential_id": own.credential_id}
    if by == "name":
        named = {"application_credential_name": own.name, "username": "nfv", "user_domain_name": "Default"}
    auth = {**named, "application_credential_secret": own.secret}
    vim = await world.vims.create(world.openstack(auth_cred=auth, vim_project={}))
    given = await world.identities.give(vim["id"], INSTANCE, present="earlier")
    assert (given.kind, given.credential_id) == ("own", own.credential_id)
    assert login_of(given) == {
        "auth_url": world.lab.auth_url,
        "application_credential_id": own.credential_id,
        "application_credential_secret": own.secret,
    }
    assert given.cloud["verify"] is True
    assert await world.identities.take_back(vim["id"], INSTANCE) == 0
    assert list(credentials(world)) == [own.name]


async def test_one_that_an_earlier_login_has_made_is_named_if_it_cannot_be_deleted(world: World) -> None:
    """CR-049: the VIM has an application credential now, and Keystone lets it delete no other one."""
    vim = await world.vims.create(world.openstack())
    await world.identities.give(vim["id"], INSTANCE, present=None)
    own = own_credential(world)
    auth = {"application_credential_id": own.credential_id, "application_credential_secret": own.secret}
    await world.vims.update(vim["id"], {"auth_cred": {"username": None, "password": None, **auth}})
    with pytest.raises(InvalidInput, match=f"delete the application credential {NAME}, which an earlier login"):
        await world.identities.take_back(vim["id"], INSTANCE)


@pytest.mark.parametrize("status", [403, 404, 501])
async def test_the_password_is_given_if_keystone_makes_no_credentials(world: World, status: int) -> None:
    """CR-049: the answer says so."""
    vim = await world.vims.create(world.openstack(auth_cred={**world.openstack()["auth_cred"], "cert_verify": "True"}))
    for verb in ("list", "create"):
        world.lab.faults.add(part="keystone", verb=f"application_credential_{verb}", status=status)
    given = await world.identities.give(vim["id"], INSTANCE, present=None)
    assert given.kind == "password"
    assert given.credential_id is None
    assert given.note == f"Keystone makes no application credential for this user (it answered {status})"
    assert given.cloud["auth_type"] == "v3password"
    assert login_of(given) == {
        "auth_url": world.lab.auth_url,
        "username": "nfv",
        "user_domain_name": "Default",
        "password": "nfv",
        "project_name": "nfv",
        "project_domain_name": "Default",
    }
    # Nothing was made, so that a termination ends.
    assert await world.identities.take_back(vim["id"], INSTANCE) == 0


async def test_a_keystone_that_cannot_answer_now_is_asked_again_later(world: World) -> None:
    """CR-049: no password leaves because Keystone is restarted."""
    vim = await world.vims.create(world.openstack())
    world.lab.faults.add(part="keystone", verb="application_credential_create", status=503)
    with pytest.raises(ServiceUnavailable, match="answered 503"):
        await world.identities.give(vim["id"], INSTANCE, present=None)


async def test_other_vims_give_no_login(world: World, cluster: LabCluster) -> None:
    """CR-049: an unknown VIM, and a cluster."""
    with pytest.raises(NotFound):
        await world.identities.give("unknown", INSTANCE, present=None)
    body = {
        "name": "k8s",
        "type": "kubernetes",
        "auth_url": cluster.endpoint,
        "vim_project": {"name": "default"},
        "auth_cred": {"bearer_token": cluster.admin_token, "ssl_ca_cert": cluster.ca_pem},
    }
    vim = await world.vims.create(body)
    with pytest.raises(Unprocessable, match="an OpenStack expected"):
        await world.identities.give(vim["id"], INSTANCE, present=None)
