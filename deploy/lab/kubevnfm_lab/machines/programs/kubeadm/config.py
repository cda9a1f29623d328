"""kubeadm's configuration files, v1beta3 and v1beta4, as far as the lab uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from kubevnfm_lab import yaml_text
from kubevnfm_lab.machines.programs.call import Call, Failed, Options

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
SINCE_MINOR: Final = {"v1beta3": 22, "v1beta4": 31}
TOKEN: Final = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


@dataclass
class KubeadmConfig:
    """One or more documents of a ``--config`` file, by kind."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    api: str = "kubeadm.k8s.io/v1beta4"

    def section(self, kind: str, *path: str) -> Any:
        """Return the value at a path of a document; None if there is none."""
        found: Any = self.documents.get(kind, {})
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found

    def text(self, kind: str, *path: str) -> str:
        """Return the same as text; empty if there is none."""
        found = self.section(kind, *path)
        return "" if found is None else str(found)


def read_config(call: Call, given: Options, *, kubeadm_minor: int) -> KubeadmConfig:
    """Return the file that ``--config`` names, empty without one; fail as kubeadm does for one that it cannot read."""
    name = given.get("--config")
    config = KubeadmConfig(api=f"kubeadm.k8s.io/{'v1beta4' if kubeadm_minor >= 31 else 'v1beta3'}")
    if not name:
        return config
    try:
        documents = [doc for doc in yaml_text.load_all(call.path(name).read_text()) if doc]
    except FileNotFoundError:
        raise Failed(f"unable to read config from {name!r}: open {name}: no such file or directory") from None
    except yaml.YAMLError as error:
        raise Failed(f"error converting YAML to JSON: yaml: {error}") from error
    for document in documents:
        if not isinstance(document, dict) or "kind" not in document or "apiVersion" not in document:
            raise Failed("invalid configuration: kind and apiVersion is mandatory information that must be specified")
        kind, api = str(document["kind"]), str(document["apiVersion"])
        if api.startswith("kubeadm.k8s.io/"):
            if kubeadm_minor < SINCE_MINOR.get(api.removeprefix("kubeadm.k8s.io/"), 10_000):
                raise Failed(f'no kind "{kind}" is registered for version "{api}"')
            config.api = api
        config.documents[kind] = document
    return config


def seconds(text: str) -> float:
    """Return a Go duration (``10m0s``) in seconds; raise ValueError."""
    if text in ("0", ""):
        return 0.0
    if not re.fullmatch(r"(\d+(\.\d+)?(ms|h|m|s))+", text):
        raise ValueError(f'time: invalid duration "{text}"')
    return sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION.findall(text))


def extra_args(value: object) -> Mapping[str, str]:
    """Return extra arguments by name: v1beta3 has a map, v1beta4 a list of name and value."""
    if isinstance(value, dict):
        return {str(name): str(each) for name, each in value.items()}
    entries: Sequence[Any] = value if isinstance(value, list) else []
    return {str(entry.get("name")): str(entry.get("value")) for entry in entries if isinstance(entry, dict)}
