"""The bodies of every request, each accepted with all attributes that are done: `test_request_attributes.py` makes the refused ones from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from packages.vm_packages import OTHER_IMAGE, TWO_POINTS
from worlds.lcm_world import sample_request

LOGIN: Final = {
    "interfaceInfo": {"endpoint": "https://127.0.0.1:5000/v3"},
    "accessInfo": {"username": "u", "password": "p", "project": "p"},
}
VIM: Final = {"vimId": "vim-1", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}
ETHERNET: Final = {
    "macAddress": "fa:16:3e:00:00:01",
    "ipAddresses": [
        {"type": "IPV4", "fixedAddresses": ["10.0.0.5"], "subnetId": "subnet"},
        {"type": "IPV4", "numDynamicAddresses": 1},
        {"type": "IPV4", "addressRange": {"minAddress": "10.0.0.9", "maxAddress": "10.0.0.12"}},
    ],
}


def a_link(cpd_id: str, config: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": f"link of {cpd_id}",
        "vimConnectionId": "vim",
        "resourceId": "net0",
        "extCps": [{"cpdId": cpd_id, "cpConfig": {f"{cpd_id}_1": config}}],
        **more,
    }


def a_port(**more: Any) -> dict[str, Any]:
    return {"cpProtocolData": [{"layerProtocol": "IP_OVER_ETHERNET", **more}]}


PORTS: Final = [
    {
        "id": "port",
        "resourceHandle": {
            "vimConnectionId": "vim",
            "resourceId": "port-of-neutron",
            "vimLevelResourceType": "OS::Neutron::Port",
        },
    }
]
LINKS: Final = [
    a_link("VDU1_CP1", a_port(ipOverEthernet=ETHERNET)),
    a_link("VDU1_CP2", {"linkPortId": "port"}, extLinkPorts=PORTS),
]
MANAGED: Final = [
    {
        "id": "m",
        "vnfVirtualLinkDescId": "internalVL",
        "vimConnectionId": "vim",
        "resourceId": "inner",
        "extManagedMultisiteVirtualLinkId": "of all sites",
    }
]
COMMON: Final = {
    "vimConnectionInfo": {"vim": {**VIM, "accessInfo": {"region": "RegionOne"}, "extra": {"interface": "public"}}},
    "additionalParams": {},
    "extensions": {"site": "there"},
    "vnfConfigurableProperties": {"isAutoscaleEnabled": True},
}
PLAIN_LINK: Final = [a_link("VDU1_CP1", a_port())]
PRODUCTS: Final = [
    {
        "vnfProvider": "kubevnfm",
        "vnfProducts": [
            {"vnfProductName": "p", "versions": [{"vnfSoftwareVersion": "1", "vnfdVersions": ["1"]}]},
        ],
    }
]
CREDENTIALS: Final = {"clientId": "c", "clientPassword": "p", "tokenEndpoint": "http://127.0.0.1:9/token"}
AUTHENTICATION: Final = {
    "authType": ["BASIC", "OAUTH2_CLIENT_CREDENTIALS"],
    "paramsBasic": {"userName": "u", "password": "p"},
    "paramsOauth2ClientCredentials": CREDENTIALS,
    "paramsOauth2ClientCert": {
        "clientId": "c",
        "certificateRef": {"type": "x5t#S256", "value": "x"},
        "tokenEndpoint": "http://127.0.0.1:9/token",
    },
}
OPERATION: Final = "VnfLcmOperationOccurrenceNotification"


@dataclass(frozen=True)
class Sent:
    """A body that is accepted; the requests that are refused are made from it."""

    type: str
    body: Mapping[str, Any]
    path: str
    """``{new}``, ``{up}`` and so on: a VNF in that state; ``{package}``: a new package."""
    method: str = "POST"
    versions: Sequence[str] = ("v1", "v2")
    kind: str = "machines"
    warned: Mapping[str, Any] = field(default_factory=dict)
    """The members that the page says are not used, by the place in the body, with a value each."""


def a_task(name: str, task: str, body: Mapping[str, Any], on: str = "up", **more: Any) -> Sent:
    return Sent(name, body, f"/vnf_instances/{{{on}}}/{task}", **more)


HANDLE: Final = {
    "vimConnectionId": "vim",
    "resourceProviderId": "p",
    "resourceId": "image-1",
    "vimLevelResourceType": "OS::Glance::Image",
}
MOMENTS: Final = {"creationStartedAt": "2026-11-27T10:00:00Z", "creationFinishedAt": "2026-11-27T10:01:00Z"}
INSTANCE: Final = {
    "id": "i",
    "vnfdId": "d",
    "vnfProvider": "p",
    "vnfProductName": "n",
    "vnfSoftwareVersion": "1",
    "vnfdVersion": "1",
    "instantiationState": "INSTANTIATED",
    "_links": {"self": {"href": "http://127.0.0.1:9/"}},
}
OF_A_PACKAGE: Final = {
    "vnfSnapshotPkgId": "p",
    "vnfSnapshot": {
        "id": "s",
        "vnfInstanceId": "i",
        "vnfdId": "d",
        "vnfInstance": INSTANCE,
        "userDefinedData": {"a": "b"},
        **MOMENTS,
        "vnfcSnapshots": [
            {
                "id": "c",
                "vnfcInstanceId": "v",
                "vnfcResourceInfoId": "v",
                "userDefinedData": {"a": "b"},
                **MOMENTS,
                "computeSnapshotResource": HANDLE,
                "storageSnapshotResources": [{"storageResourceId": "d", "storageSnapshotResource": HANDLE}],
            }
        ],
    },
}
FORCEFUL: Final = {"terminationType": "FORCEFUL", "additionalParams": {}}
BODIES: Final = (
    Sent(
        "CreateVnfRequest",
        {"vnfdId": TWO_POINTS, "vnfInstanceName": "n", "vnfInstanceDescription": "d", "metadata": {"a": "b"}},
        "/vnf_instances",
    ),
    a_task(
        "InstantiateVnfRequest",
        "instantiate",
        {
            "flavourId": "simple",
            "instantiationLevelId": "one",
            "localizationLanguage": "en",
            "extVirtualLinks": LINKS,
            "extManagedVirtualLinks": MANAGED,
            **COMMON,
        },
        "new",
        warned={
            "extVirtualLinks/1/extLinkPorts/0/resourceHandle/vimLevelResourceType": "LINKPORT",
            "extVirtualLinks/1/extLinkPorts/0/resourceHandle/resourceProviderId": "x",
            "extVirtualLinks/0/resourceProviderId": "x",
            "extManagedVirtualLinks/0/resourceProviderId": "x",
            "vimConnectionInfo/vim/vimConnectionId": "x",
            "vimConnectionInfo/vim/extra/area": "x",
            "additionalParams/unread": "x",
        },
    ),
    a_task(
        "InstantiateVnfRequest",
        "instantiate",
        {"flavourId": "simple", "extVirtualLinks": LINKS, "vimConnectionInfo": {"vim": {**VIM, **LOGIN}}},
        "new",
    ),
    a_task(
        "ScaleVnfRequest",
        "scale",
        {"type": "SCALE_OUT", "aspectId": "VDU1_scale", "numberOfSteps": 1, "additionalParams": {}},
        warned={"additionalParams/unread": "x"},
    ),
    a_task("ScaleVnfToLevelRequest", "scale_to_level", {"instantiationLevelId": "three", "additionalParams": {}}),
    a_task(
        "ScaleVnfToLevelRequest",
        "scale_to_level",
        {"scaleInfo": [{"aspectId": "VDU1_scale", "vnfdId": TWO_POINTS, "scaleLevel": 0}]},
    ),
    a_task("ScaleVnfToLevelRequest", "scale_to_level", {"scaleInfo": [{"aspectId": "VDU1_scale", "scaleToLevel": 0}]}),
    a_task("HealVnfRequest", "heal", {"cause": "c", "vnfcInstanceId": ["{vnfc}"], "additionalParams": {}}),
    a_task(
        "OperateVnfRequest",
        "operate",
        {
            "changeStateTo": "STOPPED",
            "stopType": "GRACEFUL",
            "gracefulStopTimeout": 0,
            "vnfcInstanceId": ["{vnfc}"],
            "additionalParams": {},
        },
    ),
    a_task(
        "OperateVnfRequest",
        "operate",
        {"changeStateTo": "STOPPED", "stopType": "FORCEFUL"},
        warned={"gracefulStopTimeout": 5},
    ),
    a_task(
        "ChangeExtVnfConnectivityRequest",
        "change_ext_conn",
        {
            "extVirtualLinks": [a_link("VDU1_CP1", a_port(), resourceId="net2")],
            "vimConnectionInfo": {"vim": {**VIM, **LOGIN}},
            "additionalParams": {},
        },
        warned={"vimConnectionInfo/vim/vimConnectionId": "x"},
    ),
    Sent(
        "VnfInfoModificationRequest",
        {
            "vnfInstanceName": "n",
            "vnfInstanceDescription": "d",
            "vnfdId": TWO_POINTS,
            "metadata": {"a": "b"},
            "extensions": COMMON["extensions"],
            "vnfConfigurableProperties": COMMON["vnfConfigurableProperties"],
            "vimConnectionInfo": {"vim": {**VIM, **LOGIN}},
            "vnfcInfoModifications": [{"id": "{vnfc}", "vnfcConfigurableProperties": {"a": "b"}}],
        },
        "/vnf_instances/{up}",
        "PATCH",
        warned={"vimConnectionInfo/vim/vimConnectionId": "x"},
    ),
    Sent("VnfInfoModificationRequest", {"vnfPkgId": "{two_points}"}, "/vnf_instances/{up}", "PATCH", versions=("v1",)),
    a_task(
        "ChangeVnfFlavourRequest",
        "change_flavour",
        {"newFlavourId": "large", "instantiationLevelId": "one", "extVirtualLinks": PLAIN_LINK, **COMMON},
        "flavours",
    ),
    a_task(
        "ChangeCurrentVnfPkgRequest",
        "change_vnfpkg",
        {"vnfdId": OTHER_IMAGE, "extVirtualLinks": PLAIN_LINK, **COMMON},
        "vm",
        versions=("v2",),
    ),
    a_task(
        "TerminateVnfRequest",
        "terminate",
        {"terminationType": "GRACEFUL", "gracefulTerminationTimeout": 0, "additionalParams": {}},
    ),
    a_task("TerminateVnfRequest", "terminate", FORCEFUL, "up", warned={"gracefulTerminationTimeout": 5}),
    a_task(
        "InstantiateVnfRequest",
        "instantiate",
        {
            **sample_request("cnf", "instantiate"),
            "extVirtualLinks": [
                {
                    "id": "outer",
                    "vimConnectionId": "cluster",
                    "resourceId": "link-1",
                    "extCps": [
                        {
                            "cpdId": "oam",
                            "cpConfig": {
                                "oam_1": a_port(
                                    ipOverEthernet={
                                        "macAddress": "fa:16:3e:00:00:01",
                                        "ipAddresses": [{"type": "IPV4"}, {"type": "IPV4", "numDynamicAddresses": 1}],
                                    }
                                ),
                            },
                        }
                    ],
                },
            ],
            "extManagedVirtualLinks": [
                {"id": "m", "vnfVirtualLinkDescId": "inner", "vimConnectionId": "cluster", "resourceId": "link-1"},
            ],
        },
        "cnf",
        kind="CNF",
        warned={"additionalParams/unread": "x", "vimConnectionInfo/cluster/extra/area": "x"},
    ),
    Sent("CreateVnfSnapshotInfoRequest", OF_A_PACKAGE, "/vnf_snapshots", versions=("v2",)),
    Sent("VnfSnapshotInfoModificationRequest", OF_A_PACKAGE, "/vnf_snapshots/{info}", "PATCH", versions=("v2",)),
    a_task(
        "CreateVnfSnapshotRequest",
        "create_snapshot",
        {"vnfSnapshotInfoId": "{info}", "additionalParams": {}, "userDefinedData": {"a": "b"}},
        versions=("v2",),
        warned={"additionalParams/unread": "x"},
    ),
    a_task(
        "RevertToVnfSnapshotRequest",
        "revert_to_snapshot",
        {"vnfSnapshotInfoId": "{taken}", "additionalParams": {}},
        versions=("v2",),
        warned={"additionalParams/unread": "x"},
    ),
    Sent("CancelMode", {"cancelMode": "GRACEFUL"}, "/vnf_lcm_op_occs/{running}/cancel"),
    Sent(
        "LccnSubscriptionRequest",
        {
            "callbackUri": "http://127.0.0.1:9/",
            "verbosity": "FULL",
            "authentication": AUTHENTICATION,
            "filter": {
                "vnfInstanceSubscriptionFilter": {
                    "vnfdIds": ["x"],
                    "vnfProductsFromProviders": PRODUCTS,
                    "vnfInstanceIds": ["x"],
                    "vnfInstanceNames": ["x"],
                },
                "notificationTypes": [OPERATION],
                "operationTypes": ["SCALE"],
                "operationStates": ["COMPLETED"],
            },
        },
        "/subscriptions",
    ),
    Sent(
        "PkgmSubscriptionRequest",
        {
            "callbackUri": "http://127.0.0.1:9/",
            "authentication": AUTHENTICATION,
            "filter": {
                "vnfdId": ["x"],
                "vnfProductsFromProviders": PRODUCTS,
                "vnfPkgId": ["x"],
                "vnfmInfo": ["x"],
                "notificationTypes": ["VnfPackageChangeNotification"],
                "operationalState": ["ENABLED"],
                "usageState": ["IN_USE"],
            },
        },
        "/vnfpkgm/subscriptions",
    ),
    Sent("CreateVnfPkgInfoRequest", {"userDefinedData": {"a": "b"}}, "/vnfpkgm/vnf_packages"),
    Sent(
        "VnfPkgInfoModifications",
        {"operationalState": "DISABLED", "userDefinedData": {"a": "b"}},
        "/vnfpkgm/vnf_packages/{enabled}",
        "PATCH",
    ),
    Sent(
        "ExternalArtifactsAccessConfig",
        {
            "artifact": [
                {
                    "artifactUri": "http://127.0.0.1:9/a",
                    "overrideUri": "http://127.0.0.1:9/b",
                    "authType": "OAUTH2_CLIENT_CREDENTIALS",
                    "paramsOauth2ClientCredentials": CREDENTIALS,
                },
                {
                    "artifactUri": "http://127.0.0.1:9/c",
                    "authType": "BASIC",
                    "paramsBasic": {"userName": "u", "password": "p"},
                },
            ]
        },
        "/vnfpkgm/vnf_packages/{package}/ext_artifacts_access",
        "PUT",
    ),
    Sent(
        "UploadVnfPackageFromUriRequest",
        {
            "addressInformation": "http://127.0.0.1:9/",
            "authType": "OAUTH2_CLIENT_CREDENTIALS",
            "paramsOauth2ClientCredentials": CREDENTIALS,
        },
        "/vnfpkgm/vnf_packages/{package}/package_content/upload_from_uri",
    ),
    Sent(
        "UploadVnfPackageFromUriRequest",
        {"addressInformation": "http://127.0.0.1:9/", "authType": "BASIC", "userName": "u", "password": "p"},
        "/vnfpkgm/vnf_packages/{package}/package_content/upload_from_uri",
    ),
)
