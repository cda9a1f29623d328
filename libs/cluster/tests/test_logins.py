"""Logins over SSH wherever a request has one: a password or a key, a port, a bastion, and a pair made for the instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from kubevnfm_cluster.parameters import CLUSTER, ROOT, ClusterParameters
from kubevnfm_cluster.request import (
    LOAD_BALANCER,
    RequestedCluster,
    read_cluster_parameters,
    read_load_balancer,
    read_request,
    request_load_balancer,
    with_key_pair,
)
from kubevnfm_cluster.ssh_keys import new_key_pair
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_secrets import KeyRing, Secret, hide, map_secrets, mask, opened, sealed
from servers.ssh_keys import encrypted_key

RING: Final = KeyRing([b"1" * 32])
PHRASE: Final = "open sesame"
KEY: Final = new_key_pair("test").private_key
ENCRYPTED: Final = encrypted_key(PHRASE)[0]
Json = dict[str, object]
PASSWORD: Final[Json] = {"username": "ubuntu", "password": "hidden-word"}
BY_KEY: Final[Json] = {"username": "ubuntu", "private_key": KEY}
BY_ENCRYPTED_KEY: Final[Json] = {"username": "ubuntu", "private_key": ENCRYPTED, "private_key_passphrase": PHRASE}
STORAGE: Final[Json] = {
    "ssh_cp_name": "storage_CP",
    "cinder_volume_setup_params": [{"volume_resource_id": "v", "mount_to": "/data"}],
    "nfs_server_setup_params": [{"export_dir": "/data/x", "export_to": "10.0.0.0/8"}],
}


def request(login: Json = PASSWORD, others: Mapping[str, object] = {}, **worker: object) -> Json:
    """Return additionalParams; ``login`` is that of the workers."""
    master = {**PASSWORD, "ssh_cp_name": "masterNode_CP1", "cluster_cp_name": "masterNode_CP1"}
    nodes = {"ssh_cp_name": "workerNode_CP2", **login, **worker}
    return {CLUSTER: {"script_path": "a.sh", "master_node": master, "worker_node": nodes, **others}}


def balancer(login: Json, **more: object) -> Json:
    given = {f"ssh_{name}": value for name, value in login.items()}
    return {LOAD_BALANCER: {"script_path": "lb.sh", "external_lb_param": {"ssh_ip": "192.0.2.1", **given, **more}}}


def test_a_login_has_a_key_a_port_and_a_bastion() -> None:
    bastion = {"host": "bastion.example", **BY_ENCRYPTED_KEY, "username": "jump"}
    found = read_request(request(BY_KEY, ssh_port=2222, bastion=bastion)).worker_node
    assert (found.private_key, found.password, found.ssh_port) == (Secret(KEY), None, 2222)
    assert found.bastion is not None
    assert (found.bastion.host, found.bastion.port, found.bastion.username) == ("bastion.example", 22, "jump")
    storage = read_request(request(others={"storage_server": {**STORAGE, **BY_KEY, "ssh_port": 22}})).storage_server
    assert storage is not None
    assert storage.private_key == Secret(KEY)
    by_bastion = balancer(BY_KEY, ssh_port=2022, bastion={"host": "fd00::1", "port": 23, **PASSWORD})
    found_balancer = request_load_balancer(by_bastion).external_lb_param
    assert (found_balancer.ssh_private_key, found_balancer.ssh_port) == (Secret(KEY), 2022)
    assert found_balancer.bastion is not None
    assert (found_balancer.bastion.host, found_balancer.bastion.port) == ("fd00::1", 23)


def test_a_key_is_opened_with_its_passphrase_when_it_is_read_in_clear() -> None:
    clear = read_request(request(BY_ENCRYPTED_KEY)).worker_node
    assert clear.private_key is not None
    assert clear.private_key_passphrase is None
    assert "ENCRYPTED" not in clear.private_key.reveal(RING)
    # Sealed, as the instance stores it, it can only be opened after it is revealed.
    stored = opened(sealed(hide(request(BY_ENCRYPTED_KEY)), RING))
    found = read_cluster_parameters(stored).worker_node
    assert found.private_key is not None
    assert found.private_key.reveal(RING) == ENCRYPTED
    used = read_cluster_parameters(map_secrets(stored, lambda secret: secret.reveal(RING))).worker_node
    assert used.private_key_passphrase is None
    assert used.private_key not in (None, Secret(ENCRYPTED))
    # The command carries the result of reading; it is read again.
    whole = read_request(request(BY_ENCRYPTED_KEY))
    assert ClusterParameters.model_validate(whole.model_dump()).worker_node == whole.worker_node


def test_keys_and_passphrases_are_secrets_in_every_place() -> None:
    bastion = {"host": "b", **BY_ENCRYPTED_KEY}
    asked = {**request(BY_KEY, bastion=bastion), **balancer(BY_ENCRYPTED_KEY, bastion=bastion)}
    shown = (
        f"{mask(hide(asked))}{sealed(hide(asked), RING)}{read_request(asked)!r}{read_request(asked).model_dump_json()}"
    )
    assert not any(line in shown for line in [*KEY.splitlines()[1:-1], *ENCRYPTED.splitlines()[1:-1], PHRASE])


REFUSED: Final[list[tuple[Json, str, str]]] = [
    ({"username": "u"}, "password", "missing: one of password and private_key"),
    ({"username": "u", "password": "p", "private_key": KEY}, "private_key", "only one of password and private_key"),
    ({"username": "u", "private_key": "x"}, "private_key", "a private key in OpenSSH's form or PEM"),
    ({"username": "u", "private_key": {"x": 1}}, "private_key", "a text"),
    ({"username": "u", "private_key": ENCRYPTED}, "private_key_passphrase", "which is encrypted"),
    ({**BY_ENCRYPTED_KEY, "private_key_passphrase": "wrong"}, "private_key_passphrase", "that opens the key"),
    ({**BY_ENCRYPTED_KEY, "private_key_passphrase": ["x"]}, "private_key_passphrase", "a text"),
    ({**PASSWORD, "private_key_passphrase": "x"}, "private_key", "missing: the private key of the passphrase"),
]
ALSO_REFUSED: Final[list[tuple[Json, str, str]]] = [
    ({"ssh_port": 0}, "ssh_port", "a whole number from 1 to 65535"),
    ({"ssh_port": "22"}, "ssh_port", "a whole number from 1 to 65535"),
    ({"bastion": "host"}, "bastion", "an object"),
    ({"bastion": {**PASSWORD}}, "bastion/host", "missing: a host name or an IP address"),
    ({"bastion": {**PASSWORD, "host": "a b"}}, "bastion/host", "a host name or an IP address"),
    ({"bastion": {**PASSWORD, "host": "-oProxyCommand=x"}}, "bastion/host", "a host name or an IP address"),
    ({"bastion": {**PASSWORD, "host": "b", "port": 65_536}}, "bastion/port", "65535"),
    ({"bastion": {**PASSWORD, "host": "b", "ssh_port": 22}}, "bastion/ssh_port", "unknown: one of host, port"),
]


@pytest.mark.parametrize("is_hidden", [False, True])
@pytest.mark.parametrize("place", ["nodes", "storage", "bastion", "balancer", "bastion of the balancer"])
@pytest.mark.parametrize(("login", "field", "reason"), REFUSED)
def test_a_login_that_cannot_work_is_refused_by_field_and_without_its_secrets(
    login: Json, field: str, reason: str, place: str, is_hidden: bool
) -> None:
    bastion = {"host": "b", **login}
    given, where = {
        "nodes": (request(login), f"{ROOT}/worker_node/"),
        "storage": (request(others={"storage_server": {**STORAGE, **login}}), f"{ROOT}/storage_server/"),
        "bastion": (request(bastion=bastion), f"{ROOT}/worker_node/bastion/"),
        "balancer": (balancer(login), f"additionalParams/{LOAD_BALANCER}/external_lb_param/ssh_"),
        "bastion of the balancer": (
            balancer(PASSWORD, bastion=bastion),
            f"additionalParams/{LOAD_BALANCER}/external_lb_param/bastion/",
        ),
    }[place]
    read = request_load_balancer if LOAD_BALANCER in given else read_request
    with pytest.raises(InvalidInput) as caught:
        read(hide(given) if is_hidden else given)
    assert caught.value.status == 400
    assert caught.value.field == where + field
    assert reason in caught.value.reason.replace("ssh_", "")
    assert not any(line in str(caught.value) for line in [*KEY.splitlines(), *ENCRYPTED.splitlines(), "wrong"])


@pytest.mark.parametrize("is_balancer", [False, True])
@pytest.mark.parametrize(("changes", "field", "reason"), ALSO_REFUSED)
def test_a_port_or_bastion_of_another_form_is_refused(
    changes: Json, field: str, reason: str, is_balancer: bool
) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        request_load_balancer(balancer(PASSWORD, **changes)) if is_balancer else read_request(
            request({**PASSWORD, **changes})
        )
    assert caught.value.field.endswith(f"/{field}")


def test_a_stored_load_balancer_is_read_once_it_is_revealed() -> None:
    stored = opened(sealed(hide(balancer(BY_ENCRYPTED_KEY)), RING))
    login = read_load_balancer(map_secrets(stored, lambda secret: secret.reveal(RING))).external_lb_param
    assert login.ssh_private_key_passphrase is None
    assert login.ssh_private_key not in (None, Secret(ENCRYPTED))


def keyless(others: Mapping[str, object] = {}, **master: object) -> Json:
    """Return a request for a key pair; the master has no login unless ``master`` gives one."""
    given = request(others={"x_key_pair_parameter": "ssh_public_key", **others})
    section = given[CLUSTER]
    assert isinstance(section, dict)
    named = {"username": "ubuntu", "ssh_cp_name": "CP", "cluster_cp_name": "CP"}
    return {**given, CLUSTER: {**section, "master_node": {**named, **master}}}


def test_a_pair_is_made_for_the_groups_that_have_no_login_of_their_own() -> None:
    assert with_key_pair(request(), comment="vnf-1") is None
    made = with_key_pair(hide(keyless()), comment="vnf-1")
    assert made is not None
    assert made.additional_params["ssh_public_key"] == made.public_key
    found: RequestedCluster = read_request(made.additional_params)
    assert found.master_node.private_key is not None
    assert (found.worker_node.private_key, found.worker_node.password) == (None, Secret("hidden-word"))
    # It is sealed with the parameters, and later operations read it there.
    stored = opened(sealed(made.additional_params, RING))
    assert found.master_node.private_key.reveal(RING).splitlines()[1] not in str(stored)
    later = read_cluster_parameters(stored).master_node.private_key
    assert later is not None
    assert later.reveal(RING) == found.master_node.private_key.reveal(RING)
    again = with_key_pair(hide(keyless()), comment="vnf-1")
    assert again is not None
    assert again.public_key != made.public_key


@pytest.mark.parametrize(
    ("given", "field", "reason"),
    [
        (keyless(password="p"), f"{ROOT}/x_key_pair_parameter", "each group of machines has"),
        (keyless({"x_key_pair_parameter": 7}), f"{ROOT}/x_key_pair_parameter", "the name of a parameter of the Base"),
        ({**keyless(), "ssh_public_key": "ssh-rsa"}, "additionalParams/ssh_public_key", "gets the public key"),
    ],
)
def test_a_pair_that_no_machine_could_use_is_refused(given: Json, field: str, reason: str) -> None:
    with pytest.raises((InvalidInput, Unprocessable), match=reason) as caught:
        with_key_pair(given, comment="vnf-1")
    assert caught.value.field == field
