"""The scripts of `deploy/base`, and what docker compose needs of the files of the project."""

from __future__ import annotations

import netrc as netrc_module
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pytest
import yaml
from kubevnfm_access.caller import Role
from kubevnfm_access.users import read_users
from servers.processes import PROJECT

COMPOSE: Final = ("docker-compose.yml", "docker-compose.lab.yml")
MOUNTED: Final = ("deploy/base/rabbitmq", "deploy/base/mongodb")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the project that the scripts read and write, in a folder of their own."""
    for path in (
        *COMPOSE,
        *(str(each.relative_to(PROJECT)) for each in dockerfiles(PROJECT)),
        "deploy/base/make-env.sh",
        "deploy/base/pin-images.sh",
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / path, tmp_path / path)
    for folder in MOUNTED:
        shutil.copytree(PROJECT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for pyproject in PROJECT.glob("services/*/pyproject.toml"):
        shutil.copy(pyproject, tmp_path / pyproject.relative_to(PROJECT))
    return tmp_path


class ComposeLoader(yaml.SafeLoader):
    """Reads the tag with which docker compose takes a value of an earlier file back."""


ComposeLoader.add_constructor("!reset", lambda loader, node: None)


def composed(name: str = "docker-compose.yml") -> dict[str, Any]:
    """A compose file, with its merge keys resolved."""
    document = yaml.load((PROJECT / name).read_text(encoding="utf-8"), ComposeLoader)
    return dict(document)


def services() -> dict[str, Any]:
    """The services of docker-compose.yml, by name."""
    return dict(composed()["services"])


def containers() -> dict[str, Any]:
    """Every container: those of docker-compose.yml, and those that the lab adds."""
    return {**composed("docker-compose.lab.yml")["services"], **services()}


def dockerfiles(root: Path) -> list[Path]:
    return [*root.glob("services/*/Dockerfile"), root / "deploy" / "lab" / "Dockerfile"]


def environment(one: dict[str, Any]) -> dict[str, str]:
    return dict(one.get("environment", {}))


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


@pytest.mark.parametrize("name", containers())
def test_every_container_is_confined(name: str) -> None:
    one = containers()[name]
    assert one["cap_drop"] == ["ALL"]
    assert "cap_add" not in one
    assert "privileged" not in one
    assert "no-new-privileges:true" in one["security_opt"]
    assert one["read_only"] is True
    assert re.fullmatch(r"[1-9]\d*[mg]", one["mem_limit"])
    assert 0 < one["pids_limit"] <= 2048
    assert set(one["networks"]) <= {"inside", "outside"}
    # The images of this project have a user of their own; a public image would start as root.
    if not one["image"].startswith("kubevnfm/"):
        assert one["user"].partition(":")[0] not in {"", "0", "root"}
    assert not [volume for volume in one.get("volumes", []) if "docker.sock" in volume]


def test_images_have_a_user_of_their_own() -> None:
    for file in dockerfiles(PROJECT):
        assert re.findall(r"^USER (\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE) == ["kubevnfm"], file


def test_broker_and_database_reach_nothing_outside() -> None:
    assert composed()["networks"] == {"inside": {"internal": True}, "outside": None}
    alone = {name for name, one in containers().items() if list(one["networks"]) == ["inside"]}
    assert alone == {"rabbitmq", "rabbitmq-users", "mongodb", "mongodb-users"}
    assert not [name for name in alone if "ports" in containers()[name]]
    for published in (each for one in services().values() for each in one.get("ports", [])):
        assert re.fullmatch(r"\$\{[A-Z_]+:-127\.0\.0\.1:\d+\}:\d+", published)


def test_the_compose_file_has_no_interface_without_authentication() -> None:
    """The services listen on every address of their containers, so that they would not start with mode none."""
    listening = {name for name, one in services().items() if any("_AUTH_MODES" in each for each in environment(one))}
    assert listening == {"lcm-api", "credentials-receiver"}
    for name in listening:
        one = services()[name]
        prefix = f"KUBEVNFM_{name.upper().replace('-', '_')}"
        assert environment(one)[f"{prefix}_AUTH_MODES"] == "${KUBEVNFM_AUTH_MODES:-basic}"
        assert environment(one)[f"{prefix}_AUTH_USERS_FILE"] == "/etc/kubevnfm/users/users.toml"
        assert [volume for volume in one["volumes"] if volume.endswith(":/etc/kubevnfm/users:ro")]
    text = "".join((PROJECT / name).read_text(encoding="utf-8") for name in COMPOSE)
    assert "OPEN_TO_NETWORK" not in text


def test_the_first_user_is_an_admin_whose_password_only_the_owner_reads(copy: Path) -> None:
    made = make_env(copy)
    netrc, users = copy / ".kubevnfm/netrc", copy / values(copy)["KUBEVNFM_USERS_DIR"] / "users.toml"
    found = read_users(users)
    login, _, password = netrc_module.netrc(netrc).authenticators("127.0.0.1") or ("", "", "")
    assert {name: user.roles for name, user in found.items()} == {"admin": {Role.ADMIN}}
    assert login == "admin"
    assert len(password) == 48
    hashed = found["admin"].password
    assert hashed is not None
    assert hashed.fits(password)
    assert not hashed.fits(password[:-1])
    # Containers read the users as users of their own; the folder above lets no other user of the host through.
    modes = {path.name: path.stat().st_mode & 0o777 for path in (netrc, netrc.parent, users.parent, users)}
    assert modes == {"netrc": 0o600, ".kubevnfm": 0o700, "users": 0o755, "users.toml": 0o644}
    assert "curl --netrc-file .kubevnfm/netrc http://127.0.0.1:9890/" in made.stdout
    assert password not in made.stdout + made.stderr + (copy / ".env").read_text(encoding="utf-8")


def test_an_installation_without_users_gets_an_admin_and_keeps_the_users_it_has(copy: Path) -> None:
    """Earlier versions had neither; `up` without the variable ends with the advice to run the script."""
    assert make_env(copy).returncode == 0
    env = copy / ".env"
    lines = env.read_text(encoding="utf-8").splitlines(keepends=True)
    older = [line for line in lines if not line.startswith("KUBEVNFM_USERS_DIR")]
    env.write_text("".join([*older, "KUBEVNFM_AUTH_MODES=none\nKUBEVNFM_PUBLIC_URL=https://nfv.example:8443\n"]))
    shutil.rmtree(copy / ".kubevnfm")

    added = make_env(copy, "--add")
    assert added.returncode == 0
    assert "KUBEVNFM_AUTH_MODES=none" in added.stderr
    assert netrc_module.netrc(copy / ".kubevnfm/netrc").authenticators("nfv.example")
    users = copy / values(copy)["KUBEVNFM_USERS_DIR"] / "users.toml"
    users.write_text("[users.mine]\n")
    again = make_env(copy, "--add")
    assert users.read_text() == "[users.mine]\n"
    assert (again.returncode, "netrc" in again.stdout) == (0, False)
    needed = re.findall(r"\$\{KUBEVNFM_USERS_DIR:\?([^}]*)\}", (copy / "docker-compose.yml").read_text())
    assert needed == ["run deploy/base/make-env.sh first, after an update with --add"] * 2


def test_images_without_a_digest_are_named_at_every_installation(copy: Path) -> None:
    named = make_env(copy).stderr
    text = "".join(file.read_text(encoding="utf-8") for file in (copy / COMPOSE[0], *dockerfiles(copy)))
    for image in ("mongo:8", "python:3.11-slim-bookworm", "rabbitmq:4-management"):
        assert (image in named) == (f"{image}@sha256" not in text)


def test_containers_can_read_what_a_narrow_umask_made(copy: Path) -> None:
    mounts = [volume.split(":")[0] for one in services().values() for volume in one.get("volumes", [])]
    files = [copy / source for source in mounts if source.startswith("./")]
    assert len(files) >= 4
    for argument in ("--lab", "--add"):  # an update replaces files, and is followed by --add
        for file in files:
            file.chmod(0o600)
        assert make_env(copy, argument).returncode == 0
        assert [file.stat().st_mode & 0o044 for file in files] == [0o044] * len(files)


def test_an_image_has_no_file_that_its_user_cannot_read(tmp_path: Path) -> None:
    """COPY keeps the modes of the clone, so all that an image is made of goes through install.sh."""
    installed, member = tmp_path / "opt", tmp_path / "libs" / "sample"
    (member / "kubevnfm_sample").mkdir(parents=True)
    installed.mkdir()
    (tmp_path / "deploy/base/locks").mkdir(parents=True)
    (tmp_path / "deploy/base/locks/sample.lock").write_text("./libs/sample\n")
    for file in (member / "kubevnfm_sample" / "__init__.py", installed / "healthy.py"):
        file.write_text("")
        file.chmod(0o600)
    (member / "kubevnfm_sample").chmod(0o700)
    script = (PROJECT / "deploy/base/install.sh").read_text(encoding="utf-8")
    subprocess.run(
        ["sh", "-c", script.replace("into=/opt/kubevnfm", f"into={installed}"), "install.sh", "members", "sample"],
        cwd=tmp_path, env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}, check=True, timeout=60,
    )  # fmt: skip

    made = list(installed.rglob("*"))
    assert {"healthy.py", "__init__.py"} < {path.name for path in made}
    for path in made:
        wanted = 0o055 if path.is_dir() else 0o044
        assert path.stat().st_mode & wanted == wanted, path
    for file in dockerfiles(PROJECT):
        build, final = file.read_text(encoding="utf-8").split("\nFROM ")[-2:]
        copies = re.findall(r"^COPY (\S+)", final, re.MULTILINE)
        assert copies == ["--from=build"], file
        assert build.index("COPY deploy/base/healthy.py /opt/kubevnfm/") < build.index("install.sh members"), file


def test_a_container_that_others_await_does_not_try_for_ever() -> None:
    """`up` waits until it has ended: with endless restarts a wrong password would make `up` hang."""
    depended = [one["depends_on"] for one in services().values() if isinstance(one.get("depends_on"), dict)]
    awaited = {
        name for each in depended for name, on in each.items() if on["condition"] == "service_completed_successfully"
    }
    assert awaited == {"rabbitmq-users", "mongodb-users"}
    for name in awaited:
        assert re.fullmatch(r"on-failure:\d", services()[name]["restart"])


class Refusing(BaseHTTPRequestHandler):
    """A broker whose administrator has another password."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_error(401)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_wrong_password_of_rabbitmq_is_reported_at_once(refusing: str) -> None:
    folder = PROJECT / "deploy/base/rabbitmq"
    names = [name for name in services()["rabbitmq-users"]["environment"] if name.endswith("PASSWORD")]
    done = subprocess.run(
        [sys.executable, folder / "users.py", folder / "definitions.json"],
        env=os.environ | dict.fromkeys(names, "secret-word") | {"RABBITMQ_API": refusing},
        capture_output=True, text=True, check=False, timeout=20,
    )  # fmt: skip
    assert (done.returncode, "RABBITMQ_PASSWORD" in done.stderr) == (1, True)
    assert "secret-word" not in done.stdout + done.stderr


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
    check = subprocess.run([PROJECT / "deploy/base/pin-images.sh", "--check", copy], check=False, timeout=60)
    assert check.returncode == 0
    refused = pin("x")
    assert (refused.returncode, "a digest expected" in refused.stderr) == (1, True)
    assert references() == [f"{tag}@sha256:{'b' * 64}" for tag in tags]
    for file in dockerfiles(copy):
        assert re.search(r"^FROM \S+ AS build$", file.read_text(encoding="utf-8"), re.MULTILINE)


def test_a_file_that_cannot_be_read_is_not_taken_for_one_without_images(copy: Path) -> None:
    (copy / COMPOSE[1]).unlink()
    check = subprocess.run(
        [PROJECT / "deploy/base/pin-images.sh", "--check", copy],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (check.returncode, COMPOSE[1] in check.stderr) == (2, True)
