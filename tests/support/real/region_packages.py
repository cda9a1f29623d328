"""The files of the packages that VNFs in a real cloud region are brought up from (multicloud.md chapters 4 and 5)."""

from __future__ import annotations

import json
from typing import Final

from packages.region_vnf import DEPLOYMENT

_SERVICE: Final = """\
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: '${db.port}'}]}
"""
_SETTINGS: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {port: "${db.port} of ${db.name:-main}", script: "echo $$HOME"}
---
apiVersion: v1
kind: Secret
metadata: {name: login}
stringData: {code: "$code"}
"""
_MIGRATION: Final = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: migrate}]}}}
"""
_NETWORK: Final = """\
apiVersion: k8s.plugin.opnfv.org/v1alpha1
kind: Network
metadata: {name: line}
spec: {cniType: ovn4nfv, ipv4Subnets: [{name: a, subnet: 10.99.0.0/24}]}
"""
_USER_DEFINED_NETWORK: Final = """\
apiVersion: k8s.ovn.org/v1
kind: UserDefinedNetwork
metadata: {name: plane}
spec: {topology: Layer2, layer2: {role: Secondary, subnets: [10.98.0.0/24]}}
"""
_MACHINE: Final = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: firewall}
spec:
  runStrategy: Always
  template:
    metadata: {labels: {app: firewall}}
    spec:
      domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}, resources: {requests: {memory: 64Mi}}}
      volumes: [{name: root, containerDisk: {image: firewall}}]
"""
_MACHINE_SET: Final = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstanceReplicaSet
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      domain: {devices: {disks: [{name: root, disk: {bus: virtio}}]}, resources: {requests: {memory: 64Mi}}}
      volumes: [{name: root, containerDisk: {image: web}}]
"""
_ORDER: Final = """\
artifacts:
- {file: settings.yaml, priority: 0, wait: exists}
- {file: line.yaml, priority: 1, wait: {jsonpath: "{.status.state}", value: Created}}
- file: plane.yaml
  priority: 2
  wait:
    cel: "object.status.conditions.exists(c, c.type == 'NetworkCreated' && c.status == 'True')"
    failed: "object.status.conditions.exists(c, c.type == 'NetworkCreated' && c.status == 'False')"
- {file: web.yaml, priority: 3}
- {file: migrate.yaml, after: [line.yaml]}
- {file: service.yaml, after: [Deployment.apps/web, migrate.yaml], wait: none}
values: {tag: "1.27", db: {port: 5432}}
"""
_PLAIN_ORDER: Final = """\
artifacts: [{file: web.yaml, priority: 1}, {file: service.yaml, priority: 2}]
values: {tag: "1.27", db: {port: 5432}}
"""
_SCHEMA: Final = {
    "properties": {
        "db": {"properties": {"port": {"type": "integer", "maximum": 65535}}},
        "code": {"type": "string", "minLength": 8},
    }
}
ORDERED: Final = {
    "artifact-order.yaml": _ORDER,
    "settings.yaml": _SETTINGS,
    "line.yaml": _NETWORK,
    "plane.yaml": _USER_DEFINED_NETWORK,
    "web.yaml": DEPLOYMENT,
    "migrate.yaml": _MIGRATION,
    "service.yaml": _SERVICE,
    "values.schema.json": json.dumps(_SCHEMA),
}
"""Priorities, ``after``, waits by jsonpath and CEL on kinds that have no controller, variables with a schema, a secret value."""
PLAIN: Final = {"artifact-order.yaml": _PLAIN_ORDER, "web.yaml": DEPLOYMENT, "service.yaml": _SERVICE}
MACHINE_SET: Final = {"artifact-order.yaml": "artifacts: [{file: set.yaml}]\n", "set.yaml": _MACHINE_SET}
MACHINE: Final = {"artifact-order.yaml": "artifacts: [{file: vm.yaml}]\n", "vm.yaml": _MACHINE}
