"""The readers of foreign input, with what they may raise and what they read."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from hypothesis import strategies as st
from kubevnfm_cli import yaml_reader
from kubevnfm_clients.kubeconfig import context_access, kubeconfig_connection, self_contained_connection
from kubevnfm_cluster.storage import read_manifest
from kubevnfm_credentials_receiver.domain.callback_body import read_callback
from kubevnfm_csar.artifact_order import ArtifactOrder, OrderedArtifact
from kubevnfm_csar.capi_providers import providers_of
from kubevnfm_csar.documents import parse_heat_yaml, parse_vnfd_yaml
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.manifest_values import Hidden
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.ordered_manifests import read_artifacts
from kubevnfm_csar.package import read_package
from kubevnfm_csar.placeholders import fill_in
from kubevnfm_csar.values_schema import SchemaRefused, described, read_schema, with_defaults
from kubevnfm_events import InvalidMessage, decode
from kubevnfm_infra_k8s.domain.reading.manifests import read_manifests, read_ordered
from kubevnfm_infra_k8s.domain.reading.pod_usages import usage_of
from kubevnfm_kit.errors import InvalidInput, Unprocessable
from kubevnfm_kit.foreign_json import read_foreign
from kubevnfm_kit.foreign_yaml.heat import read_heat_yaml
from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_kit.foreign_yaml.tosca import read_tosca_yaml
from kubevnfm_lcm_api.http.bodies import parse
from kubevnfm_mgmt_executor.domain.kubernetes.built import read_configuration
from kubevnfm_sandbox.answers import Answer, AnswerRefused, read_answer
from kubevnfm_sol.lcm import InstantiateVnfRequest
from kubevnfm_vim_registry.domain.expiry import first_expiry
from packages.package_builder import ONE_VNFD, v1_files, v2_files, with_meta

from fuzzed.inputs import from_bytes, from_file_trees, from_files, from_trees, zipped

PROJECT: Final = Path(__file__).parents[3]
CORPUS: Final = PROJECT / "tests/fuzz_readers/corpus"


@dataclass(frozen=True)
class Reader:
    """One reader, or several that read the same."""

    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    """The errors for an input that it does not accept; nothing else may leave it."""
    inputs: st.SearchStrategy[bytes]


class _Result(Answer):
    """An answer of a script."""

    status: int
    stdout: str
    value: str = ""
    result: dict[str, Any] | None = None


_POD_METRICS: Final = (
    b'{"metadata":{"name":"web-6c7db69fd4-7vb66","namespace":"default"},"timestamp":"2026-11-28T12:47:55Z",'
    b'"window":"13.865s","containers":[{"name":"c","usage":{"cpu":"124996189n","memory":"64Mi"}}]}'
)


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def _corpus(reader: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / reader).glob("*"))]


def _samples(*patterns: str) -> list[bytes]:
    return [path.read_bytes() for pattern in patterns for path in sorted(PROJECT.glob(pattern))]


def _yaml_inputs(name: str, samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    parsed = [tree for sample in samples for tree in yaml.load_all(sample, Loader=yaml.CBaseLoader)]
    return from_bytes([*samples, *_corpus(name)]) | from_trees(parsed)


def _json_inputs(name: str, samples: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    return from_bytes([*samples, *_corpus(name)]) | from_trees([json.loads(sample) for sample in samples])


def _read_yaml(raw: bytes) -> None:
    text = _text(raw)
    for read in (read_kubernetes_yaml, read_tosca_yaml, read_heat_yaml):
        try:
            json.dumps(read(text), allow_nan=False).encode()
        except YamlRefused:
            continue
    with suppress(yaml_reader.YamlRefused):
        json.dumps([each.value for each in yaml_reader.read_yaml(text)], allow_nan=False).encode()


def _read_manifests(raw: bytes) -> None:
    text = _text(raw)
    found = read_manifests([("a.yaml", text)])
    providers_of([each.body for each in found])
    read_manifests(fill_in([("a.yaml", text)], {"A": "b"}), is_filled_in=True)


def _read_order(raw: bytes) -> None:
    text = _text(raw)
    order = read_order("o.yaml", text, {"a.yaml", "b/c.yaml"})
    order.ignored({"x.yaml"})


def _read_values_schema(raw: bytes) -> None:
    schema = read_schema("values.schema.json", _text(raw))
    for values in ({}, {"a": {"b": {}}, "db": {"port": "x"}}):
        json.dumps(with_defaults(schema, values), allow_nan=False).encode()
    described(schema)


def _read_artifacts(raw: bytes) -> None:
    order = ArtifactOrder("o.yaml", [OrderedArtifact("a.yaml")], {"a": {"b": [1]}}, frozenset())
    values = {"name": "x", "secret": Hidden("y")}
    for each in read_artifacts(order, [("a.yaml", _text(raw))], values, namespace="n"):
        json.dumps(each.body, allow_nan=False).encode()
    read_ordered(order, [("a.yaml", _text(raw))], values, namespace="n")


def _read_volumes(raw: bytes) -> None:
    read_manifest(read_kubernetes_yaml(_text(raw)), ["/srv/a"])


def _read_kubeconfig_of_region(raw: bytes) -> None:
    assert context_access(raw.decode(errors="replace")).connection.interface_info["endpoint"]


def _read_kubeconfig(raw: bytes) -> None:
    text = _text(raw)
    connection = kubeconfig_connection(text)
    first_expiry({"ssl_ca_cert": connection.interface_info["ssl_ca_cert"]})
    self_contained_connection(text)


def _read_package(raw: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".zip", dir="/dev/shm") as file:
        file.write(raw)
        file.flush()
        read_package(Path(file.name))


def _read_documents(raw: bytes) -> None:
    for read in (parse_vnfd_yaml, parse_heat_yaml):
        with suppress(PackageRefused):
            json.dumps(read(_text(raw), name="a.yaml"), allow_nan=False).encode()


def _read_callback(raw: bytes) -> None:
    found = read_callback(raw)
    if found.credentials is not None:
        assert found.kubeconfig


def _read_request(raw: bytes) -> None:
    parse(InstantiateVnfRequest, read_foreign(raw))


def _read_pod_metrics(raw: bytes) -> None:
    found = read_foreign(raw)
    if isinstance(found, dict) and (usage := usage_of("p", found, {}, {})) is not None:
        json.dumps(usage.model_dump(mode="json"), allow_nan=False).encode()


def _read_answer(raw: bytes) -> None:
    read_answer(raw, _Result)


_KUBECONFIG: Final = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "c", "user": "u"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443", "insecure-skip-tls-verify": True}}],
    "users": [{"name": "u", "user": {"token": "t0ken", "client-certificate-data": "LS0tLS1CRUdJTiBhLS0tLS0K"}}],
}
_CALLBACK: Final = {
    "schemaVersion": "1",
    "event": "CREATED",
    "vnfInstanceId": "i",
    "cluster": {"name": "c", "uid": "u", "endpoint": "https://192.0.2.1:6443"},
    "credentials": {
        "format": "kubeconfig",
        "kubeconfig": base64.b64encode(json.dumps(_KUBECONFIG).encode()).decode(),
        "expiresAt": "2026-01-01T00:00:00Z",
    },
    "vim": {"register": True, "name": "v", "isDefault": False},
}
_CONFIGURATION: Final = b"""\
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
controlPlaneEndpoint: 192.0.2.1:6443
kubernetesVersion: v1.33.1
networking: {podSubnet: 10.0.0.0/16, serviceSubnet: 10.96.0.0/12}
controllerManager: {extraArgs: [{name: node-cidr-mask-size, value: "24"}]}
"""
_VOLUME: Final = b"""\
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], nfs: {server: a, path: /srv/a}}
"""
_VALUES_SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "required": ["a"],
    "properties": {"a": {"properties": {"b": {"$ref": "#/$defs/t"}}}, "db": {"properties": {"port": {"default": 5}}}},
    "$defs": {"t": {"properties": {"t": {"$ref": "#/$defs/t"}, "n": {"default": 1}}, "required": ["n"]}},
    "allOf": [{"$ref": "#/$defs/t"}, {"properties": {"c": {"default": {"d": []}, "type": ["object", "null"]}}}],
}
_ORDERS: Final = (
    (
        b"artifacts:\n- {file: a.yaml, priority: 1, wait: exists, timeout: 9, substitute: false}\n- {file: b/c.yaml}\n"
        b"values: {a: {b: [1]}}\nforeign_namespaces: [x]\n"
    ),
    b"resources:\n- deployment: [a.yaml]\n- service: [b/c.yaml]\n",
    b"resources:\n  deployment: [a.yaml]\n  service: [b/c.yaml]\n",
)
_WITH_VARIABLES: Final = b"""\
apiVersion: v1
kind: Secret
metadata: {name: "$name-${none:-1}", annotations: {kubevnfm.io/substitute: "true"}}
stringData: {$name: "$secret", b: "${a.b} $$ $(X)", c: "$a"}
"""
_ANSWER: Final = {"status": 0, "stdout": "aGVsbG8=", "value": "e30=", "result": {"template": "a", "files": {"b": "c"}}}


def _packages() -> list[dict[str, str | bytes]]:
    one = with_meta({"one.yaml": ONE_VNFD, "Files/a.yaml": _VOLUME}, entry="one.yaml", listed=("Files/a.yaml",))
    manifest = (
        "metadata:\n  vnf_product_name: a\n  vnf_provider_id: b\n  vnf_package_version: 1.0\n"
        "  vnf_release_date_time: 2026-01-01T00:00:00Z\nSource: one.yaml\nAlgorithm: SHA-256\nHash: 00\n"
    )
    return [v1_files(), v2_files(), one, {"one.yaml": ONE_VNFD, "one.mf": manifest}]


def _trees(packages: Sequence[Mapping[str, str | bytes]], folder: str) -> list[dict[str, Any]]:
    return [
        {
            name: yaml.load(content, Loader=yaml.CBaseLoader)
            for name, content in package.items()
            if name.endswith(".yaml") and name.startswith(folder)
        }
        for package in packages
    ]


def readers() -> dict[str, Reader]:
    """Return the readers by name."""
    packages = _packages()
    manifests = _samples("deploy/samples/cnf/Files/kubernetes/*.yaml", "deploy/samples/capi-workload/Files/**/*.yaml")
    hots = [v1_files()]
    definitions = _samples("deploy/samples/cluster/Definitions/*.yaml", "deploy/samples/cluster/BaseHOT/simple/*.yaml")
    messages = _samples("proto-events/examples/*.json")
    requests = _samples("deploy/samples/*/requests/instantiate*.json")
    of_packages = (PackageRefused,)
    return {
        "yaml": Reader(_read_yaml, (), _yaml_inputs("yaml", [*manifests, *definitions])),
        "manifests": Reader(_read_manifests, (InvalidInput,), _yaml_inputs("manifests", manifests)),
        "artifact-order": Reader(_read_order, (Unprocessable,), _yaml_inputs("artifact-order", _ORDERS)),
        "values-schema": Reader(
            _read_values_schema,
            (SchemaRefused,),
            _json_inputs("values-schema", [json.dumps(_VALUES_SCHEMA).encode()]),
        ),
        "artifacts": Reader(_read_artifacts, (InvalidInput,), _yaml_inputs("artifacts", [_WITH_VARIABLES, *manifests])),
        "tosca-yaml": Reader(_read_documents, of_packages, _yaml_inputs("tosca-yaml", definitions)),
        "volumes": Reader(_read_volumes, (ValueError,), _yaml_inputs("volumes", [_VOLUME])),
        "cluster-configuration": Reader(
            lambda raw: read_configuration(_text(raw)),
            (ValueError,),
            _yaml_inputs("cluster-configuration", [_CONFIGURATION]),
        ),
        "kubeconfig-of-region": Reader(
            _read_kubeconfig_of_region,
            (Unprocessable,),
            _yaml_inputs("kubeconfig", [json.dumps(_KUBECONFIG, indent=1).encode()]),
        ),
        "kubeconfig": Reader(
            _read_kubeconfig, (Unprocessable,), _yaml_inputs("kubeconfig", [json.dumps(_KUBECONFIG, indent=1).encode()])
        ),
        "json": Reader(read_foreign, (ValueError,), _json_inputs("json", [*requests, *messages])),
        "messages": Reader(decode, (InvalidMessage,), _json_inputs("messages", messages)),
        "requests": Reader(_read_request, (ValueError, InvalidInput), _json_inputs("requests", requests)),
        "callbacks": Reader(
            _read_callback, (InvalidInput, Unprocessable), _json_inputs("callbacks", [json.dumps(_CALLBACK).encode()])
        ),
        "pod-metrics": Reader(_read_pod_metrics, (ValueError,), _json_inputs("pod-metrics", [_POD_METRICS])),
        "sandbox-answers": Reader(
            _read_answer, (AnswerRefused,), _json_inputs("sandbox-answers", [json.dumps(_ANSWER).encode()])
        ),
        "csar": Reader(_read_package, of_packages, from_files(packages) | _zips(packages)),
        "tosca-meta": Reader(
            _read_package, of_packages, from_files(packages[:3], ".meta") | from_files(packages[3:], ".mf")
        ),
        "tosca": Reader(
            _read_package, of_packages, from_files(packages, ".yaml") | from_file_trees(packages, _vnfd_trees(packages))
        ),
        "hot": Reader(
            _read_package, of_packages, from_files(hots, "BaseHOT/") | from_file_trees(hots, _trees(hots, "BaseHOT/"))
        ),
    }


def _vnfd_trees(packages: Sequence[Mapping[str, str | bytes]]) -> list[dict[str, Any]]:
    return [{**_trees([package], "Definitions/")[0], **_trees([package], "one.yaml")[0]} for package in packages]


def _zips(packages: Sequence[Mapping[str, str | bytes]]) -> st.SearchStrategy[bytes]:
    return from_bytes([*map(zipped, packages), *_corpus("csar")])
