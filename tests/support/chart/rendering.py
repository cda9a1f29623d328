"""Renders the chart with Helm 3 and Helm 4, and brings what it renders into a form that can be compared."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from servers.processes import PROJECT

from chart.values_schema import CHART

CASES: Final = PROJECT / "tests/chart/values"
GOLDEN: Final = PROJECT / "tests/chart/golden"
BASE: Final = "plain"
"""The case whose objects are in a file as they are; those of others are the differences from it."""
KUBERNETES: Final = "1.34.0"
LONG: Final = 2000

_VARIABLES: Final = {
    "helm": "KUBEVNFM_TEST_HELM",
    "helm4": "KUBEVNFM_TEST_HELM4",
    "kubeconform": "KUBEVNFM_TEST_KUBECONFORM",
}
"""The programs by the environment variable that names each."""


def program(name: str) -> str | None:
    """Return the path of ``helm`` (3), ``helm4`` or ``kubeconform``; None: it is not there. `make test-chart` builds all of them."""
    built = PROJECT / ".tools/chart" / name
    found = os.environ.get(_VARIABLES[name]) or (str(built) if built.exists() else shutil.which(name))
    if found is None or name == "kubeconform":
        return found
    version = subprocess.run(
        [found, "version", "--short"], capture_output=True, text=True, check=False, timeout=60
    ).stdout
    wanted = "v4" if name == "helm4" else "v3"
    return found if version.startswith(wanted) else None


def helm(path: str, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run Helm; ``given`` is the text of its standard input."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")}
    return subprocess.run(
        [path, *arguments], input=given, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def rendered(path: str, values: Path, *arguments: str, release: str = "vnfm") -> list[dict[str, Any]]:
    """Return the objects that the chart makes of a values file. Raises AssertionError with Helm's error."""
    return documents(template(path, values, *arguments, release=release))


def template(path: str, values: Path, *arguments: str, release: str = "vnfm") -> str:
    """Return what `helm template` prints. Raises AssertionError with Helm's error."""
    done = helm(
        path, "template", release, str(CHART), "--namespace", "nfv", "--kube-version", KUBERNETES, "--values", str(values),
        *arguments,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(text: str) -> list[dict[str, Any]]:
    """Return the objects of a stream, without empty ones."""
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def refused(path: str, values: Mapping[str, Any]) -> str:
    """Return the error with which Helm refuses values. Raises AssertionError if it takes them."""
    done = helm(
        path, "template", "vnfm", str(CHART), "--kube-version", KUBERNETES, "--values", "-", given=yaml.safe_dump(dict(values))
    )  # fmt: skip
    assert done.returncode != 0, "the values are accepted"
    return done.stderr


def by_kind(objects: Sequence[Mapping[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a kind, by name."""
    return {each["metadata"]["name"]: dict(each) for each in objects if each["kind"] == kind}


def normal(objects: Sequence[Mapping[str, Any]]) -> str:
    """Return the objects as text in a fixed order, without what differs from one run to the next and without long contents."""
    ordered = sorted(objects, key=lambda each: (each["kind"], each["metadata"]["name"]))
    text = "---\n".join(
        yaml.dump(_masked(each), Dumper=yaml.CSafeDumper, sort_keys=True, width=200) for each in ordered
    )
    return re.sub(r"(-users-)[0-9a-f]{8}\b", r"\1<hash>", text)


def _masked(one: Mapping[str, Any]) -> dict[str, Any]:
    copy = dict(one)
    if one["kind"] == "Secret":
        copy["data"] = dict.fromkeys(one["data"], "<generated>")
    if one["kind"] == "ConfigMap":
        copy["data"] = {name: "<long>" if len(text) > LONG else text for name, text in one["data"].items()}
    if one["kind"] == "PrometheusRule":
        copy["spec"] = {"groups": "<long>"}
    return copy


def cases() -> list[str]:
    """Return the names of the values files."""
    return sorted(path.stem for path in CASES.glob("*.yaml"))


def golden_of(case: str, text: str, base: str) -> str:
    """Return the content of the golden file of a case."""
    if case == BASE:
        return text
    return "".join(_differences(base, text))


def _differences(base: str, text: str) -> Iterator[str]:
    return difflib.unified_diff(
        base.splitlines(keepends=True), text.splitlines(keepends=True), f"{BASE}.yaml", "rendered", n=1
    )


def golden_path(case: str) -> Path:
    """Return the golden file of a case."""
    return GOLDEN / (f"{case}.yaml" if case == BASE else f"{case}.diff")


def main() -> None:
    """Write the golden files, with Helm 3."""
    path = program("helm")
    if path is None:
        raise SystemExit("no Helm 3: `make test-chart` builds it, or KUBEVNFM_TEST_HELM names one")
    base = normal(rendered(path, CASES / f"{BASE}.yaml"))
    for old in GOLDEN.glob("*"):
        old.unlink()
    for case in cases():
        golden_path(case).write_text(
            golden_of(case, normal(rendered(path, CASES / f"{case}.yaml")), base), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
