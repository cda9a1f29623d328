"""A private registry's package and request in the form of Tacker's guide (sequences.md 1.6, 2.9 and chapter 6).

The texts here are ours, as those of `guide_clusters`.
"""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any, Final

from callers.user import ApiVersion
from clouds.lab_process import LabProcess

from packages.guide_parts import USER_DATA_V1, Vnfd, connections, dumped, link, packed, policy, template, topology

PORT_NO: Final = 5000
_VDU: Final = "PrivateRegistryVDU"
_CP: Final = "CP1"
_SAVED: Final = "Files/images/private_registry.tar"
_DRIVER: Final = "mgmt-drivers-private-registry"
_DRIVER_FILE: Final = "Scripts/private_registry_mgmt.py"
_DRIVER_TEXT: Final = """\
from tacker.vnfm.mgmt_drivers import vnflcm_abstract_driver


class PrivateRegistryMgmtDriver(vnflcm_abstract_driver.VnflcmMgmtAbstractDriver):
    def get_type(self):
        return "mgmt-drivers-private-registry"

    def instantiate_end(self, context, vnf_instance, instantiate_vnf_request, grant, grant_request, **kwargs):
        raise RuntimeError("the driver of the package was run")
"""


def guide_registry(vnfd_id: str) -> bytes:
    """Return the package of the guide, with the image of the registry as ``docker save`` writes it."""
    level = {"instantiation_level_1": {"description": "Smallest size"}}
    one = {"number_of_instances": 1}
    policies = [
        policy("instantiation_levels", "InstantiationLevels", levels=level, default_level="instantiation_level_1"),
        policy(f"{_VDU}_initial_delta", "VduInitialDelta", _VDU, initial_delta=one),
        policy(f"{_VDU}_levels", "VduInstantiationLevels", _VDU, levels={"instantiation_level_1": one}),
    ]
    simple = topology(
        "simple", {_VDU: (_CP, 1, 1)}, policies, driver=(_DRIVER, _DRIVER_FILE), phases=("instantiate_end", "heal_end")
    )
    vnfd = Vnfd(vnfd_id, "sample_registry", "Private registry of the guide", {"simple": simple})
    files: dict[str, str | bytes] = {
        _DRIVER_FILE: _DRIVER_TEXT,
        "UserData/private_registry_user_data.py": USER_DATA_V1,
        "BaseHOT/simple/registry_hot.yaml": dumped(_hot()),
        _SAVED: _saved_image(),
    }
    return packed(vnfd.files() | files, entry=vnfd.entry, listed=(_DRIVER_FILE,))


def guide_registry_request(api: ApiVersion, lab: LabProcess, vim_id: str) -> dict[str, Any]:
    """Return the guide's instantiate request."""
    installation = {
        "ssh_cp_name": _CP,
        "ssh_username": "ubuntu",
        "ssh_password": lab.machine_password,
        "image_path": _SAVED,
        "port_no": str(PORT_NO),
        "proxy": {"http_proxy": "http://host1:3128", "https_proxy": "https://host2:3128", "no_proxy": "127.0.0.1"},
    }
    return {
        "flavourId": "simple",
        "vimConnectionInfo": connections(api, lab, vim_id),
        "additionalParams": {
            "private_registry_installation_param": installation,
            "lcm-operation-user-data": "./UserData/private_registry_user_data.py",
            "lcm-operation-user-data-class": "GuideUserData",
        },
        "extVirtualLinks": [link(api, "net0_registry", _CP)],
    }


def _hot() -> dict[str, Any]:
    server = {
        "flavor": {"get_param": ["nfv", "VDU", _VDU, "flavor"]},
        "image": {"get_param": ["nfv", "VDU", _VDU, "image"]},
        "networks": [{"port": {"get_resource": _CP}}],
    }
    port = {"network": {"get_param": ["nfv", "CP", _CP, "network"]}}
    resources = {
        _VDU: {"type": "OS::Nova::Server", "properties": server},
        _CP: {"type": "OS::Neutron::Port", "properties": port},
    }
    return template("registry Base HOT", {"nfv": "json"}, resources)


def _saved_image() -> bytes:
    content = json.dumps([{"RepoTags": ["registry:latest"]}]).encode()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        member = tarfile.TarInfo("manifest.json")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return written.getvalue()
