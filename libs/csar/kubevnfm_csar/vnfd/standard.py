"""The types of the standards, which packages name without holding them: parents, properties, requirements, capabilities.

All editions of SOL001 from V2.5.1 to V4.4.1 are in one table, with what a VNFD can use of the TOSCA Simple Profile. A name that is
in none of them is a warning; a package that holds a newer type file adds its own definitions.

Source: ETSI GS NFV-SOL 001, clause 6 and annex A; TOSCA Simple Profile in YAML 1.0 to 1.3, clause 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

_PREFIX: Final = {
    "node": "tosca.nodes.", "data": "tosca.datatypes.", "capability": "tosca.capabilities.", "policy": "tosca.policies.",
    "group": "tosca.groups.", "artifact": "tosca.artifacts.", "interface": "tosca.interfaces.",
    "relationship": "tosca.relationships.",
}  # fmt: skip
_TABLE: Final = """
node Root < - ; dependency ; feature=Node
node nfv.VNF < Root : descriptor_id ext_invariant_id descriptor_version provider product_name software_version
  product_info_name product_info_description vnfm_info localization_languages default_localization_language
  configurable_properties=VnfConfigurableProperties modifiable_attributes=VnfInfoModifiableAttributes
  lcm_operations_configuration=VnfLcmOperationsConfiguration monitoring_parameters=*VnfMonitoringParameter flavour_id
  flavour_description vnf_profile=VnfProfile ; virtual_link
node nfv.Cp < Root : layer_protocols=[](ethernet|mpls|odu2|ipv4|ipv6|pseudo_wire|pseudo-wire)
  ip_stack_mode role description protocol=[]CpProtocolData trunk_mode? security_group_rule
node nfv.VnfExtCp < nfv.Cp : virtual_network_interface_requirements=[]VirtualNetworkInterfaceRequirements
  ; external_virtual_link internal_virtual_link virtual_link
node nfv.VduCp < nfv.Cp : bitrate_requirement order vnic_type
  virtual_network_interface_requirements=[]VirtualNetworkInterfaceRequirements
  ; virtual_link virtual_binding ; trunk_binding=nfv.TrunkBindable
node nfv.VduSubCp < nfv.VduCp : segmentation_type segmentation_id ; trunk_binding
node nfv.VipCp < nfv.Cp : dedicated_ip_address? vip_function ; target virtual_link
node nfv.VirtualCp < nfv.Cp : additionalServiceData=[]AdditionalServiceData additional_service_data=[]AdditionalServiceData
  address_pool_name_configurable? ; target virtual_link
node nfv.Vdu.Compute < Root : name description boot_order? nfvi_constraints monitoring_parameters=*VnfcMonitoringParameter
  configurable_properties=VnfcConfigurableProperties vdu_profile=VduProfile sw_image_data=SwImageData boot_data
  inject_files=*InjectFile ; virtual_storage ; virtual_compute=nfv.VirtualCompute virtual_binding=nfv.VirtualBindable
node nfv.Vdu.OsContainer < Root : name description requested_cpu_resources cpu_resource_limit requested_memory_resources
  memory_resource_limit requested_ephemeral_storage_resources ephemeral_storage_resource_limit
  extended_resource_requests=*ExtendedResourceData huge_pages_resources=[]Hugepages
  cpu_pinning_requirements=VirtualCpuPinning sw_image_data=SwImageData ; - ; container_deployable=nfv.ContainerDeployable
node nfv.Vdu.OsContainerDeployableUnit < Root : name description logical_node=*LogicalNodeData
  requested_additional_capabilities=*RequestedAdditionalCapability nfvi_constraints
  monitoring_parameters=*VnfcMonitoringParameter configurable_properties=VnfcConfigurableProperties vdu_profile=VduProfile
  mcio_constraint_params mcio_identification_data=McioIdentificationData sw_image_data=SwImageData
  ; virtual_storage container ; virtual_binding=nfv.VirtualBindable associable=nfv.AssociableVdu
node nfv.Mciop < Root ; associatedVdu associated_vdu
node nfv.Vdu.VirtualBlockStorage < Root : virtual_block_storage_data=VirtualBlockStorageData sw_image_data=SwImageData
  per_vnfc_instance? nfvi_maintenance_info=NfviMaintenanceInfo ; - ; virtual_storage=nfv.VirtualStorage
node nfv.Vdu.VirtualObjectStorage < Root : virtual_object_storage_data=VirtualObjectStorageData per_vnfc_instance?
  nfvi_maintenance_info=NfviMaintenanceInfo ; - ; virtual_storage=nfv.VirtualStorage
node nfv.Vdu.VirtualFileStorage < Root : virtual_file_storage_data=VirtualFileStorageData per_vnfc_instance?
  nfvi_maintenance_info=NfviMaintenanceInfo ; virtual_link ; virtual_storage=nfv.VirtualStorage
node nfv.VirtualBlockStorage < nfv.Vdu.VirtualBlockStorage
node nfv.VirtualObjectStorage < nfv.Vdu.VirtualObjectStorage
node nfv.VirtualFileStorage < nfv.Vdu.VirtualFileStorage
node nfv.VnfVirtualLink < Root : connectivity_type=ConnectivityType description test_access vl_profile=VlProfile
  monitoring_parameters=*VirtualLinkMonitoringParameter nfvi_maintenance_info=NfviMaintenanceInfo externally_managed
  ; - ; virtual_linkable=nfv.VirtualLinkable
node Compute < Root **
node SoftwareComponent < Root **
node WebServer < SoftwareComponent **
node WebApplication < Root **
node DBMS < SoftwareComponent **
node Database < Root **
node LoadBalancer < Root **
node BlockStorage < Root **
node ObjectStorage < Root **
node Abstract.Compute < Root **
node Abstract.Storage < Root **
node Storage.BlockStorage < Abstract.Storage **
node Storage.ObjectStorage < Abstract.Storage **
node Container.Runtime < SoftwareComponent **
node Container.Application < Root **
node network.Network < Root **
node network.Port < Root **
data Root < -
data Credential < Root : protocol token_type token keys user
data json < -
data xml < -
data TimeInterval < Root : start_time end_time
data network.NetworkInfo < Root : network_name network_id addresses
data network.PortInfo < Root : port_name port_id network_id mac_address addresses
data network.PortDef < -
data network.PortSpec < Root : protocol source source_range target target_range
data nfv.L2AddressData < Root : mac_address_assignment?
data nfv.L3AddressData < Root : ip_address_assignment? ip_address_assignment_subtype floating_ip_activated?
  ip_address_type=(ipv4|ipv6)
  number_of_ip_address fixed_ip_address
data nfv.AddressData < Root : address_type=(mac_address|ip_address) l2_address_data=L2AddressData l3_address_data=L3AddressData
data nfv.ConnectivityType < Root : layer_protocols=[](ethernet|mpls|odu2|ipv4|ipv6|pseudo_wire|pseudo-wire) flow_pattern
data nfv.LinkBitrateRequirements < Root : root leaf
data nfv.CpProtocolData < Root : associated_layer_protocol=(ethernet|mpls|odu2|ipv4|ipv6|pseudo_wire|pseudo-wire)
  address_data=*AddressData
data nfv.VnfProfile < Root : instantiation_level target_vnf_scale_level_info={}ScaleInfo min_number_of_instances
  max_number_of_instances service_availability_level version_dependency=[]VersionDependency
data nfv.VersionDependency < Root : dependent_constituent_id version_dependency_statement=[]VersionDependencyStatement
data nfv.VersionDependencyStatement < Root : descriptor_id
data nfv.Qos < Root : latency packet_delay_variation packet_loss_ratio priority
data nfv.VirtualNetworkInterfaceRequirements < Root : name description support_mandatory? network_interface_requirements
  nic_io_requirements=LogicalNodeData
data nfv.RequestedAdditionalCapability < Root : requested_additional_capability_name support_mandatory?
  min_requested_additional_capability_version preferred_requested_additional_capability_version target_performance_parameters
data nfv.VirtualMemory < Root : virtual_mem_size virtual_mem_oversubscription_policy vdu_mem_requirements numa_enabled?
  huge_pages_requirements=[]Hugepages
data nfv.VirtualCpu < Root : cpu_architecture num_virtual_cpu virtual_cpu_clock virtual_cpu_oversubscription_policy
  vdu_cpu_requirements virtual_cpu_pinning=VirtualCpuPinning
data nfv.VirtualCpuPinning < Root : virtual_cpu_pinning_policy=(static|dynamic) virtual_cpu_pinning_rule virtual_cpu_pinning_rules
data nfv.VnfcConfigurableProperties < Root : additional_vnfc_configurable_properties *
data nfv.VnfcAdditionalConfigurableProperties < Root *
data nfv.VduProfile < Root : min_number_of_instances max_number_of_instances nfvi_maintenance_info=NfviMaintenanceInfo
data nfv.VlProfile < Root : max_bitrate_requirements=LinkBitrateRequirements min_bitrate_requirements=LinkBitrateRequirements
  qos=Qos virtual_link_protocol_data=[]VirtualLinkProtocolData service_availability_level
data nfv.VirtualLinkProtocolData < Root : associated_layer_protocol=(ethernet|mpls|odu2|ipv4|ipv6|pseudo_wire|pseudo-wire)
  l2_protocol_data=L2ProtocolData
  l3_protocol_data=L3ProtocolData
data nfv.L2ProtocolData < Root : name network_type vlan_transparent? mtu segmentation_id
data nfv.L3ProtocolData < Root : name ip_version=(ipv4|ipv6) cidr ip_allocation_pools=[]IpAllocationPool gateway_ip dhcp_enabled?
  ipv6_address_mode=(slaac|dhcpv6-stateful|dhcpv6-stateless)
data nfv.IpAllocationPool < Root : start_ip_address end_ip_address
data nfv.InstantiationLevel < Root : description scale_info={}ScaleInfo
data nfv.VduLevel < Root : number_of_instances
data nfv.VipCpLevel < Root : number_of_instances
data nfv.VnfLcmOperationsConfiguration < Root : instantiate scale scale_to_level change_flavour heal terminate operate
  change_ext_connectivity change_current_package create_snapshot revert_to_snapshot *
data nfv.VnfInstantiateOperationConfiguration < Root : target_scale_levels_supported? *
data nfv.VnfScaleOperationConfiguration < Root : scaling_by_more_than_one_step_supported? *
data nfv.VnfScaleToLevelOperationConfiguration < Root : arbitrary_target_levels_supported? *
data nfv.VnfChangeFlavourOperationConfiguration < Root *
data nfv.VnfHealOperationConfiguration < Root : causes *
data nfv.VnfTerminateOperationConfiguration < Root : min_graceful_termination_timeout
  max_recommended_graceful_termination_timeout *
data nfv.VnfOperateOperationConfiguration < Root : min_graceful_stop_timeout max_recommended_graceful_stop_timeout *
data nfv.VnfChangeExtConnectivityOperationConfiguration < Root *
data nfv.VnfChangeCurrentPackageOperationConfiguration < Root *
data nfv.VnfCreateSnapshotOperationConfiguration < Root *
data nfv.VnfRevertToSnapshotOperationConfiguration < Root *
data nfv.VnfOperationAdditionalParameters < Root *
data nfv.ScaleInfo < Root : scale_level
data nfv.ScalingAspect < Root : name description max_scale_level step_deltas
data nfv.VnfConfigurableProperties < Root : is_autoscale_enabled? is_autoheal_enabled? vnfm_interface_info=[]VnfmInterfaceInfo
  vnfm_oauth_server_info vnf_oauth_server_info additional_configurable_properties
data nfv.VnfAdditionalConfigurableProperties < Root : is_writable_anytime? *
data nfv.VnfInfoModifiableAttributes < Root : extensions metadata
data nfv.VnfInfoModifiableAttributesExtensions < Root *
data nfv.VnfInfoModifiableAttributesMetadata < Root *
data nfv.LogicalNodeData < Root : logical_node_requirements
data nfv.SwImageData < Root : name version provider checksum=*ChecksumData container_format disk_format min_disk min_ram size
  operating_system supported_virtualisation_environments sw_image
data nfv.ChecksumData < Root : algorithm hash
data nfv.VirtualBlockStorageData < Root : size_of_storage vdu_storage_requirements rdma_enabled?
data nfv.VirtualObjectStorageData < Root : max_size_of_storage
data nfv.VirtualFileStorageData < Root : size_of_storage file_system_protocol
data nfv.VirtualLinkBitrateLevel < Root : bitrate_requirements=LinkBitrateRequirements
data nfv.VnfMonitoringParameter < Root : name performance_metric collection_period
data nfv.VnfcMonitoringParameter < Root : name performance_metric collection_period
data nfv.VirtualLinkMonitoringParameter < Root : name performance_metric collection_period
data nfv.InterfaceDetails < Root : uri_components=UriComponents interface_specific_data
data nfv.UriComponents < Root : scheme authority=UriAuthority path query fragment
data nfv.UriAuthority < Root : user_info host port
data nfv.VnfmInterfaceInfo < Root : interface_name details=InterfaceDetails credentials
data nfv.OauthServerInfo < Root *
data nfv.BootData < Root : vim_specific_properties kvp_data=KvpData content_or_file_data=ContentOrFileData
data nfv.KvpData < Root : data
data nfv.ContentOrFileData < Root : data content source_path destination_path
data nfv.BootDataVimSpecificProperties < Root : vim_type properties
data nfv.InjectFile < Root : source_path dest_path
data nfv.VnfPackageChangeSelector < Root : source_descriptor_id destination_descriptor_id source_flavour_id
data nfv.VnfPackageChangeComponentMapping < Root : component_type source_id destination_id description
data nfv.ServicePortData < Root : name protocol port portConfigurable? port_configurable?
data nfv.ServiceData < Root : host path
data nfv.AdditionalServiceData < Root : portData=[]ServicePortData port_data=[]ServicePortData serviceData service_data
data nfv.VnfLcmOpCoord < Root : description endpoint_type coordination_stage input_parameters output_parameters
data nfv.InputOpCoordParams < Root *
data nfv.OutputOpCoordParams < Root *
data nfv.ExtendedResourceData < Root : extended_resource amount
data nfv.Hugepages < Root : hugepage_size requested_size
data nfv.MaxNumberOfImpactedInstances < Root : group_size max_number_of_impacted_instances
data nfv.MinNumberOfPreservedInstances < Root : group_size min_number_of_preserved_instances
data nfv.NfviMaintenanceInfo < Root : impact_notification_lead_time is_impact_mitigation_requested? supported_migration_type
  max_undetectable_interruption_time min_recovery_time_between_impacts
  max_number_of_impacted_instances=[]MaxNumberOfImpactedInstances
  min_number_of_preserved_instances=[]MinNumberOfPreservedInstances
data nfv.McioIdentificationData < Root : name type
capability Root < -
capability Node < Root
capability Container < Root **
capability Compute < Container **
capability Storage < Root **
capability Network < Root **
capability Endpoint < Root **
capability Endpoint.Public < Endpoint
capability Endpoint.Admin < Endpoint
capability Endpoint.Database < Endpoint
capability Attachment < Root
capability OperatingSystem < Root **
capability Scalable < Root **
capability network.Bindable < Node
capability network.Linkable < Node
capability nfv.VirtualLinkable < Node
capability nfv.VirtualBindable < Node
capability nfv.TrunkBindable < Node
capability nfv.ContainerDeployable < Node
capability nfv.AssociableVdu < Node
capability nfv.VirtualStorage < Root
capability nfv.VirtualCompute < Node : logical_node=*LogicalNodeData
  requested_additional_capabilities=*RequestedAdditionalCapability compute_requirements virtual_memory=VirtualMemory
  virtual_cpu=VirtualCpu virtual_local_storage=[]VirtualBlockStorageData
policy Root < -
policy Placement < Root
policy Scaling < Root **
policy Update < Root **
policy Performance < Root **
policy nfv.InstantiationLevels < Root : levels={}InstantiationLevel default_level
policy nfv.VduInstantiationLevels < Root : levels={}VduLevel
policy nfv.VirtualLinkInstantiationLevels < Root : levels={}VirtualLinkBitrateLevel
policy nfv.VipCpInstantiationLevels < Root : levels={}VipCpLevel
policy nfv.ScalingAspects < Root : aspects={}ScalingAspect
policy nfv.VduScalingAspectDeltas < Root : aspect deltas={}VduLevel
policy nfv.VirtualLinkBitrateScalingAspectDeltas < Root : aspect deltas={}VirtualLinkBitrateLevel
policy nfv.VipCpScalingAspectDeltas < Root : aspect deltas={}VipCpLevel
policy nfv.VduInitialDelta < Root : initial_delta=VduLevel
policy nfv.VirtualLinkBitrateInitialDelta < Root : initial_delta=VirtualLinkBitrateLevel
policy nfv.VipCpInitialDelta < Root : initial_delta=VipCpLevel
policy nfv.AffinityRule < Placement : scope nfvi_maintenance_group_info=NfviMaintenanceInfo
policy nfv.AntiAffinityRule < Placement : scope nfvi_maintenance_group_info=NfviMaintenanceInfo
policy nfv.Abstract.SecurityGroupRule < Root : description direction ether_type protocol port_range_min port_range_max
policy nfv.SecurityGroupRule < nfv.Abstract.SecurityGroupRule
policy nfv.SupportedVnfInterface < Root : interface_name details=InterfaceDetails
policy nfv.VnfIndicator < Root : source
policy nfv.VnfPackageChange < Root : selector=[]VnfPackageChangeSelector modification_qualifier
  additional_modification_description component_mappings=[]VnfPackageChangeComponentMapping destination_flavour_id actions
  referenced_coordination_actions
policy nfv.LcmCoordinationAction < Root : action_name action
policy nfv.LcmCoordinationsForLcmOperation < Root : vnf_lcm_operation actions referenced_coordination_actions
group Root < -
group nfv.PlacementGroup < Root : description
artifact Root < -
artifact File < Root
artifact Deployment < Root
artifact Deployment.Image < Deployment
artifact Deployment.Image.VM < Deployment.Image
artifact Deployment.Image.Container.Docker < Deployment.Image
artifact Implementation < Root
artifact Implementation.Bash < Implementation
artifact Implementation.Python < Implementation
artifact Implementation.nfv.Mistral < Implementation
artifact nfv.HelmChart < File
artifact nfv.SwImage < Deployment.Image : name version provider checksum=*ChecksumData container_format disk_format min_disk
  min_ram size operating_system supported_virtualisation_environments
interface Root < -
interface node.lifecycle.Standard < Root
interface relationship.Configure < Root
interface nfv.Vnflcm < Root
interface nfv.VnfIndicator < Root *
interface nfv.ChangeCurrentVnfPackage < Root *
relationship Root < -
relationship DependsOn < Root
relationship HostedOn < Root
relationship ConnectsTo < Root
relationship AttachesTo < Root
relationship RoutesTo < ConnectsTo
relationship network.LinksTo < DependsOn
relationship network.BindsTo < DependsOn
relationship nfv.VirtualLinksTo < DependsOn
relationship nfv.VipVirtualLinksTo < DependsOn
relationship nfv.VirtualBindsTo < DependsOn
relationship nfv.TrunkBindsTo < DependsOn
relationship nfv.AttachesTo < Root
relationship nfv.DeploysTo < DependsOn
relationship nfv.MciopAssociates < DependsOn
"""
"""``kind name < parent : properties ; requirements ; capabilities``, ``*`` at the end of the properties: and others, unless a derived type
lists them; ``**``: and others, of derived types as well.

A property is ``name``, ``name?`` (a boolean), ``name=T`` (of the data type nfv.T), ``name=[]T`` (a list of it), ``name={}T`` (a map) or
``name=*T`` (a list in one edition, a map or a single one in another). ``(a|b)`` in place of T: one of these words.
"""

EITHER: Final = "list or map"
"""The type of a property that editions have as a list, as a map and as a single value."""
OPEN: Final = "open"
"""Key of a definition: ``*`` if it has more properties than it lists, ``**`` if derived types have them as well."""
_CONTAINER: Final = {"[]": "list", "{}": "map"}


def _definitions() -> Iterator[tuple[str, JsonMapping]]:
    # A line that begins with a blank continues the one before.
    for line in _TABLE.replace("\n  ", " ").strip().splitlines():
        kind, _, rest = line.partition(" ")
        head, *parts = (part.split() for part in rest.split(";"))
        name, _, parent, *properties = (word for word in head if word != ":")
        requirements, capabilities = (*parts, [], [])[:2]
        prefix = _PREFIX[kind]
        yield (
            prefix + name,
            {
                **({"derived_from": prefix + parent} if parent != "-" else {}),
                OPEN: next((word for word in properties if word in ("*", "**")), ""),
                "properties": dict(_property(word) for word in properties if word not in ("*", "**")),
                "requirements": [{word: {}} for word in requirements if word != "-"],
                "capabilities": {
                    word: {"type": _PREFIX["capability"] + kind_of}
                    for word, _, kind_of in (each.partition("=") for each in capabilities)
                },
            },
        )


def _property(word: str) -> tuple[str, JsonMapping]:
    name, _, kind = word.partition("=")
    if not kind:
        return (name[:-1], {"type": "boolean"}) if name.endswith("?") else (name, {})
    container, entry = _CONTAINER.get(kind[:2]), kind.lstrip("[]{}*")
    schema: dict[str, Any] = {"type": f"{_PREFIX['data']}nfv.{entry}"}
    if entry.startswith("("):
        schema = {"type": "string", "constraints": [{"valid_values": entry.strip("()").split("|")}]}
    if kind.startswith("*"):
        return name, {"type": EITHER, "entry_schema": schema}
    return name, {"type": container, "entry_schema": schema} if container else schema


STANDARD: Final = dict(_definitions())
"""The definition of each type in the form of TOSCA's type definitions, by its full name."""
