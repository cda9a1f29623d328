"""Driver classes of packages for Tacker's v1 API: run in the sandbox, and what the broker answers and refuses them (SEQ 6.6, 6.7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from contracts.sandbox_kernel import needs_confinement
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID
from kubevnfm_events.mgmt import RunScript, ScriptAnswer
from kubevnfm_events.stacks import PortFacts, ServerFacts, StackResources
from kubevnfm_kit.ids import derived_id
from kubevnfm_mgmt_executor.domain.certificates import public_key_hash
from kubevnfm_mgmt_executor.domain.scripts import ScriptFailed
from kubevnfm_mgmt_executor.wiring import INDEXES
from kubevnfm_sandbox.answers import AnswerRefused
from kubevnfm_sandbox.runs import Limits
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from worlds.package_scripts import PACKAGE, PackageScripts

RING = KeyRing([b"0" * 32])
PASSWORD = "hunter2-hunter2"
PORT = PortFacts(name="VDU1_CP1", resource_id="port-1", addresses=("10.0.0.5",), subnet_ids=("subnet-1",))
FLOATING = PortFacts(
    name="VDU1_FIP", resource_id="fip-1", resource_type="OS::Neutron::FloatingIP", floating_address="203.0.113.5"
)
SERVER = ServerFacts(
    vnfc_id="vnfc-1", name="VDU1", vdu_id="VDU1", server_id="nova-1", stack_id="stack-1-a", group="VDU1_group",
    member="a", host="compute-3", ports=(PORT, FLOATING),
)  # fmt: skip
OTHER = SERVER.model_copy(update={"server_id": "nova-2", "stack_id": "stack-1-b", "member": "b", "vnfc_id": "vnfc-2"})
STACK = StackResources(stack_id="stack-1", stack_name="vnf-1", servers=(SERVER, OTHER))
INSTANCE = {
    "id": "inst-1",
    "vnfdId": "vnfd-1",
    "vnfInstanceName": "n",
    "metadata": {"old": "1"},
    "vimConnectionInfo": {
        "vim1": {"vimId": "v", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "accessInfo": {"project": "p"}}
    },
    "instantiatedVnfInfo": {
        "flavourId": "simple",
        "extVirtualLinkInfo": [{"currentVnfExtCpData": [{"cpConfig": {"VDU1_CP1_1": {"linkPortId": "p"}}}]}],
        "additionalParams": {"ssh": {"password": PASSWORD}},
        "scaleStatus": [{"aspectId": "VDU1_scale", "scaleLevel": 1}],
        "vnfcResourceInfo": [
            {
                "id": "vnfc-1",
                "vduId": "VDU1",
                "computeResource": {"resourceId": "nova-1"},
                "vnfcCpInfo": [{"cpdId": "CP1"}],
            },
            {"id": "vnfc-2", "vduId": "VDU1", "computeResource": {"resourceId": "nova-2"}, "metadata": {"a": 1}},
        ],
        "vnfcInfo": [{"id": "VDU1-vnfc-1", "vduId": "VDU1", "vnfcResourceInfoId": "vnfc-1"}],
    },
}
CLASS = """
import os, socket
from tacker import objects
from tacker.db.db_base import CommonDbMixin
from tacker.db.nfvo import nfvo_db
from tacker.nfvo.nfvo_plugin import NfvoPlugin
from tacker.vnflcm import utils
from tacker.vnfm.infra_drivers.openstack import heat_client as hc
from tacker.vnfm.mgmt_drivers.vnflcm_abstract_driver import VnflcmMgmtAbstractDriver

class Own(VnflcmMgmtAbstractDriver):
    def {phase}(self, context, vnf_instance, request, grant, grant_request=None, **kwargs):
        info, heat = vnf_instance.instantiated_vnf_info, hc.HeatClient(None)
        nfvo, db = NfvoPlugin(), CommonDbMixin()
{code}
"""


class Drivers(PackageScripts):
    """A package of one driver class."""

    def __init__(self, folder: Path, store: SqliteStore) -> None:
        super().__init__(folder, store, RING, Limits(timeout_s=30))

    async def run(
        self, code: str, *, phase: str = "scale_end", reach: tuple[str, ...] = (), **given: Any
    ) -> ScriptAnswer:
        """Run the phase with the body of its method."""
        text = CLASS.format(phase=phase, code=indent(dedent(code), " " * 8))
        (self.package / "driver.py").write_text(text)
        facts = {
            "operation": phase,
            "request": {"type": "SCALE_OUT", "aspectId": "VDU1_scale"},
            "vnf_instance": INSTANCE,
            "user_script_err_handling_data": {},
            "stack": STACK.model_dump(mode="json", exclude={"nfv"}),
            "earlier_stacks": ["stack-1-a"],
            "instantiated_with": {"ssh": {"password": PASSWORD}},
        }
        command = RunScript(
            vnf_instance_id="inst-1",
            package=PACKAGE,
            file="driver.py",
            driver_class="Own",
            task=phase,
            given=hide({**facts, **given}),
            folders={"tmp_csar_dir": PACKAGE},
            reach=reach,
        )

        return (await self.ask(command)).answer

    async def refused(self, code: str, **given: Any) -> str:
        """Return the error of a driver that fails, or whose answer is refused."""
        with pytest.raises((ScriptFailed, AnswerRefused)) as failed:
            await self.run(code, **given)
        return str(failed.value)


@pytest.fixture
async def drivers(tmp_path: Path) -> AsyncIterator[Drivers]:
    needs_confinement()
    async with SqliteStore.open(tmp_path / "store.db") as store:
        for collection, indexes in INDEXES.items():
            await store.ensure_indexes(collection, indexes)
        yield Drivers(tmp_path, store)


async def test_a_driver_gets_the_instance_in_v1s_form_and_its_changes_are_reported(drivers: Drivers) -> None:
    code = """
    assert [one.compute_resource.resource_id for one in info.vnfc_resource_info] == ["nova-1", "nova-2"]
    assert info.vnfc_resource_info[0].vnfc_cp_info[0].cpd_id == "CP1"
    assert (info.instance_id, info.scale_status[0].scale_level) == ("stack-1", 1)
    assert (request.type, request.aspect_id, request.number_of_steps) == ("SCALE_OUT", "VDU1_scale", None)
    assert (grant, grant_request, kwargs["vnf"]["instance_id"]) == (None, None, "stack-1")
    assert (kwargs["scale_out_id_list"], kwargs["scale_name_list"]) == (["stack-1-b"], ["b"])
    vnf_instance.vnf_metadata["password"] = info.additional_params["ssh"]["password"]
    info.vnfc_resource_info[1].metadata["a"] = 2
    vnf_instance.vim_connection_info.append(
        objects.VimConnectionInfo(id="own", vim_type="kubernetes", access_info={"auth_url": "https://c"})
    )
    vnf_instance.save()
    """
    answer = await drivers.run(code)
    edits = {edit.path: edit.change for edit in answer.edits}
    assert set(edits) == {
        ("metadata", "password"),
        ("instantiatedVnfInfo", "vnfcResourceInfo", "vnfc-2", "metadata", "a"),
        ("vimConnectionInfo", "own"),
    }
    assert PASSWORD not in str(answer)
    assert edits["vimConnectionInfo", "own"]["value"] == {
        "vimType": "kubernetes", "accessInfo": {"auth_url": "https://c"},
    }  # fmt: skip
    assert (await drivers.run("pass")).edits == ()


async def test_heat_answers_from_the_instances_own_stack(drivers: Drivers) -> None:
    code = """
    group = heat.resources.get(stack_id=info.instance_id, resource_name="VDU1_group")
    assert group.resource_type == "OS::Heat::AutoScalingGroup"
    members = heat.resources.list(stack_id=group.physical_resource_id)
    assert [(one.resource_name, one.physical_resource_id) for one in members] == [("a", "stack-1-a"), ("b", "stack-1-b")]
    port = heat.resource_get("stack-1-a", "VDU1_CP1")
    assert port.attributes["fixed_ips"] == [{"ip_address": "10.0.0.5", "subnet_id": "subnet-1"}]
    assert port.attributes.get("floating_ip_address") is None
    assert heat.resource_get("stack-1-a", "VDU1_FIP").attributes["floating_ip_address"] == "203.0.113.5"
    assert heat.resource_get("stack-1-a", "VDU1").attributes["OS-EXT-SRV-ATTR:host"] == "compute-3"
    kinds = [one.resource_type for one in heat.resource_get_list("stack-1", nested_depth=2)]
    assert (kinds.count("OS::Nova::Server"), kinds.count("OS::Neutron::Port")) == (2, 2)
    assert utils._get_vim(context, vnf_instance.vim_connection_info)["vim_id"] == "v"
    assert os.path.exists(os.path.join(utils._get_vnf_package_path(context, "vnfd-1"), "driver.py"))
    """
    assert (await drivers.run(code)).edits == ()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('heat.resources.list(stack_id="stack-2")', "stack stack-2 is not one of this VNF"),
        ('heat.resources.get("stack-1", "VDU9")', "stack stack-1 has no resource VDU9"),
        ("heat.stacks.template(info.instance_id)", "HeatClient.stacks.template is not available to management drivers"),
        ("heat.delete(info.instance_id)", "HeatClient.delete is not available to management drivers"),
        ('utils._get_vnf_package_path(context, "vnfd-2")', "VNFD vnfd-2 is not that of the instance, vnfd-1"),
        ('utils._get_vim(context, [objects.VimConnectionInfo(id="x", vim_id="y")])', "the instance has no such VIM"),
        ('vnf_instance.id = "inst-2"', "a script may not change id"),
        ("info.vnfc_resource_info.pop()", "a script may not change instantiatedVnfInfo/vnfcResourceInfo/vnfc-2"),
        ('vnf_instance.instantiation_state = "X"', "a script may not change instantiationState"),
    ],
)
async def test_what_is_not_the_instances_own_is_refused_by_name(drivers: Drivers, code: str, reason: str) -> None:
    assert reason in await drivers.refused(code)


async def test_a_driver_has_no_network_but_that_of_its_machines(drivers: Drivers) -> None:
    assert "a script has no network" in await drivers.refused('socket.create_connection(("127.0.0.1", 22), 1)')


async def test_a_heal_names_machines_by_v1s_ids_and_one_of_the_whole_the_instance(drivers: Drivers) -> None:
    named = """
    assert request.vnfc_instance_id == ["vnfc-1", "vnfc-2"]
    assert [one.id for one in request.vim_connection_info] == ["vim1"]
    """
    asked = {"vnfcInstanceId": ["VDU1-vnfc-1", "vnfc-2"], "vimConnectionInfo": {"vim1": {"vimType": "t"}}}
    await drivers.run(named, phase="heal_end", request=asked)
    await drivers.run("assert request is info", phase="heal_end", request={})


async def test_a_driver_that_fails_leaves_what_it_has_saved_and_its_own_traceback(drivers: Drivers) -> None:
    code = """
    vnf_instance.vnf_metadata["tried"] = "1"
    vnf_instance.save()
    vnf_instance.vnf_metadata["tried"] = "2"
    raise ValueError("the application does not start: %s" % info.additional_params["ssh"]["password"])
    """
    with pytest.raises(ScriptFailed) as failed:
        await drivers.run(code)
    text = str(failed.value)
    assert text.startswith("scale_end failed: driver.py ended with exit status 1; its last output:\n| Traceback")
    assert text.endswith("ValueError: the application does not start: ***")
    assert "kubevnfm_v1_driver" not in text
    assert failed.value.remains is not None
    assert [(edit.path, edit.change) for edit in failed.value.remains.edits] == [
        (("metadata", "tried"), {"value": "1"})
    ]


def a_certificate() -> str:
    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=9)).sign(key, None)
    return made.public_bytes(Encoding.PEM).decode()


CA = a_certificate()
CREATE = f"""
def wanted(**changes):
    credentials = {{"bearer_token": "token-of-the-cluster", "ssl_ca_cert": {CA!r}, "username": "None", "password": "None"}}
    vim = {{"name": "edge", "type": "kubernetes", "auth_url": "https://10.0.0.5:6443", "vim_project": {{"name": "default"}}}}
    return {{"vim": {{**vim, "tenant_id": context.project_id, "auth_cred": {{**credentials, **changes.pop("auth_cred", {{}})}}, **changes}}}}
"""


async def test_the_vim_that_a_driver_creates_is_for_the_vnfm_to_register(drivers: Drivers) -> None:
    code = """
    assert db._get_by_name(context, nfvo_db.Vim, "edge") is None
    made = nfvo.create_vim(context, wanted())
    vnf_instance.vim_connection_info.append(objects.VimConnectionInfo(
        id="own", vim_id=made["id"], vim_type="kubernetes", access_info={"auth_url": "https://10.0.0.5:6443"}))
    vnf_instance.vnf_metadata["token"] = "token-of-the-cluster"
    assert db._get_by_name(context, nfvo_db.Vim, "edge").id == made["id"]
    assert nfvo.get_vim(context, made["id"])["type"] == "kubernetes"
    assert "token-of-the-cluster" not in str(nfvo.get_vim(context, made["id"]))
    print("the token is token-of-the-cluster")
    """
    answer = await drivers.run(CREATE + dedent(code), phase="instantiate_end", reach=("10.0.0.5",))
    assert answer.vim is not None
    assert (answer.vim.name, answer.vim.access.server) == ("edge", "https://10.0.0.5:6443")
    assert answer.vim.vim_id == derived_id("driver-vim", "inst-1", "edge")
    assert answer.vim.access.bearer_token.reveal(RING) == "token-of-the-cluster"
    assert answer.vim.access.ssl_ca_cert_hash == public_key_hash(CA)
    # The entry that the class has added is left to the registration, which adds one that is complete.
    assert [edit.path for edit in answer.edits] == [("metadata", "token")]
    assert "token-of-the-cluster" not in str(answer)
    assert "token-of-the-cluster" not in await drivers.log()


async def test_a_vim_that_is_deleted_again_is_not_registered(drivers: Drivers) -> None:
    code = 'made = nfvo.create_vim(context, wanted())\nnfvo.delete_vim(context, made["id"])'
    assert (await drivers.run(CREATE + code, phase="instantiate_end", reach=("10.0.0.5",))).vim is None


OWN = {"vimId": "vim-own", "vimType": "ETSINFV.KUBERNETES.V_1", "extra": {"created_by": "inst-1"}}
WITH_OWN: dict[str, Any] = {**INSTANCE, "vimConnectionInfo": {**INSTANCE["vimConnectionInfo"], "edge": OWN}}  # type: ignore[dict-item]


async def test_a_driver_deletes_the_vim_that_was_created_for_its_instance(drivers: Drivers) -> None:
    code = """
    vim = db._get_by_name(context, nfvo_db.Vim, "edge")
    nfvo.delete_vim(context, vim.id)
    assert db._get_by_name(context, nfvo_db.Vim, "edge") is None
    assert nfvo.get_vim(context, "v")["name"] == "vim1"
    others = [one for one in vnf_instance.vim_connection_info if one.vim_id != vim.id]
    vnf_instance.vim_connection_info = others
    """
    answer = await drivers.run(code, phase="terminate_end", vnf_instance=WITH_OWN)
    assert [(edit.path, edit.change) for edit in answer.edits] == [(("vimConnectionInfo", "edge"), {})]


@pytest.mark.parametrize(
    ("phase", "code", "reason"),
    [
        (
            "instantiate_end",
            'wanted(auth_url="https://192.0.2.9:6443")',
            "192.0.2.9 is no address of the VNF's machines",
        ),
        ("instantiate_end", 'wanted(auth_url="http://10.0.0.5:8080")', "auth_url: https://<address>:<port> expected"),
        ("instantiate_end", 'wanted(auth_url="https://a@10.0.0.5")', "auth_url: https://<address>:<port> expected"),
        ("instantiate_end", 'wanted(type="openstack")', "type kubernetes expected, not openstack"),
        ("instantiate_end", 'wanted(name="vim1")', "the instance has a VIM vim1 already"),
        ("instantiate_end", 'wanted(name="")', "name: 1 to 255 printable characters expected"),
        ("instantiate_end", 'wanted(auth_cred={"bearer_token": ""})', "auth_cred/bearer_token: the token of"),
        (
            "instantiate_end",
            'wanted(auth_cred={"ssl_ca_cert": "None"})',
            "auth_cred/ssl_ca_cert: the CA of the cluster",
        ),
        ("scale_end", "wanted()", "create_vim is not available at scale_end, only at instantiate_end and heal_end"),
    ],
)
async def test_a_vim_of_others_and_a_malformed_one_are_refused(
    drivers: Drivers, phase: str, code: str, reason: str
) -> None:
    text = await drivers.refused(f"{CREATE}nfvo.create_vim(context, {code})", phase=phase, reach=("10.0.0.5",))
    assert reason in text
    assert "token-of-the-cluster" not in text


@pytest.mark.parametrize(
    ("phase", "code", "reason"),
    [
        ("terminate_end", 'nfvo.delete_vim(context, "v")', "VIM v was not created for this instance"),
        ("terminate_end", 'nfvo.delete_vim(context, "other")', "VIM other was not created for this instance"),
        ("scale_start", 'nfvo.delete_vim(context, "vim-own")', "delete_vim is not available at scale_start"),
        ("terminate_end", 'nfvo.get_vim(context, "other")', "the instance has no VIM other"),
        ("terminate_end", "nfvo.update_vim(context, {})", "NfvoPlugin.update_vim is not available"),
        ("terminate_end", 'db._get_by_name(context, objects.VnfInstance, "n")', "_get_by_name of VnfInstance is not"),
    ],
)
async def test_the_vims_of_others_cannot_be_read_or_deleted(
    drivers: Drivers, phase: str, code: str, reason: str
) -> None:
    assert reason in await drivers.refused(code, phase=phase, vnf_instance=WITH_OWN)


async def test_a_heal_deletes_the_vim_of_the_cluster_and_creates_it_again(drivers: Drivers) -> None:
    """SEQ-156: as Tacker's own driver does; the entry that it has taken out may be there or not."""
    leave = """
    nfvo.delete_vim(context, db._get_by_name(context, nfvo_db.Vim, "edge").id)
    vnf_instance.vim_connection_info = [one for one in vnf_instance.vim_connection_info if one.vim_id != "vim-own"]
    vnf_instance.save()
    """
    answer = await drivers.run(leave, phase="heal_start", vnf_instance=WITH_OWN)
    assert [(edit.path, edit.change) for edit in answer.edits] == [(("vimConnectionInfo", "edge"), {})]
    assert answer.vim is None

    for instance in (INSTANCE, WITH_OWN):
        answer = await drivers.run(
            f"{CREATE}nfvo.create_vim(context, wanted())",
            phase="heal_end",
            reach=("10.0.0.5",),
            vnf_instance=instance,
            cluster_vim_name="edge",
        )
        assert answer.vim is not None
        assert (answer.vim.name, answer.vim.access.bearer_token.reveal(RING)) == ("edge", "token-of-the-cluster")
    text = await drivers.refused(
        f'{CREATE}nfvo.create_vim(context, wanted(name="other"))',
        phase="heal_end",
        reach=("10.0.0.5",),
        cluster_vim_name="edge",
    )
    assert "create_vim: name: edge expected, the VIM that the cluster is registered as" in text


async def test_a_driver_that_fails_registers_nothing_and_leaves_no_entry_for_its_vim(drivers: Drivers) -> None:
    code = """
    made = nfvo.create_vim(context, wanted())
    vnf_instance.vim_connection_info.append(objects.VimConnectionInfo(id="own", vim_id=made["id"], vim_type="kubernetes"))
    vnf_instance.save()
    raise ValueError("no entry for token-of-the-cluster")
    """
    with pytest.raises(ScriptFailed, match=r"no entry for \*\*\*$") as failed:
        await drivers.run(CREATE + dedent(code), phase="instantiate_end", reach=("10.0.0.5",))
    assert failed.value.remains is not None
    assert failed.value.remains.edits == ()
