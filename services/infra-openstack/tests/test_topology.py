"""Heat templates made from a VNFD's topology."""

from __future__ import annotations

from typing import Any

import pytest
from kubevnfm_csar import ComputeDemand, Cp, Flavour, SoftwareImage, Storage, Vdu, VirtualLink
from kubevnfm_infra_openstack.domain.grant import Granted
from kubevnfm_infra_openstack.domain.quota import Flavor
from kubevnfm_infra_openstack.domain.topology import template_of, with_present_vdus
from kubevnfm_kit.errors import Unprocessable

GIB = 1024**3
FLAVORS = {"m1.small": Flavor(1, 2048), "m1.large": Flavor(4, 8192)}
VNFD = Flavour(
    flavour_id="simple",
    file="Definitions/vnfd.yaml",
    vdus={
        "masterNode": Vdu(
            vdu_id="masterNode",
            name="master",
            image=SoftwareImage(image_id="masterNode", name="ubuntu"),
            compute=ComputeDemand(vcpus=2, memory_bytes=4 * GIB),
            storages=("data",),
            min_instances=1,
        ),
    },
    cps={
        "external": Cp(cp_id="external", vdu_id="masterNode", order=1),
        "internal": Cp(cp_id="internal", vdu_id="masterNode", order=0, virtual_link="internalVL"),
    },
    virtual_links={"internalVL": VirtualLink(virtual_link_id="internalVL", cidr="10.10.0.0/24", ip_version="ipv4")},
    storages={"data": Storage(storage_id="data", size_bytes=5 * GIB + 1)},
    initial_deltas={"masterNode": 1},
)


def given(**facts: Any) -> Granted:
    links = [{"id": "l", "resourceId": "net0", "extCps": [{"cpdId": "external", "cpConfig": {}}]}]
    return Granted({"extVirtualLinks": links, **facts})


def resources(given_: Granted, vnfd: Flavour = VNFD) -> dict[str, Any]:
    return dict(template_of(vnfd, given_, FLAVORS)["resources"])


def test_a_vdu_becomes_a_server_with_its_ports_in_order_and_its_volume() -> None:
    made = resources(given())
    assert set(made) == {"masterNode", "external", "internal", "internalVL", "internalVL_subnet", "data"}
    assert made["masterNode"]["properties"] == {
        "name": "master",
        "flavor": "m1.large",
        "image": "ubuntu",
        "networks": [{"port": {"get_resource": "internal"}}, {"port": {"get_resource": "external"}}],
        "block_device_mapping_v2": [{"volume_id": {"get_resource": "data"}, "boot_index": -1}],
    }
    assert made["external"]["properties"] == {"network": "net0"}
    assert made["internal"]["properties"] == {"network": {"get_resource": "internalVL"}}
    assert made["internal"]["depends_on"] == "internalVL_subnet"
    assert made["internalVL_subnet"]["properties"]["cidr"] == "10.10.0.0/24"
    assert made["data"]["properties"] == {"size": 6}


def test_several_instances_are_clones_with_ports_of_their_own() -> None:
    made = resources(given(), VNFD.model_copy(update={"initial_deltas": {"masterNode": 2}}))
    assert {"masterNode-0", "masterNode-1", "internal-1", "external-0", "data-1"} <= set(made)
    assert made["masterNode-1"]["properties"]["networks"][0] == {"port": {"get_resource": "internal-1"}}


def test_a_managed_link_is_not_created() -> None:
    link = {"vnfVirtualLinkDescId": "internalVL", "resourceId": "net-9"}
    made = resources(given(extManagedVirtualLinks=[link]))
    assert "internalVL" not in made
    assert made["internal"] == {"type": "OS::Neutron::Port", "properties": {"network": "net-9"}}


def test_a_connection_point_without_a_link_is_named() -> None:
    with pytest.raises(Unprocessable, match="connection point external"):
        resources(Granted({}))


def test_a_vdu_that_fits_no_flavor_is_named() -> None:
    with pytest.raises(Unprocessable, match=r"VDU masterNode.*2 vCPUs and 4096 MiB"):
        template_of(VNFD, given(), {"m1.small": Flavor(1, 2048)})


def test_vdus_that_a_change_does_not_name_keep_their_machines_ports_and_volumes() -> None:
    present = template_of(VNFD, given(), FLAVORS)
    master = VNFD.vdus["masterNode"].model_copy(update={"image": SoftwareImage(image_id="masterNode", name="new")})
    changed = VNFD.model_copy(update={"vdus": {"masterNode": master, "other": Vdu(vdu_id="other")}})
    wanted = template_of(changed, given(), FLAVORS)
    first: Any = with_present_vdus(wanted, present, changed, ("other",))
    assert first["resources"]["masterNode"]["properties"]["image"] == "ubuntu"
    replaced: Any = with_present_vdus(wanted, present, changed, ("masterNode",))
    assert replaced["resources"]["masterNode"]["properties"]["image"] == "new"
