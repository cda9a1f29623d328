"""Reads what each provider of Cluster API needs in the API server from the files that it ships for kustomize."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]


@dataclass(frozen=True)
class Webhooks:
    """Where the API server reaches the webhooks of a provider: it can reach no Service."""

    port: int
    ca: str
    """The CA of their certificate, PEM in base64."""

    def client(self, path: str) -> Object:
        """Return the ``clientConfig`` of the webhook with this path."""
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.ca}


@dataclass(frozen=True)
class Provider:
    """One provider: its program, and the folder with its files."""

    name: str
    config: Path

    def definitions(self, webhooks: Webhooks) -> Iterator[Object]:
        """Yield its CustomResourceDefinitions, with the labels that name the provider and its contracts."""
        crd = self.config / "crd"
        kustomization = _read(crd / "kustomization.yaml")
        labels = {**_labels(kustomization), **self._labels}
        converted = {_read(crd / each["path"])["metadata"]["name"] for each in kustomization.get("patches") or []}
        for path in kustomization["resources"]:
            definition = _read(crd / path)
            definition["metadata"].setdefault("labels", {}).update(labels)
            if definition["metadata"]["name"] in converted:
                client = webhooks.client("/convert")
                webhook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
                definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            yield definition

    def admission(self, webhooks: Webhooks) -> Iterator[Object]:
        """Yield its webhook configurations."""
        prefix = _read(self.config / "default" / "kustomization.yaml")["namePrefix"]
        for each in yaml.safe_load_all((self.config / "webhook" / "manifests.yaml").read_text()):
            each["metadata"] |= {"name": f"{prefix}{each['metadata']['name']}", "labels": self._labels}
            for one in each["webhooks"]:
                one["clientConfig"] = webhooks.client(one["clientConfig"]["service"]["path"])
            yield each

    @property
    def _labels(self) -> Mapping[str, str]:
        return _labels(_read(self.config / "default" / "kustomization.yaml"))


def _labels(kustomization: Object) -> Mapping[str, str]:
    return {key: value for each in kustomization.get("labels") or [] for key, value in each["pairs"].items()}


def _read(path: Path) -> Object:
    return dict(yaml.safe_load(path.read_text()))
