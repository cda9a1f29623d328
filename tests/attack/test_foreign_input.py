"""Manifests, packages, kubeconfigs and JSON that stop a process which reads them without limits (issue: 60 KB ended infra-k8s)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from kubevnfm_clients.kubeconfig import kubeconfig_connection, self_contained_connection
from kubevnfm_credentials_receiver.domain.callback_body import read_callback
from kubevnfm_csar.documents import parse_heat_yaml, parse_vnfd_yaml
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.package import read_package
from kubevnfm_events import InvalidMessage, decode
from kubevnfm_infra_k8s.domain.changing.applied_fields import applied_part
from kubevnfm_infra_k8s.domain.objects import FIELD_MANAGER, ObjectKey
from kubevnfm_infra_k8s.domain.reading.ca_bundles import webhooks_without_ca
from kubevnfm_infra_k8s.domain.reading.manifests import read_manifests
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_mgmt_executor.domain.kubernetes.built import read_configuration
from kubevnfm_vim_registry.domain.expiry import first_expiry
from packages.package_builder import ONE_VNFD, with_meta, zip_of

HEAD: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
DEEP: Final = "x: " + "[" * 30_000 + "]" * 30_000 + "\n"
MERGE: Final = "\n".join(
    ["m0: &m0 {a: 1}", *(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}], k{n}: 1}}" for n in range(1, 12))]
)
ALIAS: Final = "\n".join(
    ["a0: &a0 [xxxxxxxx]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
)
BOMBS: Final = {
    "deep flow": DEEP,
    "deep block": "x:\n" + " - " + "- " * 30_000,
    "deep keys": "x:\n  " + "? " * 30_000,
    "deep with anchors": "x: " + "&a [" * 30_000,
    "merge keys": MERGE,
    "aliases": ALIAS,
    "an alias in itself": "x: &x {<<: *x}",
    "directives": "%TAG !a! x\n" * 100_000 + "--- a",
    "a number of base 60": "x: 1" + ":59" * 300_000,
    "a number of base 16": "x: 0x" + "f" * 3_000_000,
}
MANIFEST: Final = "Files/kubernetes/deployment.yaml"


def manifest(text: str) -> object:
    return read_manifests([("Files/a.yaml", HEAD + text)])


def filled_in(text: str) -> object:
    return read_manifests([("Files/a.yaml", HEAD + text)], is_filled_in=True)


READERS: Final[dict[str, tuple[Callable[[str], object], type[Exception]]]] = {
    "a manifest": (manifest, InvalidInput),
    "a manifest with values filled in": (filled_in, InvalidInput),
    "a kubeconfig": (kubeconfig_connection, Unprocessable),
    "a kubeconfig that is sent": (self_contained_connection, Unprocessable),
    "a VNFD": (lambda text: parse_vnfd_yaml(text, name="x.yaml"), PackageRefused),
    "a Heat template": (lambda text: parse_heat_yaml(text, name="x.yaml"), PackageRefused),
    "the configuration of a cluster": (read_configuration, ValueError),
    "volumes and networks": (read_kubernetes_yaml, YamlRefused),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bomb", BOMBS)
def test_no_reader_is_stopped_by_yaml(reader: str, bomb: str) -> None:
    """A stack that overflows would end this process; bombs of twelve levels would never end."""
    read, refusal = READERS[reader]
    # Kubernetes and TOSCA have no numbers of base 60, so this is a text.
    if bomb == "a number of base 60" and (read in (manifest, filled_in, read_kubernetes_yaml) or reader == "a VNFD"):
        assert read(BOMBS[bomb])
        return
    with pytest.raises(refusal) as refused:
        read(BOMBS[bomb])
    assert len(str(refused.value)) < 2000


def test_a_manifest_of_60_kb_is_refused_with_file_and_line() -> None:
    with pytest.raises(InvalidInput, match=r"Files/a\.yaml: nested more than 100 deep in line 4"):
        manifest(DEEP)


@pytest.mark.deep
def test_manifests_of_one_command_share_their_limits() -> None:
    one = HEAD.replace("{name: a}", "{name: NAME}") + "data: [" + "x," * 200_000 + "]\n"
    with pytest.raises(InvalidInput, match=r"Files/[1-5]\.yaml: more than"):
        read_manifests([(f"Files/{n}.yaml", one.replace("NAME", f"a{n}")) for n in range(6)])


def package(folder: Path, text: str) -> Path:
    files = {"one.yaml": ONE_VNFD, MANIFEST: HEAD + text}
    return zip_of(folder / "package.zip", with_meta(files, entry="one.yaml", listed=(MANIFEST,)))


@pytest.mark.parametrize("bomb", [DEEP, MERGE, ALIAS], ids=["deep", "merge", "alias"])
def test_a_package_with_such_a_manifest_is_not_onboarded(bomb: str, tmp_path: Path) -> None:
    archive = package(tmp_path, bomb)
    with pytest.raises(PackageRefused, match=r"Files/kubernetes/deployment\.yaml: line \d+, column \d+: "):
        read_package(archive)


def test_a_template_that_is_no_yaml_yet_is_onboarded(tmp_path: Path) -> None:
    assert read_package(package(tmp_path, "x: {{ .Values.x }}\n  - ]")).manifests == (MANIFEST,)


def callback(kubeconfig: str) -> bytes:
    return json.dumps(
        {
            "schemaVersion": "1",
            "event": "CREATED",
            "vnfInstanceId": "i",
            "cluster": {"name": "c", "uid": "u"},
            "credentials": {"format": "kubeconfig", "kubeconfig": base64.b64encode(kubeconfig.encode()).decode()},
        }
    ).encode()


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_call_back_with_500_bytes_holds_nothing(bomb: str) -> None:
    with pytest.raises(Unprocessable) as refused:
        assert read_callback(callback(BOMBS[bomb])).kubeconfig
    assert "credentials.kubeconfig" in str(refused.value)


JSON_BOMBS: Final = {
    "deep": b'{"a":' * 30_000 + b"1" + b"}" * 30_000,
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "many lists": b"[" + b"[]," * 2_000_000 + b"[]]",
    "a long number": b'{"specversion": ' + b"1" * 1_000_000 + b"}",
    "an infinite number": b'{"specversion": 1e999}',
}


@pytest.mark.parametrize("bomb", JSON_BOMBS)
def test_json_stops_neither_messages_nor_call_backs(bomb: str) -> None:
    with pytest.raises(InvalidMessage):
        decode(JSON_BOMBS[bomb])
    with pytest.raises(InvalidInput):
        read_callback(JSON_BOMBS[bomb])


def test_fields_of_an_api_server_are_read_within_limits() -> None:
    fields: dict[str, object] = {"f:spec": {"f:list": {"k:" + "[" * 30_000: {}, "v:" + "[" * 30_000: {}}}}
    body = {
        "apiVersion": "v1",
        "kind": "A",
        "metadata": {
            "managedFields": [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}],
        },
        "spec": {"list": [{"a": 1}]},
    }
    assert applied_part(body, ObjectKey("v1", "A", "", "a")) is not None


def test_patterns_of_ours_take_the_time_of_their_text() -> None:
    """Each text has a million characters; with their square, these would take hours."""
    begin = "-----BEGIN CERTIFICATE-----"
    assert first_expiry({"ssl_ca_cert": begin * 40_000}) is None
    bundle = base64.b64encode((begin + " " * 1_000_000).encode()).decode()
    config = {"service": {"name": "a"}, "caBundle": bundle}
    webhook = {"kind": "ValidatingWebhookConfiguration", "webhooks": [{"name": "w", "clientConfig": config}]}
    assert list(webhooks_without_ca({"metadata": {}, **webhook})) == ["w"]
