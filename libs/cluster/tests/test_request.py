"""Reading the parameters of a cluster: forms, defaults, errors, and what is stored or sealed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from ipaddress import IPv4Network

import pytest
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters
from kubevnfm_cluster.registry_vnf import REGISTRY_VNF
from kubevnfm_cluster.request import read_cluster_parameters, read_request
from kubevnfm_cluster.unread import unread_parameters, unread_registry
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import KeyRing, Secret, hide, opened, sealed, sealing
from pydantic import BaseModel

RING = KeyRing([b"1" * 32])
NO_CHANGES: Mapping[str, object] = {}
MINIMAL: Mapping[str, object] = {
    "script_path": "./Scripts/install.sh",
    "master_node": {
        "ssh_cp_name": "masterNode_CP1",
        "cluster_cp_name": "masterNode_CP1",
        "username": "ubuntu",
        "password": "hidden-word",
    },
    "worker_node": {"ssh_cp_name": "workerNode_CP2", "username": "ubuntu", "password": "hidden-word"},
}


class Carrier(BaseModel):
    """A message."""

    cluster: ClusterParameters


def request(changes: Mapping[str, object] = NO_CHANGES, others: Mapping[str, object] = NO_CHANGES) -> dict[str, object]:
    """Return additionalParams; a change's key is the attribute's path, None removes the attribute."""
    cluster: dict[str, object] = deepcopy(dict(MINIMAL))
    for path, value in changes.items():
        *parents, name = path.split("/")
        place = cluster
        for parent in parents:
            inner = place.setdefault(parent, {})
            assert isinstance(inner, dict)
            place = inner
        place[name] = value
    return {CLUSTER: cluster} | dict(others)


def test_what_is_left_out_has_the_documented_defaults() -> None:
    found = read_request(request())
    assert found.script_path == "Scripts/install.sh"
    assert found.master_node.pod_cidr == IPv4Network("192.168.0.0/16")
    assert found.master_node.cluster_cidr == IPv4Network("10.96.0.0/12")
    assert (found.x_max_parallel_nodes, found.x_timeouts.ssh_ready, found.x_timeouts.node_install) == (10, 600, 2700)
    assert (found.vim_name, found.x_kubernetes_version, found.proxy.http_proxy) == (None, None, None)
    assert found.network_manifest == "Files/kubernetes/cni.yaml"
    assert (found.x_drain.delete_emptydir_data, found.x_drain.force, found.x_drain.on_failure) == (True, False, "fail")
    assert found.x_vrrp.router_id is None


def test_null_and_empty_texts_count_as_not_given() -> None:
    empty: Mapping[str, object] = {
        "vim_name": "",
        "proxy": None,
        "x_cni": "",
        "master_node/pod_cidr": "",
        "master_node/nic_cp_name": None,
    }
    assert read_request(request(empty)) == read_request(request())
    for nothing in ("", None):
        with pytest.raises(InvalidInput, match=rf"{ROOT}/worker_node/password: missing: one of password and"):
            read_request(request({"worker_node/password": nothing}))


def test_the_port_in_the_cluster_network_is_that_of_ssh_unless_named() -> None:
    found = read_request(request({"worker_node/nic_cp_name": "workerNode_CP3"}))
    assert found.master_node.cluster_port == "masterNode_CP1"
    assert found.group("worker").cluster_port == "workerNode_CP3"


def test_each_proxy_works_without_the_other() -> None:
    """SEQ-024."""
    proxy = read_request(request({"proxy": {"http_proxy": "", "https_proxy": "http://u:p@proxy.example:3128/"}})).proxy
    assert proxy.http_proxy is None
    assert proxy.https_proxy == Secret("http://u:p@proxy.example:3128/")
    listed = {"proxy": {"no_proxy": ".example.com, *.example.org,fd00::/64,host:8080,"}}
    assert read_request(request(listed)).proxy.exceptions == (".example.com", "*.example.org", "fd00::/64", "host:8080")


@pytest.mark.parametrize(("version", "plain"), [("v1.31.4", "1.31.4"), ("1.28.0", "1.28.0"), ("1.34.99", "1.34.99")])
def test_a_version_of_kubernetes_is_read_with_and_without_its_letter(version: str, plain: str) -> None:
    assert read_request(request({"x_kubernetes_version": version})).x_kubernetes_version == plain


@pytest.mark.parametrize(
    ("field", "value", "status", "reason"),
    [
        ("script_path", None, 400, "missing: a relative path inside the package expected"),
        ("script_path", "", 400, "missing"),
        ("script_path", 7, 400, "a relative path"),
        ("script_path", "../install.sh", 400, "a relative path inside the package expected"),
        ("script_path", "/install.sh", 400, "a relative path"),
        ("script_path", "a\\b.sh", 400, "a relative path"),
        ("script_path", "a\nb.sh", 400, "a relative path"),
        ("script_path", ".", 400, "a relative path"),
        ("x_install_script", "own", 400, "auto or package expected"),
        ("vim_name", "x" * 256, 400, "1 to 255"),
        ("vim_name", "a\nb", 400, "1 to 255"),
        ("vim_name", ["x"], 400, "1 to 255"),
        ("master_node", None, 400, "missing: an object expected"),
        ("master_node", "x", 400, "an object expected"),
        ("worker_node", [], 400, "an object expected"),
        ("worker_node", None, 400, "missing: an object expected"),
        ("proxy", [], 400, "an object expected"),
        ("master_node/ssh_cp_name", None, 400, "missing: the port or floating IP for SSH expected"),
        ("master_node/cluster_cp_name", None, 400, "missing: the port of the Kubernetes API expected"),
        ("worker_node/ssh_cp_name", None, 400, "missing: the port or floating IP for SSH expected"),
        ("master_node/username", None, 400, "missing: a Linux user name expected"),
        ("master_node/username", "Ubuntu", 400, "a Linux user name expected"),
        ("master_node/username", "ubuntu; reboot", 400, "a Linux user name expected"),
        ("worker_node/username", 7, 400, "a Linux user name expected"),
        ("worker_node/username", None, 400, "missing"),
        ("master_node/password", None, 400, "missing"),
        ("master_node/password", True, 400, "one line of text expected"),
        ("worker_node/password", "x\ny", 400, "one line of text expected"),
        ("proxy/http_proxy", 'http://x"; rm -rf /', 400, "a URL"),
        ("proxy/http_proxy", "http://proxy:70000", 400, "65535"),
        ("proxy/http_proxy", "proxy:3128", 400, "a URL"),
        ("proxy/http_proxy", "http://proxy:1$(reboot)", 400, "a URL"),
        ("proxy/https_proxy", "socks5://proxy:3128", 400, "a URL"),
        ("proxy/https_proxy", "http://u:p'w@proxy:3128", 400, "a URL"),
        ("proxy/https_proxy", "proxy.example:80", 400, "a URL"),
        ("proxy/no_proxy", "a,$(reboot)", 400, "divided by commas"),
        ("proxy/no_proxy", ["a"], 400, "divided by commas"),
        ("proxy/no_proxy", "a b", 400, "divided by commas"),
        ("proxy/k8s_node_cidr", "10.0.0.0/7", 400, "/8 to /32"),
        ("proxy/k8s_node_cidr", "nodes", 400, "an IPv4 network"),
        ("master_node/cluster_cidr", "services", 400, "an IPv4 network"),
        ("x_cri", "docker", 422, "containerd is"),
        ("x_kubernetes_version", "1.31.4; reboot", 422, "1.28.0 to 1.34.x"),
        ("x_kubernetes_version", "1.9.1", 422, "1.28.0 to 1.34.x"),
        ("x_kubernetes_version", "1.27.9", 422, "1.28.0 to 1.34.x"),
        ("x_kubernetes_version", "1.35.0", 422, "1.28.0 to 1.34.x"),
        ("x_kubernetes_version", "latest", 422, "1.28.0 to 1.34.x"),
        ("x_kubernetes_version", 1.31, 400, "a version such as"),
        ("x_max_parallel_nodes", True, 400, "a whole number from 1 to 100 expected"),
        ("x_max_parallel_nodes", 0, 400, "a whole number from 1 to 100 expected"),
        ("x_max_parallel_nodes", 101, 400, "a whole number from 1 to 100 expected"),
        ("x_timeouts", 5, 400, "an object expected"),
        ("x_timeouts/command", "60", 400, "a whole number from 1 to 86400"),
        ("x_timeouts/ssh_ready", 0, 400, "a whole number from 1 to 86400"),
        ("x_drain/on_failure", "explode", 400, "fail or continue expected"),
        ("x_drain/force", "yes", 400, "true or false expected"),
        ("x_vrrp/router_id", 256, 400, "1 to 255"),
        ("x_mirror/apt", "https://x y/", 400, "a URL"),
        ("x_mirror/apt", "ftp://x", 400, "a URL"),
        ("x_mirror/images", 5, 400, "a URL"),
        ("private_registry_connection_info", {}, 400, "an array of objects expected"),
        ("private_registry_connection_info", ["x"], 400, "an object expected"),
        (
            "private_registry_connection_info",
            [{"connection_type": 0, "server": "r:0"}],
            400,
            "host or host:port expected",
        ),
        (
            "private_registry_connection_info",
            [{"connection_type": 0, "server": "R:1"}, {"connection_type": 1, "server": "r:1"}],
            422,
            "r:1 is listed twice",
        ),
        (
            "private_registry_connection_info",
            [{"connection_type": 0, "server": "r", "username": "a:b", "password": "x"}],
            400,
            "one line of text without a colon expected",
        ),
        (
            "private_registry_connection_info",
            [
                {"connection_type": 0, "server": "r:1", "hosts_string": "10.0.0.1 r"},
                {"connection_type": 0, "server": "r:2", "hosts_string": "10.0.0.2 R"},
            ],
            422,
            "R has two addresses",
        ),
        ("storage_server", "x", 400, "an object expected"),
        ("pv_registration_params", {}, 400, "an array of objects expected"),
        ("storage_server", {"ssh_cp_name": "a", "username": "u", "password": "p"}, 400, "an array of at least one"),
        ("pv_registration_params", [{"pv_manifest_file_path": "a.yaml", "nfs_server_cp": "c"}], 422, "storage_server"),
    ],
)
@pytest.mark.parametrize("is_hidden", [False, True])
def test_a_wrong_value_is_refused_with_its_field_and_what_was_expected(
    field: str, value: object, status: int, reason: str, is_hidden: bool
) -> None:
    given = request({field: value})
    with pytest.raises(InvalidInput) as caught:
        read_request(hide(given) if is_hidden else given)
    assert caught.value.field.startswith(f"{ROOT}/{field}")
    assert caught.value.status == status
    assert reason in caught.value.reason
    assert "reboot" not in str(caught.value)


@pytest.mark.parametrize("given", [{}, {CLUSTER: None}, {CLUSTER: []}, {CLUSTER: "x"}])
def test_a_cluster_without_parameters_is_refused(given: Mapping[str, object]) -> None:
    for read in (read_request, read_cluster_parameters):
        with pytest.raises(InvalidInput, match=rf"^{ROOT}: (missing: )?an object expected"):
            read(given)


@pytest.mark.parametrize(
    ("others", "field", "reason"),
    [
        ({"nfv": []}, "nfv", "an object expected"),
        ({"all": "true"}, "all", "true or false"),
        (
            {"tacker_extension_heal_include_block_storage": 1},
            "tacker_extension_heal_include_block_storage",
            "true or false",
        ),
        ({"is_reverse": True}, "is_reverse", "True or False"),
        ({"master_node_username": "ubuntu"}, "master_node_password", "missing: one of master_node_password and"),
        ({"worker_node_password": "ubuntu"}, "worker_node_username", "missing: the user of the login"),
        ({"worker_node_username": "u", "worker_node_private_key": "x"}, "worker_node_private_key", "OpenSSH's form"),
    ],
)
def test_attributes_beside_the_cluster_are_checked(others: dict[str, object], field: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_request(request(others=others))
    assert caught.value.field == f"additionalParams/{field}"
    assert reason in caught.value.reason


def test_unknown_attributes_are_accepted_unless_the_request_is_strict() -> None:
    read_request(request({"note": "x", "master_node/colour": "blue"}, {"input_params": ""}))
    with pytest.raises(InvalidInput, match=rf"{ROOT}/note: unknown; known are helm_installation_script_path"):
        read_request(request({"note": "x", "x_strict": True}))
    with pytest.raises(InvalidInput, match=rf"{ROOT}/master_node/colour: unknown"):
        read_request(request({"master_node/colour": "blue", "x_strict": True}))
    read_request(request({"x_strict": True, "proxy/no_proxy": "a", "x_drain/force": True, "x_timeouts/drain": 1}))


def test_no_error_and_no_text_shows_a_secret() -> None:
    for field, value in (("master_node/password", "top\nsecret"), ("proxy/http_proxy", "http://u:topsecret@ x")):
        with pytest.raises(InvalidInput) as caught:
            read_request(request({field: value}))
        assert "secret" not in str(caught.value)
    found = read_request(request({"x_mirror": {"apt": "https://user:topsecret@mirror/"}}))
    assert "topsecret" not in f"{found!r}{found.model_dump_json()}"
    assert "hidden-word" not in f"{found!r}{found.model_dump_json()}"


def test_a_request_cannot_bring_a_value_that_is_sealed_already() -> None:
    given = request({"master_node/password": {"$sealed": RING.seal("x")}})
    for form in (given, hide(given), opened(given)):
        with pytest.raises(InvalidInput, match="not sealed values"):
            read_request(form)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("worker_node/password", "x\ny"),
        ("proxy/http_proxy", "http://u:p@proxy:70000"),
        ("proxy/https_proxy", "http://u:p@proxy:1$(reboot)"),
        ("x_mirror/apt", "https://u:p@mirror/ x"),
    ],
)
def test_the_form_of_a_secret_is_checked_as_long_as_it_is_not_sealed(field: str, value: str) -> None:
    """A grant may replace the parameters; its secrets are hidden before they are read."""
    with pytest.raises(InvalidInput, match=f"^{ROOT}/{field}: .* expected"):
        read_cluster_parameters(hide(request({field: value})))


def test_what_was_stored_with_sealed_secrets_is_read() -> None:
    stored = json.loads(json.dumps(sealed(hide(request({"proxy": {"http_proxy": "http://u:p@proxy:1"}})), RING)))
    found = read_cluster_parameters(opened(stored))
    assert found.worker_node.password is not None
    assert found.worker_node.password.reveal(RING) == "hidden-word"
    assert found.proxy.http_proxy is not None
    assert found.proxy.http_proxy.reveal(RING) == "http://u:p@proxy:1"


def test_what_a_message_carries_is_what_was_read() -> None:
    whole = {
        "vim_name": "edge",
        "proxy": {"http_proxy": "http://proxy:1", "no_proxy": "a, b", "k8s_node_cidr": "172.16.0.0/24"},
        "x_kubernetes_version": "v1.31.4",
        "x_cni": "Files/cni.yaml",
        "x_max_parallel_nodes": 50,
        "x_timeouts": {"command": 5},
        "x_vrrp": {"router_id": 7},
        "x_drain": {"force": True},
        "x_mirror": {"apt": "https://mirror/"},
        "private_registry_connection_info": [
            {"connection_type": 0, "server": "10.0.0.1:5000"},
            {"connection_type": "1", "server": "r.example", "username": "u", "password": "hidden-too"},
        ],
    }
    requested = read_request(request(whole))
    sent = Carrier(cluster=requested).model_dump(mode="json", context=sealing(RING), exclude_none=True)
    assert "x_strict" not in sent["cluster"]
    assert "hidden-too" not in json.dumps(sent)
    received = Carrier.model_validate_json(json.dumps(sent)).cluster
    assert received.model_dump(mode="json") == Carrier(cluster=requested).model_dump(mode="json")["cluster"]
    assert received.master_node.password is not None
    assert received.master_node.password.reveal(RING) == "hidden-word"
    assert received.proxy.exceptions == ("a", "b")
    assert (received.network_manifest, received.x_max_parallel_nodes) == ("Files/cni.yaml", 50)
    assert (received.x_timeouts.command, received.x_timeouts.node_install) == (5, 2700)
    assert (received.x_drain.force, received.x_drain.on_failure, received.x_vrrp.router_id) == (True, "fail", 7)
    plain, secured = received.private_registry_connection_info
    assert (plain.url, plain.username, secured.url) == ("http://10.0.0.1:5000", None, "https://r.example")
    assert secured.password is not None
    assert secured.password.reveal(RING) == "hidden-too"
    assert received.x_mirror.apt is not None
    assert received.x_mirror.apt.reveal(RING) == "https://mirror/"


def test_a_message_with_a_version_that_is_not_known_here_can_be_read() -> None:
    """A later version of the sender may know it; the operation must then fail with an error, not its message."""
    read = ClusterParameters.model_validate(dict(MINIMAL) | {"x_kubernetes_version": "1.99.0", "x_later": True})
    assert read.x_kubernetes_version == "1.99.0"
    with pytest.raises(Unprocessable, match="x_kubernetes_version"):
        read_cluster_parameters(request({"x_kubernetes_version": "1.99.0"}))


@pytest.mark.parametrize(
    ("changes", "nodes", "seconds"),
    [
        ({}, 1, 600 + 2700 + (5400 + 600) + (600 + 3600)),
        ({}, 10, 600 + 2700 + (5400 + 600) + (600 + 3600)),
        ({}, 11, 600 + 2700 + 2 * (5400 + 600) + (600 + 3600)),
        ({"x_max_parallel_nodes": 1}, 3, 600 + 2700 + 3 * (5400 + 600) + (600 + 3600)),
        (
            {"private_registry_connection_info": [{"connection_type": 0, "server": server} for server in ("a", "b")]},
            1,
            600 + 2700 + (5400 + 600 + 7 * 60) + (600 + 3600),
        ),
        ({"x_timeouts/node_install": 86_400}, 1, 600 + 86_400 + (172_800 + 600) + (600 + 3600)),
    ],
)
def test_an_installation_may_take_the_sum_of_the_limits_on_its_way(
    changes: Mapping[str, object], nodes: int, seconds: float
) -> None:
    assert read_cluster_parameters(request(changes)).install_limit_s(nodes) == seconds


def test_each_further_master_joins_by_itself() -> None:
    limits = read_cluster_parameters(request({}))
    assert limits.install_limit_s(5, masters=3) - limits.install_limit_s(5) == 2 * (2700 + 1200 + 300)


def test_attributes_that_nothing_reads_are_found_at_each_depth() -> None:
    """API-160: each object is named with its path; a value of another form is for the model to refuse."""
    registry = {"connection_type": "0", "server": "r", "srever": "s"}
    disks = [{"volume_resource_id": "v", "mount_to": "/data", "mount": 1}]
    given = request({
        "master_node/pod_cdir": "10.0.0.0/8", "proxy/htpp_proxy": "x", "x_timeouts": 7, "x_secret_names": ["a"], "vim": "v",
        "private_registry_connection_info": [registry], "storage_server/cinder_volume_setup_params": disks,
    })  # fmt: skip
    assert {"/".join(map(str, path)): names for path, names, _ in unread_parameters(given)} == {
        CLUSTER: ("vim",),
        f"{CLUSTER}/master_node": ("pod_cdir",),
        f"{CLUSTER}/proxy": ("htpp_proxy",),
        f"{CLUSTER}/private_registry_connection_info/0": ("srever",),
        f"{CLUSTER}/storage_server/cinder_volume_setup_params/0": ("mount",),
    }
    assert list(unread_parameters({CLUSTER: ["no object"]})) == []
    of_registry = unread_registry(
        {REGISTRY_VNF: {"port_mo": 5000, "proxy": {"http_proxy": "x"}, "bastion": {"hots": "h"}}}
    )
    assert [("/".join(map(str, path)), names) for path, names, _ in of_registry] == [
        (REGISTRY_VNF, ("port_mo",)),
        (f"{REGISTRY_VNF}/bastion", ("hots",)),
    ]
