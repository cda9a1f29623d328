"""LCM operation user data: classes written for Tacker run unmodified, and can do nothing but compute parameters."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from shutil import copytree
from textwrap import dedent
from typing import Any

import pydantic
import pytest
import yaml
from contracts.sandbox_kernel import ANY_KERNEL, KERNELS, Kernel, sandbox_processes, until
from kubevnfm_events import PackageRef
from kubevnfm_events.stacks import UserData
from kubevnfm_infra_openstack.adapters.package_flavours import CachedFlavours
from kubevnfm_infra_openstack.adapters.user_data_process import UserDataProcess
from kubevnfm_infra_openstack.domain.errors import UserDataFailed, UserDataTimedOut
from kubevnfm_infra_openstack.domain.ports import HeatInput, HeatPatch, UserDataInput
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sandbox.answers import AnswerRefused
from kubevnfm_sandbox.runs import Limits, SandboxUnavailable
from worlds.stack_world import PACKAGE, FolderPackages

REQUEST = {
    "flavourId": "simple",
    "additionalParams": {"volume_size": 5, "k8s_cluster_installation_param": {"master_node": {"password": "s3cret"}}},
    "vimConnectionInfo": {"vim1": {"vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3", "accessInfo": {"region": "RegionOne"}}},
    "extVirtualLinks": [
        {
            "id": "vl-1",
            "resourceId": "net0",
            "extCps": [
                {
                    "cpdId": "masterNode_CP1",
                    "cpConfig": {
                        "cp1": {
                            "cpProtocolData": [
                                {
                                    "layerProtocol": "IP_OVER_ETHERNET",
                                    "ipOverEthernet": {
                                        "ipAddresses": [
                                            {"type": "IPV4", "fixedAddresses": ["10.10.0.9"], "subnetId": "sub-1"}
                                        ]
                                    },
                                }
                            ]
                        }
                    },
                },
                {"cpdId": "workerNode_CP1", "cpConfig": {"cp2": {"linkPortId": "port-1"}}},
            ],
        }
    ],
}
GRANT_REQUEST = {
    "operation": "INSTANTIATE",
    "addResources": [
        {"id": "r0", "type": "COMPUTE", "resourceTemplateId": "masterNode"},
        {"id": "r1", "type": "COMPUTE", "resourceTemplateId": "workerNode"},
        {"id": "r2", "type": "COMPUTE", "resourceTemplateId": "workerNode"},
        {"id": "r3", "type": "LINKPORT", "resourceTemplateId": "masterNode_CP1"},
    ],
}
GRANT = {
    "zones": [{"id": "z", "zoneId": "nova"}],
    "addResources": [{"resourceDefinitionId": "r0", "zoneId": "z"}],
    "vimAssets": {
        "computeResourceFlavours": [{"vnfdVirtualComputeDescId": "workerNode", "vimFlavourId": "m1.large"}],
        "softwareImages": [{"vnfdSoftwareImageId": "masterNode", "vimSoftwareImageId": "image-1"}],
    },
}
V1 = """
    from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
    class Code(AbstractUserData):
        @staticmethod
        def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
"""
V2 = """
    from tacker.sol_refactored.infra_drivers.openstack import userdata_utils
    class Code(userdata_utils.AbstractUserData):
        @staticmethod
        def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
"""
Run = Callable[..., Coroutine[Any, Any, HeatInput]]
Change = Callable[..., Coroutine[Any, Any, HeatPatch | None]]
UNREADABLE = "No module named '(ctypes|subprocess)'"
"""If only root can read Python's folder, a run without namespaces cannot import these."""


# The tests of libs/sandbox prove both forms of the confinement; here the second one needs to start, and to refuse.
@pytest.fixture(params=[ANY_KERNEL, *(pytest.param(one, marks=pytest.mark.deep) for one in KERNELS[1:])])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return Kernel(request.param)


@pytest.fixture
def run(tmp_path: Path, kernel: Kernel) -> Run:
    """Run a body of ``instantiate`` under v1's or v2's signature, or a whole file."""
    root = Path(copytree(PACKAGE, tmp_path / "package"))

    async def run(
        body: str = "", *, head: str = V1, source: str = "", name: str = "Code", timeout_s: float = 20, **given: Any
    ) -> HeatInput:
        text = (
            dedent(source) if source else dedent(head) + "        " + dedent(body).strip().replace("\n", "\n        ")
        )
        (root / "UserData/code.py").write_text(text + "\n")
        flavour = await CachedFlavours(FolderPackages(root)).flavour(PackageRef(package_id="p", vnfd_id="v"), "simple")
        facts: dict[str, Any] = {
            "api_version": "v1",
            "request": REQUEST,
            "instance": {"id": "inst-1", "vnfdId": "v"},
            "grant_request": GRANT_REQUEST,
            "grant": GRANT,
            "service_template": flavour.service_template,
            "image_by_vdu": {"masterNode": "image-1"},
            "secrets": frozenset({"s3cret"}),
        }
        assert flavour.hot is not None
        process = UserDataProcess(kernel.limits(timeout_s=timeout_s, memory_mib=256))
        user_data = UserData(path="UserData/code.py", class_name=name)
        return await process.instantiate(user_data, root, flavour.hot, UserDataInput(**{**facts, **given}))

    return run


@pytest.fixture
def change(tmp_path: Path, kernel: Kernel) -> Change:
    """Run a method of a class for an operation on a stack; without a source, the method of the ready-made class."""
    root = Path(copytree(PACKAGE, tmp_path / "package"))

    async def change(method: str, source: str | None, **given: Any) -> HeatPatch | None:
        (root / "UserData/code.py").write_text(dedent(source or ""))
        flavour = await CachedFlavours(FolderPackages(root)).flavour(PackageRef(package_id="p", vnfd_id="v"), "simple")
        assert flavour.hot is not None
        facts = {"request": {}, "grant_request": {}, "grant": {}, "image_by_vdu": {}, "api_version": "v2"}
        input_ = UserDataInput(**{**facts, "service_template": flavour.service_template, **given})
        user_data = UserData(path="UserData/code.py", class_name="Code") if source is not None else None
        process = UserDataProcess(kernel.limits(timeout_s=20, memory_mib=256))
        return await process.change(user_data, method, root, flavour.hot, input_)

    return change


def a_standard_instance(**cps: dict[int, str]) -> dict[str, Any]:
    """Return a VnfInstance with two masters of StandardUserData. ``cps``: the entry of each machine by connection point."""
    info: dict[str, Any] = {"flavourId": "simple", "vnfcResourceInfo": [], "extCpInfo": []}
    for number in (0, 1):
        own = [{"id": f"{name}-of-{number}", "cpdId": name} for name in cps]
        info["vnfcResourceInfo"].append(
            {
                "id": f"c{number}",
                "vduId": "masterNode",
                "computeResource": {"resourceId": f"server-{number}"},
                "metadata": {"vdu_idx": number},
                "vnfcCpInfo": own,
            }
        )
        info["extCpInfo"] += [
            {"id": f"x-{cp['id']}", "cpdId": cp["cpdId"], "associatedVnfcCpId": cp["id"], "cpConfigId": entries[number]}
            for cp, entries in zip(own, cps.values(), strict=True)
            if number in entries
        ]
    masters = {f"masterNode-{number}": {"flavor": "m1.small", "of": "another class"} for number in (0, 1)}
    info["metadata"] = {"nfv": {"VDU": masters, "CP": {}}}
    return {"id": "inst-1", "vnfdId": "v", "instantiatedVnfInfo": info}


# --- classes that run -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, indirect=True)
async def test_a_v1_class_with_the_usual_six_functions(run: Run) -> None:
    source = (PACKAGE / "UserData/cluster_v1.py").read_text()
    heat = await run(source=source, name="ClusterUserData")
    node = {"flavor": "m1.small", "image": "ubuntu"}
    assert heat.parameters == {
        "nfv": {
            "VDU": {"masterNode": node, "workerNode": {**node, "desired_capacity": 2}},
            "CP": {
                "masterNode_CP1": {
                    "network": "net0",
                    "fixed_ips": [{"subnet": "sub-1", "ip_address": "10.10.0.9"}],
                },
                "workerNode_CP1": {"network": "net0", "fixed_ips": []},
            },
        },
        "volume_size": 5,
    }
    assert heat.template == (PACKAGE / "BaseHOT/simple/cluster.yaml").read_text()


async def test_the_other_v1_functions(run: Run) -> None:
    heat = await run(
        """
        import tacker.vnfm.lcm_user_data.utils as util
        initial = util.create_initial_param_dict(base_hot_dict)
        return {
            "initial": initial,
            "sizes": util.create_vdu_flavor_dict(vnfd_dict),
            "images": util.create_vdu_image_dict(grant_info),
            "links": util.create_cpd_vl_dict(base_hot_dict, inst_req_info),
            "final": util.create_final_param_dict(initial, {}, {}, {"masterNode_CP1": "net9"}),
            "level": util.get_desired_capacity_dict(base_hot_dict, vnfd_dict, Info),
        }
        """,
        head="""
        from types import SimpleNamespace
        Info = SimpleNamespace(scale_status=[SimpleNamespace(aspect_id="worker_instance", scale_level=2)])
        """
        + V1.replace("\n    ", "\n        "),
    )
    size = {"vcpus": 1, "ram": 488, "disk": 2}
    got = heat.parameters
    assert got["initial"] == {
        "nfv": {"VDU": {"masterNode": {}, "workerNode": {}}, "CP": {"masterNode_CP1": {}, "workerNode_CP1": {}}}
    }
    assert got["sizes"] == {"masterNode": size, "workerNode": size}
    assert got["images"] == {"masterNode": "image-1"}
    assert got["links"] == {"masterNode_CP1": "net0", "workerNode_CP1": "net0"}
    assert got["final"]["nfv"]["CP"]["masterNode_CP1"] == {"network": "net9"}
    assert got["level"] == {"worker_instance": 4}


async def test_a_v1_request_has_attributes(run: Run) -> None:
    heat = await run(
        """
        cp = inst_req_info.ext_virtual_links[0].ext_cps[0]
        address = cp.cp_config[0].cp_protocol_data[0].ip_over_ethernet.ip_addresses[0]
        return {
            "flavour": inst_req_info.flavour_id,
            "level": inst_req_info.instantiation_level_id,
            "params": inst_req_info.additional_params,
            "vim": [(v.id, v.vim_type, v.access_info) for v in inst_req_info.vim_connection_info],
            "cp": [cp.cpd_id, cp.cp_config[0].cp_instance_id, address.subnet_id, address.fixed_addresses],
            "managed": inst_req_info.ext_managed_virtual_links,
        }
        """
    )
    assert heat.parameters == {
        "flavour": "simple",
        "level": None,
        "params": REQUEST["additionalParams"],
        "vim": [["vim1", "ETSINFV.OPENSTACK_KEYSTONE.V_3", {"region": "RegionOne"}]],
        "cp": ["masterNode_CP1", "cp1", "sub-1", ["10.10.0.9"]],
        "managed": [],
    }


async def test_a_v2_class_with_the_helper_functions(run: Run) -> None:
    heat = await run(
        """
        vnfd = common_script_utils.get_vnfd(inst["vnfdId"], tmp_csar_dir)
        hot = vnfd.get_base_hot(req["flavourId"])
        nfv = common_script_utils.init_nfv_dict(hot["template"])
        for name, vdu in nfv["VDU"].items():
            vdu["flavor"] = common_script_utils.get_param_flavor(name, "simple", vnfd, grant)
            vdu["image"] = common_script_utils.get_param_image(name, "simple", vnfd, grant)
            vdu["zone"] = common_script_utils.get_param_zone(name, grant_req, grant)
            if "desired_capacity" in vdu:
                vdu["desired_capacity"] = common_script_utils.get_param_capacity(name, inst, grant_req)
        for name, cp in nfv["CP"].items():
            cp["network"] = common_script_utils.get_param_network(name, grant, req)
            cp["fixed_ips"] = common_script_utils.get_param_fixed_ips(name, grant, req)
        nfv = vnf_instance_utils.json_merge_patch(nfv, {"CP": {"workerNode_CP1": None}})
        def config(**addresses):
            return {"cpProtocolData": [{"ipOverEthernet": {"ipAddresses": [{"type": "IPV4", **addresses}]}}]}
        configs = {"a": config(fixedAddresses=["10.0.0.5", "10.0.0.6"]), "b": config(numDynamicAddresses=2, subnetId="s")}
        two = {"extVirtualLinks": [{"resourceId": "n", "extCps": [{"cpdId": "CP", "cpConfig": configs}]}]}
        nfv["each"] = [common_script_utils.get_param_fixed_ips("CP", {}, two, index=n) for n in (0, 1, 2)]
        return {
            "template": yaml.safe_dump(hot["template"]),
            "parameters": {"nfv": nfv},
            "files": {name: yaml.safe_dump(body) for name, body in hot["files"].items()},
        }
        """,
        head="""
    import yaml
    from tacker.sol_refactored.common import common_script_utils, vnf_instance_utils"""
        + V2,
    )
    assert heat.parameters["nfv"]["VDU"] == {
        "masterNode": {"flavor": "m1.small", "image": "image-1", "zone": "nova"},
        "workerNode": {"flavor": "m1.large", "image": "ubuntu", "zone": None, "desired_capacity": 2},
    }
    assert heat.parameters["nfv"]["CP"] == {
        "masterNode_CP1": {"network": "net0", "fixed_ips": [{"ip_address": "10.10.0.9", "subnet": "sub-1"}]}
    }
    # An entry of cpConfig is one machine's.
    both = [{"ip_address": "10.0.0.5"}, {"ip_address": "10.0.0.6"}]
    assert heat.parameters["nfv"]["each"] == [both, [{"subnet": "s"}] * 2, []]
    assert isinstance(heat.template, str)
    assert "worker_instance" in yaml.safe_load(heat.template)["resources"]
    # The class returns the templates alone; files that they read go with them.
    assert set(heat.files) == {"worker.yaml", "../../../Scripts/boot.sh"}


@pytest.mark.parametrize("home", ["default.DefaultUserData", "standard.StandardUserData"])
async def test_the_ready_made_classes_can_be_inherited(run: Run, home: str) -> None:
    module, _, name = home.partition(".")
    source = f"""
    from tacker.sol_refactored.infra_drivers.openstack.userdata_{module} import {name}
    class Code({name}):
        @staticmethod
        def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
            fields = {name}.instantiate(req, inst, grant_req, grant, tmp_csar_dir)
            fields["parameters"]["nfv"]["seen"] = True
            return fields
    """
    request: Mapping[str, Any] = REQUEST
    grant_request: Mapping[str, Any] = GRANT_REQUEST
    if module == "standard":  # one clone for each VNFC of a VDU that is a resource of the template
        grant_request = {"addResources": GRANT_REQUEST["addResources"][:1]}
    heat = await run(source=source, api_version="v2", request=request, grant_request=grant_request)
    nfv = heat.parameters["nfv"]
    assert nfv["seen"]
    assert isinstance(heat.template, str)
    resources = yaml.safe_load(heat.template)["resources"]
    if module == "default":
        assert nfv["VDU"]["workerNode"]["desired_capacity"] == 2
    else:
        assert "masterNode-0" in resources
        assert "masterNode" not in resources
        assert "masterNode-0" in nfv["VDU"]


async def test_the_standard_class_counts_the_machines_of_a_changed_flavour_from_0(run: Run) -> None:
    source = """
    from tacker.sol_refactored.infra_drivers.openstack.userdata_standard import StandardUserData
    class Code(StandardUserData):
        pass
    """
    present = {"vnfcResourceInfo": [{"id": f"c{n}", "vduId": "masterNode"} for n in range(2)]}
    heat = await run(
        source=source,
        api_version="v2",
        instance={"id": "inst-1", "vnfdId": "v", "instantiatedVnfInfo": present},
        grant_request={"operation": "CHANGE_FLAVOUR", "addResources": GRANT_REQUEST["addResources"][:1]},
    )
    assert isinstance(heat.template, str)
    made = {name for name in yaml.safe_load(heat.template)["resources"] if name.startswith("masterNode")}
    assert "masterNode-0" in made
    assert not {"masterNode-1", "masterNode-2"} & made
    assert "masterNode-0" in heat.parameters["nfv"]["VDU"]


async def test_v1_functions_of_scale_and_heal_are_called_in_their_own_form(change: Change) -> None:
    """The request decides nothing about the form; the class's base does."""
    source = """
    from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData
    class Code(AbstractUserData):
        @staticmethod
        def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
            raise AssertionError("not asked")
        def scale(base_hot_dict=None, vnfd_dict=None, scale_vnf_request=None, vnf_instances=None, inst_vnf_info=None,
                  param=None, resource_number=None):
            assert "heat_template" in base_hot_dict and "topology_template" in vnfd_dict
            level = {one.aspect_id: one.scale_level for one in inst_vnf_info.scale_status}
            param["nfv"]["desired_capacity"] = {scale_vnf_request.aspect_id: resource_number}
            steps = [scale_vnf_request.type, scale_vnf_request.number_of_steps]
            return {**param, "seen": [level, steps, vnf_instances.id]}
        def heal(base_hot_dict=None, vnfd_dict=None, heal_vnf_request=None, vnf_instances=None, inst_vnf_info=None,
                 param=None, vnfc_resource_info=None):
            param["nfv"]["VDU"] = {one.vdu_id: None for one in vnfc_resource_info}
            return {**param, "cause": [heal_vnf_request.cause, heal_vnf_request.vnfc_instance_id]}
    """
    instance = a_standard_instance()
    instance["instantiatedVnfInfo"]["scaleStatus"] = [{"aspectId": "worker_instance", "scaleLevel": 1}]
    stack = {"nfv": {"kept": True}, "volume_size": 5}
    given = {"instance": instance, "parameters": stack}
    request = {"type": "SCALE_OUT", "aspectId": "worker_instance"}
    assert await change("scale", source, request=request, group_size=4, **given) == HeatPatch(
        parameters={
            "nfv": {"kept": True, "desired_capacity": {"worker_instance": 4}},
            "volume_size": 5,
            "seen": [{"worker_instance": 1}, ["SCALE_OUT", 1], "inst-1"],
        },
        has_whole_values=True,
    )
    healed = await change("heal", source, request={"cause": "dead"}, servers=("server-1",), **given)
    assert healed is not None
    assert healed.parameters == {
        "nfv": {"kept": True, "VDU": {"masterNode": None}}, "volume_size": 5, "cause": ["dead", []],
    }  # fmt: skip
    # A scaling to levels, which v1 does not have, and what v1 has no function for, are done by the built-in rules.
    assert await change("scale", source, request={"scaleInfo": []}, **given) is None
    assert await change("change_vnfpkg", source, **given) is None


@pytest.mark.parametrize("head", [V1, V2])
async def test_a_method_that_a_class_only_inherits_from_its_base_is_the_built_in_one(change: Change, head: str) -> None:
    source = dedent(head) + "        return {}\n"
    given = {"instance": a_standard_instance(), "group_size": 3}
    for method in ("scale", "heal", "change_ext_conn"):
        assert await change(method, source, **given) is None


async def test_the_ready_made_class_changes_the_machines_of_another_one(change: Change) -> None:
    """For a request that names no class: values of the stack that it cannot know stay as they are."""
    added = {"addResources": [{"id": "r", "type": "COMPUTE", "resourceTemplateId": "masterNode"}]}
    instance = a_standard_instance()
    patch = await change("scale", None, request={"type": "SCALE_OUT"}, instance=instance, grant_request=added)
    assert patch is not None
    assert patch.template is not None
    assert "masterNode-2" in yaml.safe_load(patch.template)["resources"]
    # Only what is new: it is merged with the parameters of the stack.
    assert patch.parameters["nfv"]["VDU"] == {"masterNode-2": {}, "workerNode": {}}
    leaving = [
        {"type": "COMPUTE", "resourceTemplateId": "masterNode", "resource": {"resourceId": "server-1"}},
        {"type": "COMPUTE", "resourceTemplateId": "x", "resource": {"resourceId": "elsewhere"}},
    ]
    both = await change("scale", None, instance=instance, grant_request={**added, "removeResources": leaving})
    assert both is not None
    assert both.template is not None
    made = yaml.safe_load(both.template)["resources"]
    assert (made["masterNode-1"], made["masterNode-2"]["type"]) == (None, "OS::Nova::Server")
    assert both.parameters["nfv"]["VDU"]["masterNode-1"] is None
    new = {
        "dstVnfdId": "v",
        "removeResources": [
            {"type": "COMPUTE", "resourceTemplateId": "masterNode", "resource": {"resourceId": "server-0"}}
        ],
    }
    whole = await change("change_vnfpkg", None, instance=instance, grant_request=new)
    assert whole is not None
    assert whole.is_whole
    assert whole.template is not None
    assert {"masterNode-0", "masterNode-1"} <= yaml.safe_load(whole.template)["resources"].keys()
    assert [whole.parameters["nfv"]["VDU"][f"masterNode-{n}"]["of"] for n in (0, 1)] == ["another class"] * 2


async def test_each_machine_of_the_standard_class_keeps_its_entry_of_cp_config(run: Run) -> None:
    """Null removes the entry of one machine; points that the request does not name are left out."""
    present = a_standard_instance(CP1={0: "a", 1: "b"}, CP2={0: "c", 1: "d"})

    def config(*fixed: str) -> dict[str, Any]:
        return {
            "cpProtocolData": [{"ipOverEthernet": {"ipAddresses": [{"type": "IPV4", "fixedAddresses": list(fixed)}]}}]
        }

    cps = [
        {"cpdId": "CP1", "cpConfig": {"a": config("10.0.0.1"), "b": config("10.0.0.2")}},
        {"cpdId": "CP2", "cpConfig": {"c": config("10.0.0.3"), "d": config("10.0.0.4")}},
    ]
    link = {"id": "l", "resourceHandle": {"resourceId": "n"}, "currentVnfExtCpData": cps}
    present["instantiatedVnfInfo"]["extVirtualLinkInfo"] = [link]
    named = {"a": None, "e": config("10.0.0.5")}
    heat = await run(
        """
        from tacker.sol_refactored.infra_drivers.openstack import userdata_default as default
        cps = {f"{cp}-{n}": {"network": None, "fixed_ips": {0: {"ip_address": None}}} for cp in ("CP1", "CP2") for n in (0, 1)}
        number, plain = (lambda name: int(name[-1])), (lambda name: name[:-2])
        return {"parameters": {
            "changed": default.fill_cps(cps, *default.requested({}, req, inst), plain, number),
            "scaled": default.fill_cps(cps, *default.present(inst), plain, number),
        }}
        """,
        head=V2,
        api_version="v2",
        request={"extVirtualLinks": [{"id": "l", "resourceId": "n", "extCps": [{"cpdId": "CP1", "cpConfig": named}]}]},
        instance=present,
    )

    def filled(**addresses: str) -> dict[str, Any]:
        return {
            name.replace("_", "-"): {"network": "n", "fixed_ips": [{"ip_address": f"10.0.0.{one}"}]}
            for name, one in addresses.items()
        }

    assert heat.parameters == {
        "changed": filled(CP1_0="5", CP1_1="2"),
        "scaled": filled(CP1_0="1", CP1_1="2", CP2_0="3", CP2_1="4"),
    }


async def test_a_class_without_a_known_base_is_called_by_the_api_version(run: Run) -> None:
    source = """
    class Code:
        @staticmethod
        def instantiate(*args):
            return {"parameters": {"count": len(args)}}
    """
    assert (await run(source=source, api_version="v1")).parameters == {"parameters": {"count": 4}}
    assert (await run(source=source, api_version="v2")).parameters == {"count": 5}


async def test_modules_beside_the_class_can_be_imported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "package/UserData/neighbour.py").write_text("NAME = 'from beside'\n")
    heat = await run("from neighbour import NAME\nreturn {'name': NAME}")
    assert heat.parameters == {"name": "from beside"}


# --- forbidden actions ------------------------------------------------------------------------------------------------


async def test_an_endless_loop_is_killed(run: Run) -> None:
    """SEQ-186."""
    with pytest.raises(UserDataTimedOut, match="killed after 1 s"):
        await run("while True: pass", timeout_s=1)


async def test_a_sleeper_is_killed(run: Run) -> None:
    """The output shows where it hangs."""
    with pytest.raises(UserDataTimedOut, match=r"killed after 5 s; its last output:\n\| waiting"):
        await run("import time\nprint('waiting')\ntime.sleep(60)", timeout_s=5)


@pytest.mark.parametrize("kernel", KERNELS, indirect=True)
async def test_too_much_memory_raises_a_memory_error(run: Run) -> None:
    with pytest.raises(UserDataFailed, match="MemoryError"):
        await run("return {'x': len('x' * (1 << 30))}")


@pytest.mark.parametrize("kernel", KERNELS, indirect=True)
@pytest.mark.parametrize(
    "body",
    [
        "import os\nwhile True: os.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import os\nos.system('true')",
        "import os\nos.execv('/bin/true', ['true'])",
        "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nreturn {}",
        "import ctypes\nctypes.CDLL(None).fork()",
    ],
)
async def test_no_process_is_started_or_signalled(run: Run, body: str) -> None:
    with pytest.raises(UserDataFailed, match=f"code of a package must not|{UNREADABLE}"):
        await run(body)


@pytest.mark.parametrize("kernel", KERNELS, indirect=True)
async def test_no_network(run: Run) -> None:
    with pytest.raises(UserDataFailed, match=f"code of a package must not use the network|{UNREADABLE}"):
        await run("import socket\nsocket.create_connection(('127.0.0.1', 22))")


async def test_no_package_of_the_services_environment(run: Run) -> None:
    with pytest.raises(UserDataFailed, match=r"code of a package must not|No such file"):
        await run(f"return {{'found': open({pydantic.__file__!r}).read()}}")


async def test_no_environment_of_the_service(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEVNFM_INFRA_OPENSTACK_KEYS", "the-key")
    heat = await run("import os\nreturn {'names': sorted(os.environ)}")
    assert "KUBEVNFM_INFRA_OPENSTACK_KEYS" not in heat.parameters["names"]


async def test_no_file_of_the_machine_is_read(run: Run, tmp_path: Path) -> None:
    """SEQ-186."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the-key")
    secret.chmod(0o644)
    for path in (str(secret), "/etc/hostname", f"/proc/{os.getpid()}/environ", "/proc/self/environ"):
        with pytest.raises(UserDataFailed, match=r"PermissionError|FileNotFoundError"):
            await run(f"return {{'text': open({path!r}).read()}}")


async def test_no_file_of_the_package_is_changed(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserDataFailed, match=r"PermissionError|OSError"):
        await run("open(tmp_csar_dir + '/BaseHOT/simple/cluster.yaml', 'w')", head=V2)
    assert (tmp_path / "package/BaseHOT/simple/cluster.yaml").read_text()


async def test_a_scratch_file_may_be_written_but_not_a_large_one(run: Run) -> None:
    assert (await run("open('x', 'w').write('1')\nreturn {'text': open('x').read()}")).parameters == {"text": "1"}
    with pytest.raises(UserDataFailed, match=r"OSError|ended with status"):
        await run("open('x', 'wb').write(b'x' * (64 << 20))\nreturn {}")


async def test_no_native_code_of_the_package(run: Run, tmp_path: Path) -> None:
    (tmp_path / "package/UserData/native.so").write_bytes(b"\x7fELF")
    with pytest.raises(UserDataFailed, match="native code"):
        await run("import native")


async def test_two_runs_cannot_see_each_other(run: Run) -> None:
    await run("open('left', 'w').write('here')\nreturn {}")
    heat = await run("import os\nreturn {'here': os.path.exists('left')}")
    assert heat.parameters == {"here": False}


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_an_error_contains_the_end_of_the_output(run: Run) -> None:
    with pytest.raises(UserDataFailed, match=r"KeyError: 'absent'") as caught:
        await run("print('first step')\nreturn {}['absent']")
    assert "first step" in str(caught.value)
    assert "code.py" in str(caught.value)


async def test_secrets_of_the_request_are_masked(run: Run) -> None:
    with pytest.raises(UserDataFailed) as caught:
        await run("print(inst_req_info.additional_params)\nraise ValueError(inst_req_info.additional_params)")
    assert "s3cret" not in str(caught.value)
    assert "***" in str(caught.value)


async def test_long_output_is_cut(run: Run) -> None:
    with pytest.raises(UserDataFailed) as caught:
        await run("import sys\nfor _ in range(2000): sys.stderr.write('x' * 10000)\nraise ValueError('end')")
    assert len(str(caught.value)) < 10_000


async def test_a_result_that_is_too_large_is_rejected(run: Run) -> None:
    with pytest.raises(AnswerRefused, match="more than"):
        await run("return {'x': 'x' * (9 << 20)}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return None", "a dict of Heat parameters expected"),
        ("return {'x': object()}", "the result is not JSON: a value of type object"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os\nos._exit(3)", "ended with status 3 without a result"),
    ],
)
async def test_a_missing_or_wrong_result_is_rejected(run: Run, body: str, message: str) -> None:
    with pytest.raises(UserDataFailed, match=message):
        await run(body)


async def test_a_class_is_not_run_where_the_kernel_refuses_namespaces() -> None:
    flavour = await CachedFlavours(FolderPackages()).flavour(PackageRef(package_id="p", vnfd_id="v"), "simple")
    assert flavour.hot is not None
    given = UserDataInput("v1", REQUEST, {}, {}, {}, {}, {})
    process = UserDataProcess(Limits(without=frozenset({"namespaces"})))
    user_data = UserData(path="UserData/cluster_v1.py", class_name="ClusterUserData")
    with pytest.raises(SandboxUnavailable, match="the kernel refuses namespaces") as refusal:
        await process.instantiate(user_data, PACKAGE, flavour.hot, given)
    assert (refusal.value.status, refusal.value.retryable) == (503, False)


async def test_a_missing_class_is_named_with_the_present_ones(run: Run) -> None:
    with pytest.raises(UserDataFailed, match="defines no class Missing; it defines Code"):
        await run("return {}", name="Missing")


async def test_a_syntax_error_is_reported(run: Run) -> None:
    with pytest.raises(UserDataFailed, match="SyntaxError"):
        await run(source="class Code(:\n")


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "UserData/absent.py"])
async def test_a_path_outside_the_package_is_rejected_unread(path: str) -> None:
    flavour = await CachedFlavours(FolderPackages()).flavour(PackageRef(package_id="p", vnfd_id="v"), "simple")
    assert flavour.hot is not None
    given = UserDataInput("v1", REQUEST, {}, {}, {}, {}, {})
    with pytest.raises(Unprocessable, match="lcm-operation-user-data"):
        await UserDataProcess(Limits()).instantiate(UserData(path=path, class_name="Code"), PACKAGE, flavour.hot, given)


async def test_a_cancelled_run_leaves_no_process(run: Run) -> None:
    task = asyncio.create_task(run("import time\ntime.sleep(60)", timeout_s=50))
    await until(lambda: bool(sandbox_processes()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not sandbox_processes())
