"""User data as Tacker's users write it for the v1 API."""

# mypy: ignore-errors

import tacker.vnfm.lcm_user_data.utils as UserDataUtil  # noqa: N812 - as its users write it
from tacker.vnfm.lcm_user_data.abstract_user_data import AbstractUserData


class ClusterUserData(AbstractUserData):
    @staticmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        from_api = UserDataUtil.get_diff_base_hot_param_from_api(base_hot_dict, inst_req_info)
        wanted = UserDataUtil.create_initial_param_server_port_dict(base_hot_dict)
        flavors = UserDataUtil.create_vdu_flavor_capability_name_dict(vnfd_dict)
        images = UserDataUtil.create_sw_image_dict(vnfd_dict)
        networks = UserDataUtil.create_network_dict(inst_req_info, wanted)
        final = UserDataUtil.create_final_param_dict(wanted, flavors, images, networks)
        capacity = UserDataUtil.create_desired_capacity_dict(base_hot_dict, vnfd_dict, inst_req_info)
        final["nfv"]["VDU"]["workerNode"]["desired_capacity"] = capacity["worker_instance"]
        return {**final, **from_api}

    @staticmethod
    def scale(
        base_hot_dict=None,
        vnfd_dict=None,
        scale_vnf_request=None,
        vnf_instances=None,
        inst_vnf_info=None,
        param=None,
        resource_number=None,
    ):
        param["nfv"]["VDU"]["workerNode"] = {**param["nfv"]["VDU"]["workerNode"], "desired_capacity": resource_number}
        return {**param, "volume_size": 3}
