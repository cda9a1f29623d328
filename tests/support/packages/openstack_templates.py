"""Templates that several tests of clouds use."""

from __future__ import annotations

from typing import Final

VERSION: Final = "heat_template_version: 2018-08-31\n"

SMALL: Final = (
    VERSION
    + """
description: a server on a port
parameters:
  flavor: {type: string, default: m1.small}
  name: {type: string, default: small}
resources:
  port:
    type: OS::Neutron::Port
    properties: {network: net0}
  server:
    type: OS::Nova::Server
    properties:
      name: {get_param: name}
      image: ubuntu
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: port}}]
outputs:
  address: {value: {get_attr: [port, fixed_ips, 0, ip_address]}}
"""
)

WORKER: Final = (
    VERSION
    + """
parameters:
  flavor: {type: string}
  network: {type: string}
resources:
  CP:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}}
  VDU:
    type: OS::Nova::Server
    properties:
      name: workerNode
      image: dummy
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: CP}}]
outputs:
  ip: {value: {get_attr: [CP, fixed_ips, 0, ip_address]}}
"""
)

CLUSTER: Final = (
    VERSION
    + """
description: a master with a volume, and a group of workers with its policies
parameters:
  flavor: {type: string, default: m1.small}
  network: {type: string, default: net0}
  workers: {type: number, default: 2}
resources:
  masterNode_port:
    type: OS::Neutron::Port
    properties: {network: {get_param: network}}
  masterNode:
    type: OS::Nova::Server
    properties:
      name: masterNode
      image: ubuntu
      flavor: {get_param: flavor}
      networks: [{port: {get_resource: masterNode_port}}]
  storage:
    type: OS::Cinder::Volume
    properties: {size: 1}
  storage_attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {instance_uuid: {get_resource: masterNode}, volume_id: {get_resource: storage}}
  worker_group:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 0
      max_size: 5
      desired_capacity: {get_param: workers}
      resource:
        type: worker.yaml
        properties: {flavor: {get_param: flavor}, network: {get_param: network}}
  worker_scale_out:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {get_resource: worker_group}
      adjustment_type: change_in_capacity
      scaling_adjustment: 1
  worker_scale_in:
    type: OS::Heat::ScalingPolicy
    properties:
      auto_scaling_group_id: {get_resource: worker_group}
      adjustment_type: change_in_capacity
      scaling_adjustment: -1
outputs:
  master_ip: {value: {get_attr: [masterNode_port, fixed_ips, 0, ip_address]}}
  worker_ips: {value: {get_attr: [worker_group, outputs_list, ip]}}
  scale_out_url: {value: {get_attr: [worker_scale_out, alarm_url]}}
"""
)

CLUSTER_FILES: Final = {"worker.yaml": WORKER}
