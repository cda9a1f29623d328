"""``additionalParams`` of a cluster VNF: checked in full before the request is accepted (sequences.md chapter 2).

400 (InvalidInput): absent, of the wrong type or form. 422 (Unprocessable): it does not fit VNFD, Base HOT, package or
another value. Unknown attributes are accepted: KeyValuePairs are open, and packages of others carry more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import IPv4Network, ip_network
from typing import Any, Final, Literal

from kubevnfm_csar import BaseHot, Flavour
from kubevnfm_secrets import Secret
from pydantic import BaseModel, ConfigDict, Field

from kubevnfm_lcm_api.lifecycle.domain.cluster_features import HOST, PASSWORD, USER_NAME, check_features, package_file
from kubevnfm_lcm_api.lifecycle.domain.cluster_networks import (
    POD_CIDR,
    POD_PREFIXES,
    SERVICE_CIDR,
    SERVICE_PREFIXES,
    network,
    node_mask,
    refuse_overlap,
)
from kubevnfm_lcm_api.lifecycle.domain.cluster_places import FLOATING_IP, PORT, Group, Places, connection_point
from kubevnfm_lcm_api.lifecycle.domain.request_section import Section

ROOT: Final = "k8s_cluster_installation_param"
USER_DATA: Final = "lcm-operation-user-data"
USER_DATA_CLASS: Final = "lcm-operation-user-data-class"
FIRST_MINOR, LAST_MINOR = 28, 34
"""Kubernetes 1.x that the cluster driver installs; 1.28 is the first that the project publishes by minor version."""
_URL: Final = rf"https?://([A-Za-z0-9._~%!*+,=:-]+@)?{HOST}(:(\d{{1,5}}|[a-z][a-z0-9-]{{0,14}}))?/?"
"""A proxy. The port may be a service's name: the samples of two seed documents write ``host1:port1``."""
_NO_PROXY: Final = rf"(\*|\*?\.?{HOST}(:\d{{1,5}})?)"
_MIRROR: Final = r'https?://[^\s"\\\']{1,2000}'


class Part(BaseModel):
    """A part of the checked parameters."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)


class NodeGroup(Part):
    """The machines of one role: where they are found, how one logs in."""

    aspect_id: str | None
    vdu_id: str | None
    ssh_cp_name: str
    nic_cp_name: str
    username: str
    password: Secret
    count: int
    """Machines at the instantiation level."""
    most: int
    """The most that levels and scaling can bring it to."""


class MasterGroup(NodeGroup):
    """The control plane and the cluster's networks."""

    pod_cidr: str
    """Host bits masked."""
    cluster_cidr: str
    cluster_cp_name: str
    cluster_fip_name: str | None


class Proxy(Part):
    """Proxies of the machines."""

    http_proxy: Secret | None = None
    https_proxy: Secret | None = None
    no_proxy: tuple[str, ...] = ()
    k8s_node_cidr: str | None = None


class Timeouts(Part):
    """Deadlines in seconds."""

    ssh_ready: int = 600
    node_install: int = 2700
    command: int = 60
    drain: int = 300
    node_ready: int = 600


class Drain(Part):
    """How pods leave a node."""

    delete_emptydir_data: bool = True
    force: bool = False
    on_failure: str = "fail"


class ClusterParameters(Part):
    """The whole cluster configuration."""

    script_path: str
    vim_name: str | None
    """None: named after the instance."""
    master_node: MasterGroup
    worker_node: NodeGroup
    max_nodes: int
    node_mask: int
    """Prefix length of a node's part of the pod network."""
    proxy: Proxy = Proxy()
    kubernetes_version: str | None = None
    cni: str | None = None
    """The pod network's manifest in the package."""
    max_parallel_nodes: int = 10
    timeouts: Timeouts = Timeouts()
    drain: Drain = Drain()
    vrrp: dict[str, int] = Field(default_factory=dict)


def check_cluster_parameters(
    additional_params: Mapping[str, Any],
    *,
    flavour: Flavour,
    base_hot: BaseHot | None,
    file_names: Collection[str],
    api_version: Literal["v1", "v2"],
    instantiation_level_id: str | None = None,
) -> ClusterParameters:
    """Return the cluster's parameters; texts may be Secret leaves.

    ``file_names``: the paths of the package's files. What only the stack or the machines can tell is not judged here,
    nor whether a name is taken.
    Raises: InvalidInput, Unprocessable naming the field (``additionalParams/...``) and what was expected.
    """
    top = Section(additional_params, path="additionalParams")
    has_user_data = _check_top(top, base_hot, file_names, api_version)
    cluster = top.needed_section(ROOT)
    places = Places(flavour=flavour, hot=base_hot, level_id=instantiation_level_id)
    needed = _needed_group(api_version, has_user_data=has_user_data)
    sections = [cluster]

    script_path = package_file(cluster, "script_path", file_names, is_needed=True)
    assert script_path is not None
    vim_name = cluster.text("vim_name", expected="1 to 255 printable characters", pattern=r"[^\x00-\x1f\x7f]{1,255}")

    master = cluster.needed_section("master_node")
    worker = cluster.needed_section("worker_node")
    sections += [master, worker]
    masters = places.group(master, "master", needed=needed)
    workers = places.group(worker, "worker", needed=needed)
    master_facts = _node_group(master, masters)
    worker_facts = _node_group(worker, workers)

    proxy_section = cluster.section("proxy")
    proxy = Proxy() if proxy_section is None else _proxy(proxy_section)
    if proxy_section is not None:
        sections.append(proxy_section)
    pods, services = _networks(master, places, proxy)
    max_nodes = masters.most + workers.most
    master_node = MasterGroup(
        **master_facts,
        pod_cidr=str(pods),
        cluster_cidr=str(services),
        **_endpoint(
            master, masters, places, is_ssh_floating=masters.types.get(master_facts["ssh_cp_name"]) == FLOATING_IP
        ),
    )
    extensions = _extensions(cluster, sections, file_names)
    check_features(cluster, places, file_names)
    if cluster.flag("x_strict"):
        for section in sections:
            section.refuse_unknown()
    return ClusterParameters(
        script_path=script_path,
        vim_name=vim_name,
        master_node=master_node,
        worker_node=NodeGroup(**worker_facts),
        max_nodes=max_nodes,
        node_mask=node_mask(pods, nodes=max_nodes, field=master.field("pod_cidr")),
        proxy=proxy,
        **extensions,
    )


def _check_top(top: Section, hot: BaseHot | None, file_names: Collection[str], api_version: str) -> bool:
    """Check 2.1; return whether user data of the package is to be run."""
    has_user_data = top.pair(USER_DATA, USER_DATA_CLASS)
    if has_user_data:
        top.text(USER_DATA, expected="a path inside the package, ending in .py,", pattern=r"(\./)?[\w./-]+\.py")
        package_file(top, USER_DATA, file_names)
        name = top.text(USER_DATA_CLASS, expected="the name of a Python class")
        if name is None or not name.isidentifier():
            raise top.malformed(USER_DATA_CLASS, "the name of a Python class")
    elif api_version == "v2" and hot is None:
        raise top.contradiction(USER_DATA, "neither user data is named nor has the package a Base HOT for the flavour")
    top.section("nfv")
    for name in ("all", "tacker_extension_heal_include_block_storage"):
        top.flag(name)
    top.choice("is_reverse", ("True", "False"))
    for role in ("master", "worker"):
        top.pair(f"{role}_node_username", f"{role}_node_password")
    return has_user_data


def _needed_group(api_version: str, *, has_user_data: bool) -> str | None:
    """Return the attribute by which machines must be found; None: by TOSCA's names (sequences.md 2.3)."""
    if api_version == "v2":
        return "vdu_id"
    return "aspect_id" if has_user_data else None


def _node_group(section: Section, group: Group) -> dict[str, Any]:
    """Return the attributes of NodeGroup."""
    ssh = connection_point(section, "ssh_cp_name", group.types, where=group.where, kinds=(PORT, FLOATING_IP))
    if ssh is None:
        raise section.missing("ssh_cp_name", "the port or floating IP for SSH")
    nic = connection_point(section, "nic_cp_name", group.types, where=group.where, kinds=(PORT,))
    if nic is None:
        if group.types[ssh] != PORT:
            raise section.missing("nic_cp_name", "the port in the cluster's own network")
        nic = ssh
    username = section.needed_text("username", expected="a Linux user name", pattern=USER_NAME)
    password = section.needed_text("password", expected="one line of text", pattern=PASSWORD)
    return {
        "aspect_id": section.text("aspect_id", expected="a text"),
        "vdu_id": section.text("vdu_id", expected="a text"),
        "ssh_cp_name": ssh,
        "nic_cp_name": nic,
        "username": username,
        "password": Secret(password),
        "count": group.count,
        "most": group.most,
    }


def _networks(master: Section, places: Places, proxy: Proxy) -> tuple[IPv4Network, IPv4Network]:
    """Return the networks of pods and of services; they overlap neither one another nor the nodes'."""
    pods = network(master, "pod_cidr", prefixes=POD_PREFIXES) or POD_CIDR
    services = network(master, "cluster_cidr", prefixes=SERVICE_PREFIXES) or SERVICE_CIDR
    nodes = places.subnets()
    if proxy.k8s_node_cidr is not None:
        nodes.append(("the nodes' network k8s_node_cidr", IPv4Network(proxy.k8s_node_cidr)))
    refuse_overlap(master, "pod_cidr", pods, [("cluster_cidr", services), *nodes])
    refuse_overlap(master, "cluster_cidr", services, nodes)
    return pods, services


def _endpoint(master: Section, group: Group, places: Places, *, is_ssh_floating: bool) -> dict[str, str | None]:
    """Return where the API answers: the master's port, or with several masters the VIP's port in the top template."""
    is_vip = group.count > 1
    types, where = (places.top, "the top template") if is_vip else (group.types, group.where)
    name = connection_point(master, "cluster_cp_name", types, where=where, kinds=(PORT,))
    if name is None:
        raise master.missing("cluster_cp_name", "the port of the Kubernetes API")
    floating = connection_point(master, "cluster_fip_name", places.top, where="the top template", kinds=(FLOATING_IP,))
    if floating is None and is_vip and is_ssh_floating:
        raise master.missing("cluster_fip_name", "the floating IP of the Kubernetes API")
    return {"cluster_cp_name": name, "cluster_fip_name": floating}


def _proxy(section: Section) -> Proxy:
    urls = {}
    for name in ("http_proxy", "https_proxy"):
        url = section.text(name, expected="a URL http(s)://[user:password@]host[:port]", pattern=_URL)
        port = re.search(r":(\d+)/?$", url or "")
        if port is not None and not 1 <= int(port[1]) <= 65535:
            raise section.malformed(name, "a port from 1 to 65535")
        urls[name] = Secret(url) if url is not None else None
    listed = section.text("no_proxy", expected="a list of hosts and networks, divided by commas,") or ""
    entries = tuple(entry.strip() for entry in listed.split(",") if entry.strip())
    for entry in entries:
        if not re.fullmatch(_NO_PROXY, entry) and not _is_network(entry):
            raise section.malformed("no_proxy", "a list of hosts, domains, addresses and networks, divided by commas,")
    nodes = network(section, "k8s_node_cidr", prefixes=range(8, 33))
    return Proxy(**urls, no_proxy=entries, k8s_node_cidr=str(nodes) if nodes is not None else None)


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _extensions(cluster: Section, sections: list[Section], file_names: Collection[str]) -> dict[str, Any]:
    """Return the attributes ``x_...`` that are ours."""
    found: dict[str, Any] = {
        "kubernetes_version": _kubernetes_version(cluster),
        "cni": package_file(cluster, "x_cni", file_names),
    }
    cri = cluster.text("x_cri", expected="a container runtime")
    if cri not in (None, "containerd"):
        raise cluster.contradiction("x_cri", f"{cri} is not supported; containerd is")
    parallel = cluster.whole("x_max_parallel_nodes", low=1, high=100)
    if parallel is not None:
        found["max_parallel_nodes"] = parallel
    timeouts = cluster.section("x_timeouts")
    if timeouts is not None:
        sections.append(timeouts)
        given = {name: timeouts.whole(name, low=1, high=86_400) for name in Timeouts.model_fields}
        found["timeouts"] = Timeouts(**{name: value for name, value in given.items() if value is not None})
    drain = cluster.section("x_drain")
    if drain is not None:
        sections.append(drain)
        policy = {
            "delete_emptydir_data": drain.flag("delete_emptydir_data"),
            "force": drain.flag("force"),
            "on_failure": drain.choice("on_failure", ("fail", "continue")),
        }
        found["drain"] = Drain.model_validate({name: value for name, value in policy.items() if value is not None})
    vrrp = cluster.section("x_vrrp")
    if vrrp is not None:
        sections.append(vrrp)
        numbers = {"router_id": vrrp.whole("router_id", low=1, high=255)}
        numbers["prefix_len"] = vrrp.whole("prefix_len", low=1, high=128)
        found["vrrp"] = {name: number for name, number in numbers.items() if number is not None}
    mirror = cluster.section("x_mirror")
    if mirror is not None:
        sections.append(mirror)
        for name in ("apt", "apt_key", "images"):
            mirror.text(name, expected="a URL http(s)://...", pattern=_MIRROR)
    return found


def _kubernetes_version(cluster: Section) -> str | None:
    given = cluster.text("x_kubernetes_version", expected="a version such as 1.31.4")
    if given is None:
        return None
    found = re.fullmatch(r"v?(1\.(\d{1,3})\.\d{1,3})", given)
    if found is None or not FIRST_MINOR <= int(found[2]) <= LAST_MINOR:
        raise cluster.contradiction(
            "x_kubernetes_version", f"a version from 1.{FIRST_MINOR}.0 to 1.{LAST_MINOR}.x expected"
        )
    return found[1]
