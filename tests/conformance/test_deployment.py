"""The scripts of `deploy/base`: what they write for docker compose."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from processes import PROJECT

COMPOSE = ("docker-compose.yml", "docker-compose.lab.yml")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the project that the scripts read and write, in a folder of their own."""
    for path in (
        *COMPOSE,
        *(str(each.relative_to(PROJECT)) for each in dockerfiles(PROJECT)),
        "deploy/base/make-env.sh",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / path, tmp_path / path)
    for pyproject in PROJECT.glob("services/*/pyproject.toml"):
        shutil.copy(pyproject, tmp_path / pyproject.relative_to(PROJECT))
    return tmp_path


def dockerfiles(root: Path) -> list[Path]:
    return [*root.glob("services/*/Dockerfile"), root / "deploy" / "lab" / "Dockerfile"]


def values(folder: Path) -> dict[str, str]:
    lines = (folder / ".env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def make_env(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [folder / "deploy/base/make-env.sh", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_env_has_every_variable_that_compose_has_no_default_for(copy: Path) -> None:
    assert make_env(copy, "--lab").returncode == 0
    used = "".join((copy / name).read_text(encoding="utf-8") for name in COMPOSE)
    needed = set(re.findall(r"(?<!\$)\$\{([A-Z0-9_]+)(?=[}:](?!-))", used))
    assert len(needed) > 12
    found = values(copy)
    assert needed <= set(found)
    passwords = [value for name, value in found.items() if re.search("PASSWORD|TOKEN|KEYS", name)]
    assert len(set(passwords)) == len(passwords)
    assert (copy / ".env").stat().st_mode & 0o777 == 0o600


def test_an_update_adds_to_env_what_it_lacks_and_changes_nothing(copy: Path) -> None:
    assert make_env(copy).returncode == 0
    whole = (copy / ".env").read_text(encoding="utf-8")
    before = values(copy)
    older = "".join(line for line in whole.splitlines(keepends=True) if not line.startswith("MONGODB_VIM"))
    (copy / ".env").write_text(older, encoding="utf-8")

    refused = make_env(copy)
    assert (refused.returncode, "--add" in refused.stderr) == (1, True)
    assert make_env(copy, "--add").returncode == 0

    after = values(copy)
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == {"MONGODB_VIM_REGISTRY_PASSWORD"}


def test_images_are_pinned_by_the_digests_that_their_tags_name_now(copy: Path) -> None:
    """A stand-in for docker answers, because no registry of images can be reached by every test run."""
    programs = copy / "programs"
    programs.mkdir()

    def pin(digit: str) -> subprocess.CompletedProcess[str]:
        (programs / "docker").write_text(f"#!/bin/sh\necho sha256:{digit * 64}\n")
        (programs / "docker").chmod(0o755)
        return subprocess.run(
            [PROJECT / "deploy/base/pin-images.sh", copy],
            env={"PATH": f"{programs}:/usr/bin:/bin"}, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip

    def references() -> list[str]:
        files = [copy / name for name in COMPOSE] + dockerfiles(copy)
        lines = "\n".join(file.read_text(encoding="utf-8") for file in files)
        found = re.findall(r"^(?:FROM|\s*image:)\s+(\S+)", lines, re.MULTILINE)
        return [name for name in found if not name.startswith("kubevnfm/")]

    tags = [name.partition("@")[0] for name in references()]
    for digit in "ab":
        done = pin(digit)
        assert done.returncode == 0, done.stderr
        assert references() == [f"{tag}@sha256:{digit * 64}" for tag in tags]
    refused = pin("x")
    assert (refused.returncode, "a digest expected" in refused.stderr) == (1, True)
    assert references() == [f"{tag}@sha256:{'b' * 64}" for tag in tags]
    for file in dockerfiles(copy):
        assert re.search(r"^FROM \S+ AS build$", file.read_text(encoding="utf-8"), re.MULTILINE)
