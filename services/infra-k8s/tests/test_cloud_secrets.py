"""The Secrets with the login to an OpenStack that are made for workload clusters, on the lab's stand-in for Cluster API."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import yaml
from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_events.capi import UpdateCluster, UpdatePart
from kubevnfm_infra_k8s.domain.errors import ObjectsRefused
from kubevnfm_infra_k8s.domain.workload_clusters.cloud_secrets import FIELD
from kubevnfm_kit.errors import InvalidInput, OutsideUnavailable
from kubevnfm_lab.kubernetes import LabCluster, LabClusters
from kubevnfm_lab.kubernetes.objects import Key
from kubevnfm_store.query import Query
from kubevnfm_worker.outcome import Done
from worlds.capi_management import VDUS, Management, files_of, managed
from worlds.given_identities import OPENSTACK, GivenIdentities

SECRET = "Files/kubernetes/cloud-config.yaml"
CLUSTER, WORKERS = "Files/kubernetes/cluster.yaml", "Files/kubernetes/workers.yaml"
NAME = Key("default", "workload-cloud-config")
TEMPLATES, TEMPLATE = "kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io", Key("default", "workload-md-0")
PARTS: tuple[UpdatePart, ...] = ("check", "control_plane", "all", "prune")


@pytest.fixture
async def management(site: Any, lab: LabCluster) -> AsyncIterator[Management]:
    async with managed(site, lab) as management:
        yield management


def without_secret(sample: str = "capi-workload", **changed: tuple[str, str]) -> dict[str, str]:
    """Return the files of a sample without its Secret; ``changed``: old and new text of the cluster or the workers."""
    files = {name: text for name, text in files_of(sample).items() if name != SECRET}
    for name, (old, new) in changed.items():
        path = f"Files/kubernetes/{name}.yaml"
        assert old in files[path]
        files[path] = files[path].replace(old, new)
    return files


async def applied(management: Management, sample: str = "capi-workload", **more: Any) -> None:
    files = more.pop("files", None) or without_secret(sample)
    await management.apply(sample, files=files, openstack_vim_id=OPENSTACK, **more)


def content(management: Management, key: Key = NAME) -> Mapping[str, str]:
    """Return what the Secret has, decoded."""
    secret = management.lab.store.get("secrets", key)
    assert secret is not None
    return {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}


def login(management: Management, key: Key = NAME, *, cloud: str = "openstack") -> Any:
    return yaml.safe_load(content(management, key)["clouds.yaml"])["clouds"][cloud]["auth"]


def identities(management: Management) -> GivenIdentities:
    found = management.site.identities
    assert isinstance(found, GivenIdentities)
    return found


@pytest.mark.parametrize("sample", ["capi-workload", "capi-workload-v1beta1", "capi-workload-class"])
async def test_the_secret_that_the_objects_name_is_made_and_deleted_with_them(
    management: Management, sample: str
) -> None:
    """CR-049: it is in place before the cluster, and its content is in no document and no progress."""
    await applied(management, sample)
    await management.wait("initialized", vdus=management.vdus_of(sample))
    made = content(management)
    assert yaml.safe_load(made["clouds.yaml"]) == {
        "clouds": {
            "openstack": {
                "auth": {
                    "auth_url": "https://cloud.example:5000/v3",
                    "application_credential_id": "credential-1",
                    "application_credential_secret": "secret-1",
                },
                "region_name": "RegionOne",
            }
        }
    }
    assert made["cacert"] == "the CA"
    secret = management.lab.store.get("secrets", NAME)
    assert secret is not None
    assert secret["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/move"] == "true"
    assert f"Login to OpenStack VIM {OPENSTACK}: an application credential was made" in management.messages()
    documents = [
        one.body
        for name in ("k8s_releases", "k8s_fetched_files")
        for one in await management.site.store.find(name, Query())
    ]
    seen = repr(documents) + repr(management.messages()) + repr(await management.site.handlers.releases.get("i1"))
    assert "secret-1" not in seen
    assert OPENSTACK in seen

    await management.site.delete()
    assert management.lab.store.get("secrets", NAME) is None
    assert identities(management).secrets == {}


async def test_a_login_whose_worker_was_killed_is_replaced_and_one_that_was_sent_is_kept(
    management: Management,
) -> None:
    """CR-049: killed before the Secret was sent, repeated, and tried again: one credential, which the Secret has."""

    class Killed(Exception):
        """The end of the worker."""

    class Killing:
        """`CloudIdentities` that kill the worker after the first login was made."""

        def __init__(self, logins: Any) -> None:
            self.logins, self.kills = logins, True

        async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudIdentity:
            given: CloudIdentity = await self.logins.give(vim_id, vnf_instance_id, present=present)
            if self.kills:
                self.kills = False
                raise Killed
            return given

        async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
            return int(await self.logins.take_back(vim_id, vnf_instance_id))

    site = management.site
    management.site = site.with_changes(identities=Killing(site.handlers.identities))
    with pytest.raises(Killed):
        await applied(management)
    # A rollback now would take it back.
    assert (await site.handlers.releases.get("i1")).openstack_vim_id == OPENSTACK
    for attempt in (1, 1, 2):
        await applied(management, attempt=attempt)
        assert identities(management).secrets == {"credential-2": "secret-2"}
        assert login(management)["application_credential_secret"] == "secret-2"
    assert f"Login to OpenStack VIM {OPENSTACK}: its application credential is kept" in management.messages()
    # Another party has written it: its content cannot be read.
    management.lab.registry.change("secrets", NAME, lambda secret: secret["data"].update({"clouds.yaml": "Kg=="}))
    await applied(management, attempt=3)
    assert login(management)["application_credential_secret"] == "secret-3"
    assert identities(management).secrets == {"credential-3": "secret-3"}


async def test_a_rollback_takes_back_a_login_that_was_never_sent(management: Management) -> None:
    """CR-049: the cluster refuses the objects, so that nothing of them is there."""
    files = without_secret(
        cluster=("name: workload\nspec:\n  clusterNetwork", "name: workload\nold: 1\nspec:\n  clusterNetwork")
    )
    with pytest.raises(ObjectsRefused, match="not declared"):
        await applied(management, files=files)
    assert identities(management).made == 1
    await management.site.delete()
    assert identities(management).secrets == {}


async def test_each_secret_and_each_cloud_that_the_objects_name_is_made(management: Management) -> None:
    """CR-049: machines may have a Secret of their own."""
    own = "    spec:\n      identityRef:\n        name: of-the-workers\n        cloudName: other\n      flavor:"
    files = without_secret(workers=("    spec:\n      flavor:", own))
    await applied(management, files=files)
    assert login(management)["application_credential_id"] == "credential-1"
    assert login(management, Key("default", "of-the-workers"), cloud="other") == login(management)
    assert identities(management).made == 1


async def test_files_that_name_no_secret_or_have_it_are_refused_before_a_login_is_made(management: Management) -> None:
    """CR-049: both errors name the parameter."""
    named = ("    type: Secret\n    name: workload-cloud-config", "    type: ClusterIdentity\n    name: of-all")
    with pytest.raises(InvalidInput, match=r"openstack_vim_id: an identityRef with name and cloudName"):
        await applied(management, files=without_secret(cluster=named))
    with pytest.raises(InvalidInput, match=rf"openstack_vim_id: Secret default/workload-cloud-config is in {SECRET}"):
        await applied(management, files=files_of("capi-workload"))
    assert identities(management).made == 0
    assert management.lab.store.get("secrets", NAME) is None


async def test_a_password_is_sent_if_keystone_makes_no_credential(management: Management) -> None:
    """CR-049: the progress says so."""
    identities(management).has_password = True
    await applied(management)
    assert login(management) == {
        "auth_url": "https://cloud.example:5000/v3",
        "username": "nfv",
        "password": "the-password",
    }
    said = "the user and password of the VIM; no application credential"
    assert f"Login to OpenStack VIM {OPENSTACK}: {said}" in management.messages()


async def part(management: Management, files: dict[str, str], part: UpdatePart, *, operation: str = "op2") -> None:
    """Do one part of an update to these files."""
    management.site.step = f"update/{part}"
    command = UpdateCluster(
        vnf_instance_id="i1",
        vim=management.site.vim,
        cluster=management.cluster_of(),
        package=management.site.packages.add(files, package_id=f"p-{operation}"),
        def_files=tuple(files),
        namespace="default",
        part=part,
        vdus=VDUS,
    )
    handlers = management.site.handlers
    while not isinstance(await handlers.update_cluster(command, management.site.context(operation=operation)), Done):
        pass


async def test_another_package_keeps_the_credential_and_may_name_another_secret(management: Management) -> None:
    """CR-049, CR-094: what the files lack is pruned, but not the Secret that was made; with the Secret they are refused."""
    await applied(management)
    with pytest.raises(InvalidInput, match=f"is in {SECRET}"):
        await part(management, files_of("capi-workload"), "check")
    cidr = ("dnsNameservers: [ 8.8.8.8 ]", "dnsNameservers: [ 9.9.9.9 ]")
    for each in PARTS:
        await part(management, without_secret(cluster=cidr), each)
    assert login(management)["application_credential_secret"] == "secret-1"
    renamed = ("name: workload-cloud-config", "name: another")
    for each in PARTS:
        await part(management, without_secret(cluster=renamed), each, operation="op3")
    assert login(management, Key("default", "another"))["application_credential_secret"] == "secret-1"
    assert management.lab.store.get("secrets", NAME) is None
    assert identities(management).secrets == {"credential-1": "secret-1"}
    assert FIELD in {entry.file for entry in (await management.site.handlers.releases.get("i1")).entries}


def deleted(management: Management, resource: str, key: Key) -> None:
    """Delete an object as another party does."""
    found = management.lab.store.get(resource, key)
    assert found is not None
    management.lab.plane.delete(resource, found)


async def repaired(management: Management, operation: str) -> int:
    """Repair the objects; return how many were applied again."""
    event = await management.site.repair(
        package_id="p-i1", def_files=tuple(without_secret()), operation=operation, cluster_apart=True, vdus=VDUS
    )
    return int(event.repaired)


async def test_a_secret_that_others_have_deleted_or_changed_is_made_again_with_another_credential(
    management: Management,
) -> None:
    """CR-049, CR-121: what others have left of it is not trusted; a repair of other objects keeps the credential."""
    await applied(management)
    assert await repaired(management, "op2") == 0
    deleted(management, "secrets", NAME)
    assert await repaired(management, "op3") == 1
    assert login(management)["application_credential_secret"] == "secret-2"
    secret = management.lab.store.get("secrets", NAME)
    assert secret is not None
    other = base64.b64encode(content(management)["clouds.yaml"].replace("secret-2", "other").encode()).decode()
    registry = management.lab.registry
    body = {**secret, "data": {**secret["data"], "clouds.yaml": other}}
    kind = registry.table.by_name("secrets")
    assert kind is not None
    registry.replace(kind, body, manager="kubectl-edit")
    deleted(management, TEMPLATES, TEMPLATE)
    assert await repaired(management, "op4") == 2
    assert login(management)["application_credential_secret"] == "secret-3"
    assert identities(management).secrets == {"credential-3": "secret-3"}
    deleted(management, TEMPLATES, TEMPLATE)
    assert await repaired(management, "op5") == 1
    assert identities(management).secrets == {"credential-3": "secret-3"}


async def test_a_termination_waits_for_keystone_unless_it_is_forced(management: Management) -> None:
    """CR-049, CR-023: a FORCEFUL one names the credential that is left; so does one whose VIM is no longer registered."""
    await applied(management)
    down = OutsideUnavailable("Keystone does not answer")
    identities(management).problem = down
    with pytest.raises(OutsideUnavailable):
        await management.site.delete()
    left = (await management.site.delete(force=True)).left
    assert [(each.kind, each.name, each.cluster) for each in left] == [
        ("ApplicationCredential", "kubevnfm-i1", OPENSTACK)
    ]
    assert management.messages()[-1].endswith("may still exist: Keystone does not answer")
    identities(management).problem = None

    await applied(management, instance="i2", operation="op-i2")
    release = await management.site.handlers.releases.get("i2")
    assert release is not None
    await management.site.handlers.releases.save(type(release)(**{**vars(release), "openstack_vim_id": "gone"}))
    (one,) = (await management.site.delete(instance="i2")).left
    assert (one.kind, one.name, one.cluster) == ("ApplicationCredential", "kubevnfm-i2", "gone")


async def test_the_credential_stays_if_its_cluster_is_given_up(management: Management, labs: LabClusters) -> None:
    """CR-049, CR-023: the controllers there need it to delete the machines; it is named with the objects."""
    await applied(management)
    await labs.close_at(management.lab.address)
    left = (await management.site.delete(force=True)).left
    assert {"Cluster", "ApplicationCredential"} <= {each.kind for each in left}
    assert identities(management).secrets == {"credential-1": "secret-1"}
