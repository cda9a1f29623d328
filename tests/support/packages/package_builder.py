"""Builds small VNF packages in the layouts that are in use: Tacker's v1 and v2, and SOL004 without TOSCA-Metadata."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

META = "TOSCA-Metadata/TOSCA.meta"


def zip_of(path: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write the files as they are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def with_meta(
    files: Mapping[str, str | bytes], *, entry: str = "Definitions/top.yaml", listed: tuple[str, ...] = ()
) -> dict[str, str | bytes]:
    """Add a TOSCA.meta with right digests of the ``listed`` files."""
    blocks = [f"TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: a test\nEntry-Definitions: {entry}\n"]
    for name in listed:
        content = files[name]
        raw = content.encode() if isinstance(content, str) else content
        digest = hashlib.sha256(raw).hexdigest()
        blocks.append(f"Name: {name}\nContent-Type: text/plain\nAlgorithm: SHA-256\nHash: {digest}\n")
    return {**files, META: "\n".join(blocks)}


TYPES = dedent("""\
    tosca_definitions_version: tosca_simple_yaml_1_2
    imports:
      - etsi_nfv_sol001_common_types.yaml
      - etsi_nfv_sol001_vnfd_types.yaml
    data_types:
      acme.datatypes.Extensions:
        derived_from: tosca.datatypes.nfv.VnfInfoModifiableAttributesExtensions
        properties:
          site: {type: string, default: here}
          rack: {type: string}
      acme.datatypes.Modifiable:
        derived_from: tosca.datatypes.nfv.VnfInfoModifiableAttributes
        properties:
          extensions: {type: acme.datatypes.Extensions, required: false}
      acme.datatypes.Configurable:
        derived_from: tosca.datatypes.nfv.VnfConfigurableProperties
        properties:
          is_autoscale_enabled: {type: boolean, default: false}
    node_types:
      acme.nodes.Base:
        derived_from: tosca.nodes.nfv.VNF
        properties:
          provider: {type: string, default: Acme}
          vnfm_info: {type: list, entry_schema: {type: string}, default: [kubevnfm]}
      acme.nodes.Cluster:
        derived_from: acme.nodes.Base
        properties:
          descriptor_id:
            type: string
            constraints: [valid_values: [b1bb0ce7-ebca-4fa7-95ed-4840d70a1177]]
          descriptor_version: {type: string, default: 1.0}
          product_name: {type: string, default: Cluster}
          software_version: {type: string, default: '1.30'}
          flavour_id: {type: string, constraints: [valid_values: [simple, complex]], default: simple}
          flavour_description: {type: string, default: ''}
          modifiable_attributes: {type: acme.datatypes.Modifiable, required: false}
          configurable_properties: {type: acme.datatypes.Configurable, required: false}
        requirements:
          - virtual_link_internal: {capability: tosca.capabilities.nfv.VirtualLinkable}
        interfaces:
          Vnflcm: {type: tosca.interfaces.nfv.Vnflcm}
    """)

TOP = dedent("""\
    tosca_definitions_version: tosca_simple_yaml_1_2
    imports:
      - types.yaml
      - flavour_simple.yaml
      - file: flavour_complex.yaml
    topology_template:
      inputs:
        selected_flavour: {type: string, default: simple}
      node_templates:
        VNF:
          type: acme.nodes.Cluster
          properties:
            flavour_id: {get_input: selected_flavour}
            descriptor_id: b1bb0ce7-ebca-4fa7-95ed-4840d70a1177
          requirements: []
    """)


_FLAVOUR = dedent("""\
    tosca_definitions_version: tosca_simple_yaml_1_2
    imports: [etsi_nfv_sol001_common_types.yaml, etsi_nfv_sol001_vnfd_types.yaml, types.yaml]
    topology_template:
      inputs:
        least_workers: {{type: integer, default: 2}}
      substitution_mappings:
        node_type: acme.nodes.Cluster
        properties: {{flavour_id: {flavour_id}}}
        requirements:
          virtual_link_external1: [masterNode_CP1, virtual_link]
      node_templates:
        {vnf}:
          type: acme.nodes.Cluster
          properties: {{flavour_description: the {flavour_id} one}}
          interfaces:
            Vnflcm:
              instantiate: []
              instantiate_start: []
              terminate_start: {{}}
              {phases}
          artifacts:
            mgmt-drivers-kubernetes:
              description: cluster driver
              type: {artifact_type}
              file: {driver_file}
        masterNode:
          type: tosca.nodes.nfv.Vdu.Compute
          properties:
            name: masterNode
            description: control plane
            vdu_profile: {{min_number_of_instances: {masters}, max_number_of_instances: {most_masters}}}
            sw_image_data:
              name: ubuntu
              version: '22.04'
              checksum: {{algorithm: sha-512, hash: abc}}
              container_format: bare
              disk_format: qcow2
              min_disk: 2 GB
              size: 1 MiB
          artifacts:
            sw_image: {{type: tosca.artifacts.nfv.SwImage, file: ../Files/images/ubuntu.img}}
          capabilities:
            virtual_compute:
              properties:
                requested_additional_capabilities:
                  properties:
                    requested_additional_capability_name: m1.medium
                    support_mandatory: true
                    target_performance_parameters: {{entry_schema: test}}
                virtual_memory: {{virtual_mem_size: 4 GB}}
                virtual_cpu: {{num_virtual_cpu: 2}}
                virtual_local_storage: [{{size_of_storage: 45 GB}}]
        workerNode:
          type: tosca.nodes.nfv.Vdu.Compute
          properties:
            name: workerNode
            vdu_profile:
              min_number_of_instances: {{get_input: least_workers}}
              max_number_of_instances: 4
        masterNode_CP1:
          type: tosca.nodes.nfv.VduCp
          properties: {{layer_protocols: [ipv4], order: 0}}
          requirements:
            - virtual_binding: masterNode
        workerNode_CP2:
          type: tosca.nodes.nfv.VduCp
          properties: {{layer_protocols: [ipv4], order: 0}}
          requirements:
            - virtual_binding: workerNode
            - virtual_link: internalVL
        internalVL:
          type: tosca.nodes.nfv.VnfVirtualLink
          properties:
            connectivity_type: {{layer_protocols: [ipv4]}}
            vl_profile:
              virtual_link_protocol_data:
                - associated_layer_protocol: ipv4
                  l3_protocol_data: {{ip_version: ipv4, cidr: 10.10.0.0/24, dhcp_enabled: true}}
      groups:
        workers: {{type: tosca.groups.nfv.PlacementGroup, members: [workerNode]}}
      policies:
        - scaling_aspects:
            type: tosca.policies.nfv.ScalingAspects
            properties:
              aspects:
                master_instance: {{name: master_instance, description: masters, max_scale_level: 2, step_deltas: [delta_1]}}
                worker_instance: {{name: worker_instance, description: workers, max_scale_level: 2, step_deltas: [delta_1]}}
        - master_initial_delta:
            type: tosca.policies.nfv.VduInitialDelta
            properties: {{initial_delta: {{number_of_instances: {masters}}}}}
            targets: [masterNode]
        - worker_initial_delta:
            type: tosca.policies.nfv.VduInitialDelta
            properties: {{initial_delta: {{number_of_instances: 2}}}}
            targets: [workerNode]
        - master_deltas:
            type: tosca.policies.nfv.VduScalingAspectDeltas
            properties: {{aspect: master_instance, deltas: {{delta_1: {{number_of_instances: 1}}}}}}
            targets: [masterNode]
        - worker_deltas:
            type: tosca.policies.nfv.VduScalingAspectDeltas
            properties: {{aspect: worker_instance, deltas: {{delta_1: {{number_of_instances: 1}}}}}}
            targets: [workerNode]
        - levels:
            type: tosca.policies.nfv.InstantiationLevels
            properties:
              levels:
                instantiation_level_1:
                  description: smallest
                  scale_info: {{master_instance: {{scale_level: 0}}, worker_instance: {{scale_level: 0}}}}
                instantiation_level_2:
                  description: largest
                  scale_info: {{master_instance: {{scale_level: 2}}, worker_instance: {{scale_level: 2}}}}
              default_level: instantiation_level_1
        - master_levels:
            type: tosca.policies.nfv.VduInstantiationLevels
            properties:
              levels:
                instantiation_level_1: {{number_of_instances: {masters}}}
                instantiation_level_2: {{number_of_instances: {most_masters}}}
            targets: [masterNode]
        - worker_levels:
            type: tosca.policies.nfv.VduInstantiationLevels
            properties:
              levels:
                instantiation_level_1: {{number_of_instances: 2}}
                instantiation_level_2: {{number_of_instances: 4}}
            targets: [workerNode]
        - policy_antiaffinity_worker:
            type: tosca.policies.nfv.AntiAffinityRule
            targets: [workers]
            properties: {{scope: nfvi_node}}
    """)


def flavour(
    flavour_id: str = "simple",
    *,
    masters: int = 1,
    driver_file: str = "Scripts/kubernetes_mgmt.py",
    phases: str = "instantiate_end: {implementation: mgmt-drivers-kubernetes}",
    artifact_type: str = "tosca.artifacts.Implementation.Python",
    vnf: str = "VNF",
) -> str:
    """A flavour of a cluster VNF with a group of masters and one of workers."""
    return _FLAVOUR.format(
        flavour_id=flavour_id,
        masters=masters,
        most_masters=masters + 2,
        driver_file=driver_file,
        phases=phases,
        artifact_type=artifact_type,
        vnf=vnf,
    )


MASTER_HOT = dedent("""\
    heat_template_version: 2013-05-23
    parameters:
      network: {type: string}
    resources:
      masterNode:
        type: OS::Nova::Server
        properties: {networks: [{port: {get_resource: masterNode_CP1}}]}
      masterNode_CP1:
        type: OS::Neutron::Port
        properties: {network: {get_param: network}}
    """)

WORKER_HOT = MASTER_HOT.replace("masterNode_CP1", "workerNode_CP2").replace("masterNode", "workerNode")

TOP_HOT = dedent("""\
    heat_template_version: 2013-05-23
    parameters:
      nfv: {type: json}
    resources:
      master_instance:
        type: OS::Heat::AutoScalingGroup
        properties:
          min_size: 1
          max_size: 3
          desired_capacity: 1
          resource: {type: nested_master.yaml, properties: {network: net0}}
      worker_instance:
        type: OS::Heat::AutoScalingGroup
        properties:
          min_size: 2
          max_size: 4
          desired_capacity: 2
          resource: {type: nested_worker.yaml, properties: {network: net0}}
      vip_CP:
        type: OS::Neutron::Port
        properties: {network: net0}
    """)


def base_hot(flavour_id: str = "simple") -> dict[str, str | bytes]:
    """The Heat templates of one flavour."""
    return {
        f"BaseHOT/{flavour_id}/cluster.yaml": TOP_HOT,
        f"BaseHOT/{flavour_id}/nested/nested_master.yaml": MASTER_HOT,
        f"BaseHOT/{flavour_id}/nested/nested_worker.yaml": WORKER_HOT,
    }


ONE_VNFD = """\
tosca_definitions_version: tosca_simple_yaml_1_2
imports: [etsi_nfv_sol001_common_types.yaml, etsi_nfv_sol001_vnfd_types.yaml]
node_types:
  acme.nodes.One:
    derived_from: tosca.nodes.nfv.VNF
topology_template:
  substitution_mappings:
    node_type: acme.nodes.One
    properties: {flavour_id: simple}
  node_templates:
    VNF:
      type: acme.nodes.One
      properties:
        descriptor_id: 0f0e2a66-91f4-4a6f-9d79-5a3d1c9a7a11
        provider: Acme
        product_name: One
        software_version: '1'
        descriptor_version: '1'
        flavour_id: simple
        flavour_description: one
        vnfm_info: [kubevnfm]
"""
"""A VNFD of one file."""


def v1_files() -> dict[str, str | bytes]:
    """A package as Tacker v1 users have it: a file per flavour, driver counted from the root."""
    files: dict[str, str | bytes] = {
        "Definitions/top.yaml": TOP,
        "Definitions/types.yaml": TYPES,
        "Definitions/flavour_simple.yaml": flavour(),
        "Definitions/flavour_complex.yaml": flavour("complex", masters=3),
        "Scripts/kubernetes_mgmt.py": "class KubernetesMgmtDriver: ...\n",
        "Scripts/install_k8s_cluster.sh": "#!/bin/bash\n",
        "Files/kubernetes/nfs-pv1.yaml": "kind: PersistentVolume\n",
        "UserData/k8s_cluster_user_data.py": "class KubernetesClusterUserData: ...\n",
        **base_hot("simple"),
        **base_hot("complex"),
    }
    return with_meta(files, listed=("Scripts/kubernetes_mgmt.py", "Scripts/install_k8s_cluster.sh"))


def v2_files() -> dict[str, str | bytes]:
    """A package as Tacker v2 users have it: the driver counted from Definitions/, a VNF node of any name."""
    files = v1_files()
    files.pop(META)
    files["Definitions/top.yaml"] = TOP.replace("      - file: flavour_complex.yaml\n", "").replace(
        "  - file: flavour_complex.yaml\n", ""
    )
    del files["Definitions/flavour_complex.yaml"]
    for name in [name for name in files if name.startswith("BaseHOT/complex")]:
        del files[name]
    files["Definitions/flavour_simple.yaml"] = flavour(driver_file="../Scripts/kubernetes_mgmt.py", vnf="Cluster")
    return with_meta(files)


def package(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Write a package of the given files (default: `v1_files`); return its path."""
    return zip_of(folder / "package.zip", v1_files() if files is None else files)


def raw_zip(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    """Return an archive of exactly these entries, which may be malformed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for info, content in entries:
            archive.writestr(info, content)
    return buffer.getvalue()
