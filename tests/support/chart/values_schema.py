"""Writes `values.schema.json` of the chart, and the table of values in `docs/install-chart.md`; `make schemas` runs it.

Every object is closed, and every value has a description, a type and bounds. The settings of a service come from its settings class.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from servers.processes import PROJECT
from servers.six_processes import SERVICES

from chart.setting_values import LONGEST, Schema, closed, key_of, setting_schemas

CHART: Final = PROJECT / "deploy/chart"
SCHEMA: Final = CHART / "values.schema.json"
PAGE: Final = PROJECT / "docs/install-chart.md"
BEGIN, END = "<!-- values: made by `make schemas` -->", "<!-- end of values -->"
ACCESS: Final = ("lcm-api", "credentials-receiver")
CACHE: Final = ("infra-openstack", "infra-k8s", "mgmt-executor")

_QUANTITY: Final = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$"
_NAME: Final = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$"
_LABEL_KEY: Final = r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$"
_CIDR: Final = r"^[0-9A-Fa-f.:]+/[0-9]{1,3}$"
_HOST: Final = r"^([A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])?$"


def text(description: str, pattern: str | None = None, longest: int = 253) -> Schema:
    """Return the schema of a text."""
    return {
        "type": "string",
        "description": description,
        "maxLength": longest,
        **({"pattern": pattern} if pattern else {}),
    }


def name_of(what: str) -> Schema:
    """Return the schema of the name of an object of Kubernetes."""
    return text(what, _NAME)


def one_of(description: str, *values: str) -> Schema:
    """Return the schema of a choice."""
    return {"type": "string", "description": description, "enum": list(values)}


def flag(description: str) -> Schema:
    """Return the schema of a switch."""
    return {"type": "boolean", "description": description}


def whole(description: str, least: int, most: int) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "description": description, "minimum": least, "maximum": most}


def several(description: str, items: Schema, most: int = 100) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "description": description, "maxItems": most, "items": items}


def texts_by_name(description: str, longest: int = 1024, pattern: str = _LABEL_KEY) -> Schema:
    """Return the schema of a mapping of texts, as of labels."""
    return {
        "type": "object", "description": description, "maxProperties": 100,
        "propertyNames": {"pattern": pattern, "maxLength": 317}, "additionalProperties": {"type": "string", "maxLength": longest},
    }  # fmt: skip


def amounts(description: str) -> Schema:
    """Return the schema of requests or limits."""
    quantity = {"type": "string", "pattern": _QUANTITY, "maxLength": 30}
    return closed(
        {
            "cpu": {**quantity, "description": "Processors."},
            "memory": {**quantity, "description": "Memory."},
            "ephemeral-storage": {**quantity, "description": "Disk of the node."},
        },
        description,
    )


def resources(description: str) -> Schema:
    """Return the schema of a container's resources."""
    return closed({"requests": amounts("What the scheduler reserves."), "limits": amounts("The limit.")}, description)


def _peers(description: str) -> Schema:
    selector = closed({"matchLabels": texts_by_name("Labels.", 63)}, "Selects by labels.")
    block = closed(
        {"cidr": text("A network.", _CIDR, 60), "except": several("Parts of it that are not meant.", text("A network.", _CIDR, 60))},
        "Selects by address.", required=["cidr"],
    )  # fmt: skip
    peer = closed(
        {"podSelector": selector, "namespaceSelector": selector, "ipBlock": block},
        "As an entry of `from` in a NetworkPolicy.", minProperties=1,
    )  # fmt: skip
    return several(description, peer)


def _image(description: str) -> Schema:
    return closed(
        {
            "repository": text("The repository without registry; empty: <image.repository>/<service>."),
            "tag": text("The tag; empty: image.tag."),
            "digest": text("The digest, which decides.", r"^(sha256:[0-9a-f]{64})?$"),
        },
        description,
    )


def _service(service: str) -> Schema:
    settings, secret_settings = setting_schemas(service)
    found: dict[str, Schema] = {
        "replicas": whole("The number of pods, without autoscaling.", 0, 100),
        "image": _image("The image, where it differs."),
        "resources": resources("Resources of the container."),
        "settings": settings,
        "secretSettings": secret_settings,
        "files": texts_by_name(
            "Texts that are files below /etc/kubevnfm/files, by name; no secrets.", 900_000, r"^[A-Za-z0-9._-]+$"
        ),
        "mounts": several("Secrets and ConfigMaps that are folders /etc/kubevnfm/<name>.", _MOUNT),
        "extraEnv": several("More environment variables, such as proxies; settings are in `settings`.", _VARIABLE),
        "podLabels": texts_by_name("Labels of the pods.", 63),
        "podAnnotations": texts_by_name("Annotations of the pods.", LONGEST),
        "nodeSelector": texts_by_name("Labels of the nodes.", 63),
        "tolerations": several("Taints of nodes that are accepted.", _TOLERATION),
        "priorityClassName": name_of("The priority class."),
        "terminationGracePeriodSeconds": whole("Time for handlers to end.", 5, 3600),
        "tmpSize": text("The limit of /tmp.", _QUANTITY, 30),
        "autoscaling": _AUTOSCALING,
    }
    if service in CACHE:
        found["cacheSize"] = text(
            "The limit of the cache of packages; above the setting cache_disk_gib.", _QUANTITY, 30
        )
    if service == "lcm-api":
        found["persistence"] = _PERSISTENCE
    if service in ACCESS:
        found |= {
            "clients": _peers("Who calls the service, for its NetworkPolicy; empty: every address."),
            "ingress": _INGRESS,
            "httpRoute": _ROUTE,
        }
    return closed(found, f"The service {service}.")


_MOUNT: Final = {
    **closed(
        {
            "name": text("The name of the folder.", r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", 50),
            "secret": name_of("The Secret."),
            "configMap": name_of("The ConfigMap."),
        },
        "One folder.",
        required=["name"],
    ),
    "oneOf": [{"required": ["secret"]}, {"required": ["configMap"]}],
}
_KEY_REFERENCE: Final = closed(
    {"name": name_of("The object."), "key": text("Its key."), "optional": flag("Whether it may be missing.")},
    "A key of a Secret or ConfigMap.", required=["name", "key"],
)  # fmt: skip
_VARIABLE: Final = closed(
    {
        "name": {**text("The name.", r"^[A-Za-z_][A-Za-z0-9_]*$"), "not": {"pattern": "^KUBEVNFM_"}},
        "value": text("The value.", None, LONGEST),
        "valueFrom": closed(
            {"secretKeyRef": _KEY_REFERENCE, "configMapKeyRef": _KEY_REFERENCE},
            "Where the value is.", minProperties=1, maxProperties=1,
        ),
    },
    "One variable.", required=["name"],
)  # fmt: skip
_TOLERATION: Final = closed(
    {
        "key": text("The taint.", None, 317),
        "operator": one_of("How its value is compared.", "Exists", "Equal"),
        "value": text("Its value.", None, 63),
        "effect": one_of("Its effect.", "NoSchedule", "PreferNoSchedule", "NoExecute"),
        "tolerationSeconds": whole("For how long.", 0, 10**9),
    },
    "One toleration.",
)
_AUTOSCALING: Final = closed(
    {
        "enabled": flag("Whether KEDA chooses the number of pods (a ScaledObject)."),
        "minReplicas": whole("The least number of pods.", 1, 100),
        "maxReplicas": whole("The largest number of pods.", 1, 100),
        "thresholdSeconds": whole("The value of keda.query for which one more pod is started.", 1, 10**6),
    },
    "The number of pods by the age of the oldest unfinished step.",
)
_PERSISTENCE: Final = closed(
    {
        "enabled": flag("Whether the files of packages are on a volume; without, they vanish with the pod."),
        "existingClaim": name_of("A claim that is there already."),
        "accessMode": one_of("ReadWriteMany is needed for several replicas.", "ReadWriteOnce", "ReadWriteOncePod", "ReadWriteMany"),
        "storageClass": name_of("The storage class; empty: the default of the cluster."),
        "size": text("The size.", _QUANTITY, 30),
    },
    "The volume with the files of packages.",
)  # fmt: skip
_INGRESS: Final = closed(
    {
        "enabled": flag("Whether there is an Ingress."),
        "className": name_of("Its class."),
        "host": text("The name by which callers reach the service.", _HOST),
        "tlsSecret": name_of("The Secret with the certificate of that name."),
        "annotations": texts_by_name("Annotations for the controller.", LONGEST),
    },
    "An Ingress for callers outside of the cluster.",
)
_ROUTE: Final = closed(
    {
        "enabled": flag("Whether there is an HTTPRoute."),
        "scheme": one_of("How callers reach the gateway of the cluster.", "https", "http"),
        "hostnames": several("The names by which callers reach the service.", text("A name.", _HOST)),
        "parentRefs": several(
            "The gateways of the cluster.",
            closed(
                {"name": name_of("The Gateway."), "namespace": name_of("Its namespace."), "sectionName": name_of("Its listener.")},
                "One Gateway.", required=["name"],
            ),
        ),
    },
    "An HTTPRoute of the Gateway API for callers outside of the cluster.",
)  # fmt: skip


def _rabbitmq() -> Schema:
    return closed(
        {
            "host": text("The broker.", _HOST),
            "port": whole("Its port.", 1, 65_535),
            "path": text("Virtual host, URL-encoded, and options of the URL.", r"^[^@#\s]*$"),
            "tls": flag("Whether the services use AMQP over TLS."),
            "urlsSecret": name_of("A Secret with an AMQP URL for each service, under its name; instead of host."),
            "declares": flag("Whether services declare exchanges and queues; their users then need all rights on kubevnfm.*."),
            "peers": _peers("Where the broker is, for the NetworkPolicies; empty: every address at its port."),
            "users": closed(
                {
                    "enabled": flag("Whether a Job loads queues and users into the broker."),
                    "apiUrl": text("The management API: http://rabbitmq:15672.", r"^(http://[^\s@/]+)?$"),
                    "apiPort": whole("Its port.", 1, 65_535),
                    "adminSecret": name_of("The Secret with username and password of an administrator."),
                },
                "Queues and users of the services.",
            ),
            "operator": closed(
                {
                    "enabled": flag("Whether there is a RabbitmqCluster."),
                    "replicas": whole("Its nodes: an odd number.", 1, 9),
                    "image": text("Its image; empty: that of the operator."),
                    "storage": text("The disk of a node.", _QUANTITY, 30),
                    "storageClass": name_of("The storage class; empty: the default of the cluster."),
                    "resources": resources("Resources of a node."),
                },
                "A broker by RabbitMQ's cluster operator.",
            ),
        },
        "The broker.",
    )  # fmt: skip


def _mongodb() -> Schema:
    return closed(
        {
            "hosts": several("The servers, as host:port.", text("A server.", r"^[A-Za-z0-9.\[\]:-]+$")),
            "options": text("Options of the URL: replicaSet=rs0&tls=true.", r"^[^@#\s]*$", 1024),
            "urlsSecret": name_of("A Secret with a MongoDB URL for each service, under its name; instead of hosts."),
            "ports": several("The servers' ports, for the NetworkPolicies.", whole("A port.", 1, 65_535), 10),
            "peers": _peers("Where the servers are, for the NetworkPolicies; empty: every address at these ports."),
            "users": closed(
                {
                    "enabled": flag("Whether a Job makes the user of each service."),
                    "adminUrlSecret": name_of("The Secret with the URL of an administrator, under `url`."),
                },
                "Users of the services.",
            ),
            "percona": closed(
                {
                    "enabled": flag("Whether there is a PerconaServerMongoDB."),
                    "crVersion": text("The version of the operator.", r"^[0-9]+\.[0-9]+\.[0-9]+$", 20),
                    "image": text("Its image, as that version of the operator supports it."),
                    "size": whole("Members of the replica set: an odd number.", 3, 7),
                    "storage": text("The disk of a member.", _QUANTITY, 30),
                    "storageClass": name_of("The storage class; empty: the default of the cluster."),
                    "resources": resources("Resources of a member."),
                },
                "A database by Percona's operator.",
            ),
        },
        "The database.",
    )  # fmt: skip


def _common() -> dict[str, Schema]:
    return {
        "nameOverride": text("The name of the application in labels; empty: kubevnfm.", _NAME, 40),
        "fullnameOverride": text("The first part of the names of all objects.", _NAME, 40),
        "clusterDomain": text("The domain of the cluster's names.", _HOST),
        "preStopSeconds": whole("How long a pod that ends still serves, until every node knows that it ends; part of its time to end.", 0, 60),
        "listenAddress": text("The address on which the services listen.", r"^[0-9A-Fa-f.:]+$", 45),
        "mounts": several("Secrets and ConfigMaps that are folders /etc/kubevnfm/<name> of all services.", _MOUNT),
        "extraEnv": several("More environment variables of all services, such as proxies.", _VARIABLE),
        "image": closed(
            {
                "registry": text("The registry: registry.example:5000.", r"^[A-Za-z0-9.:/-]*$"),
                "repository": text("The folder of the images there.", r"^[a-z0-9._/-]+$"),
                "tag": text("The tag; empty: the version of the chart's program.", r"^[\w.-]*$", 128),
                "pullPolicy": one_of("When images are pulled.", "IfNotPresent", "Always", "Never"),
                "pullSecrets": several("Names of Secrets with access to the registry.", name_of("A Secret.")),
            },
            "The images of all services.",
        ),
        "secrets": closed(
            {"existingSecret": name_of("The Secret with keys, tokens and passwords; empty: made once.")},
            "Keys, tokens and passwords.",
        ),
        "auth": closed(
            {"usersSecret": name_of("The Secret with users.toml, for the modes basic and certificate.")}, "Callers of the gateway."
        ),
        "rabbitmq": _rabbitmq(),
        "mongodb": _mongodb(),
        "tls": closed(
            {
                "enabled": flag("Whether the services listen with TLS, by the Secrets <name of the service>-tls."),
                "issuer": closed(
                    {"name": name_of("The issuer; empty: the Secrets are there already."), "kind": one_of("Its kind.", "Issuer", "ClusterIssuer")},
                    "The issuer of cert-manager that makes these Secrets.",
                ),
            },
            "TLS between the services and at their listeners.",
        ),
        "podSecurity": closed(
            {"runAsUser": whole("The user of the processes; null: the cluster chooses.", 1, 2**31), "fsGroup": whole("The group of the volumes; null: the cluster chooses.", 1, 2**31)},
            "The user of the pods, never root.",
        ),
        "sandbox": closed(
            {
                "mode": one_of("off: such code is refused; profile: it is confined, with the profiles below; trust: it runs unconfined.", "off", "profile", "trust"),
                "seccompProfile": {**text("The seccomp profile on the nodes, with the content of deploy/base/seccomp-user-data.json."), "minLength": 1},
                "appArmorProfile": text("The AppArmor profile on the nodes, or Unconfined; empty: the nodes have no AppArmor."),
            },
            "Code of packages: user data, scripts, templates of Helm charts.",
        ),
        "networkPolicy": closed(
            {
                "enabled": flag("Whether there are NetworkPolicies."),
                "outside": several(
                    "What services reach that call VIMs, machines, subscribers and identity servers.",
                    closed({"cidr": text("A network.", _CIDR, 60), "except": several("Parts that they do not reach.", text("A network.", _CIDR, 60))}, "One network.", required=["cidr"]),
                ),
                "monitoring": _peers("Who reads metrics."),
            },
            "NetworkPolicies: only the connections that the services need.",
        ),
        "monitoring": _monitoring(),
        "keda": closed(
            {"prometheusAddress": text("The Prometheus that KEDA asks.", r"^(https?://\S+)?$", 1024), "query": {**text("What it asks.", None, LONGEST), "minLength": 1}},
            "KEDA, for services with autoscaling.enabled.",
        ),
    }  # fmt: skip


def _monitoring() -> Schema:
    labels = texts_by_name("Labels by which Prometheus or Grafana finds them.", 63)
    return closed(
        {
            "serviceMonitor": closed(
                {
                    "enabled": flag("Whether there is a ServiceMonitor for each service."),
                    "interval": text("From one scrape to the next.", r"^[0-9]+(s|m)$", 10),
                    "labels": labels,
                    "gatewaySecret": name_of("The Secret with username and password of a user with the role reader, for the gateway."),
                },
                "What Prometheus reads.",
            ),
            "prometheusRule": closed({"enabled": flag("Whether there is a PrometheusRule."), "labels": labels}, "The alerts of docs/monitoring.md."),
            "dashboards": closed({"enabled": flag("Whether there are ConfigMaps with dashboards."), "labels": labels}, "The dashboards for Grafana."),
        },
        "Monitoring by Prometheus.",
    )  # fmt: skip


def schema() -> Schema:
    """Return the schema of all values."""
    # Helm adds `global` for charts that have others.
    common = {
        **_common(),
        "global": {"type": "object", "description": "Values of other charts, which this one does not read."},
    }
    services = {key_of(service): _service(service) for service in SERVICES}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Values of kubevnfm",
        **closed(common | services, "All values."),
    }


def as_text(made: Mapping[str, Any]) -> str:
    """Return the content of the file."""
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def table() -> str:
    """Return the table of all values but the settings of the services, as Markdown."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    lines = ["| value | default | meaning |", "|---|---|---|"]
    described = set()
    for path, part, default in _leaves(schema(), defaults, ()):
        service = path[0] if path[0] in map(key_of, SERVICES) else None
        shown, key = path, (path[1:], part["description"], json.dumps(default))
        if service is not None:
            alike = [key_of(each) for each in SERVICES if _default(defaults, (key_of(each), *path[1:])) == default]
            if len(alike) == len(SERVICES):
                shown = ("<service>", *path[1:])
        if service is None or shown is path or key not in described:
            described.add(key)
            lines.append(f"| `{'.'.join(shown)}` | {_shown(default)} | {_cell(part['description'])} |")
    return "\n".join(lines)


def _leaves(part: Schema, defaults: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Schema, Any]]:
    for name, inner in part["properties"].items():
        default = defaults.get(name) if isinstance(defaults, dict) else None
        here = (*path, name)
        if here[-1] in ("settings", "secretSettings", "global"):
            continue
        if inner.get("type") == "object" and "properties" in inner and name not in ("requests", "limits"):
            yield from _leaves(inner, default, here)
        else:
            yield here, inner, default


def _default(defaults: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        defaults = defaults.get(name) if isinstance(defaults, dict) else None
    return defaults


def _shown(value: object) -> str:
    return "" if value in ("", None) else f"`{json.dumps(value)}`"


def _cell(description: str) -> str:
    return description.replace("|", "\\|")


def page_with(made: str, page: str) -> str:
    """Return the page with the table in its place."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def main() -> None:
    """Write both."""
    SCHEMA.write_text(as_text(schema()), encoding="utf-8")
    _write_page(PAGE)


def _write_page(path: Path) -> None:
    if path.exists():
        path.write_text(page_with(table(), path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
