"""The verbs beside site files: upload, explain, config, completion, doctor, top."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import web
from callers.command_line import kubevnfm, run_here
from kubevnfm_cli import completing, config_file
from kubevnfm_cli.commands import VERBS
from kubevnfm_cli.verbs.version import client_version
from needs import cannot_have
from servers.processes import PROJECT
from worlds.lcm_world import World

SAMPLES: Final = Path(__file__).parents[3] / "samples"


# --- upload -----------------------------------------------------------------------------------------------------------


async def test_a_folder_is_uploaded_and_its_package_shown(world: World) -> None:
    ran = await kubevnfm(world.url, "upload", str(SAMPLES / "vm"), "-o", "json")
    assert ran.code == 0, ran.err
    package = json.loads(ran.out)
    assert (package["onboardingState"], package["operationalState"]) == ("ONBOARDED", "ENABLED")
    (listed,) = (await world.packages("GET")).json
    assert listed["id"] == package["id"]


async def test_a_package_that_is_refused_is_explained_and_not_kept(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "vm"
    shutil.copytree(SAMPLES / "vm", folder)
    (descriptor,) = folder.glob("Definitions/*vnfd*.yaml")
    descriptor.write_text(descriptor.read_text().replace("topology_template:", "topology_template: [", 1))
    ran = await kubevnfm(world.url, "upload", str(folder), is_terminal=True)
    assert ran.code == 1
    assert f"Definitions/{descriptor.name}" in ran.err
    assert "line " in ran.err
    assert "100% of" in ran.err, "a terminal has a bar"
    assert (await world.packages("GET")).json == []
    assert (await kubevnfm(world.url, "upload", str(folder), "--keep")).code == 1
    (kept,) = (await world.packages("GET")).json
    assert kept["onboardingState"] == "ERROR"


def test_what_is_no_package_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    environment = {"KUBEVNFM_URL": "http://127.0.0.1:1"}
    assert run_here("upload", str(tmp_path / "none"), environment=environment).code == 2
    assert run_here("upload", str(tmp_path), environment=environment).code == 1
    (tmp_path / "link").symlink_to("/etc/passwd")
    assert "leads out of the folder" in run_here("upload", str(tmp_path), environment=environment).err


# --- explain ----------------------------------------------------------------------------------------------------------


def test_the_form_of_a_site_is_explained() -> None:
    whole = run_here("explain", "site")
    assert whole.code == 0
    for section in ("vims", "regions", "packages", "instances", "links", "volumes", "subscriptions"):
        assert f"  {section} <map of map>\n" in whole.out
    part = run_here("explain", "site.instances.scale")
    assert part.out.startswith("site.instances.scale <map of whole number>\n")
    assert "  flavourId <text, required>\n" in run_here("explain", "site.instances").out
    assert "did you mean instances?" in run_here("explain", "site.instance").err
    assert run_here("explain", "site", "-o", "json").json()["title"] == "Site"


async def test_the_form_of_a_request_is_explained_for_its_package(world: World) -> None:
    package = await world.sample()
    instance_id = await world.create()
    whole = await kubevnfm(world.url, "explain", "instantiate", "--package", package["id"][:8])
    assert whole.code == 0, whole.err
    assert "  flavourId <text, required>\n" in whole.out
    # The lines are wrapped at words.
    assert "One of simple" in " ".join(whole.out.split())
    of_instance = await kubevnfm(world.url, "explain", "instantiate", "--instance", instance_id, "-o", "json")
    assert "flavourId" in of_instance.json()["properties"]
    await world.reached(await world.instantiate(instance_id))
    scale = await kubevnfm(world.url, "explain", "scale.aspectId", "--instance", instance_id)
    assert "One of VDU1_scale" in scale.out
    cluster = await world.sample("cluster")
    masters = "instantiate.additionalParams.k8s_cluster_installation_param.master_node"
    simple = await kubevnfm(world.url, "explain", masters, "--package", cluster["id"])
    assert "  pod_cidr <text" in simple.out
    assert "with flavourId=complex some fields differ: --with flavourId=complex" in simple.out
    level = "instantiate.instantiationLevelId", "--package", cluster["id"], "--with", "flavourId=complex"
    assert "Five masters, four workers" in (await kubevnfm(world.url, "explain", *level)).out
    assert (await kubevnfm(world.url, "explain", "instantiate")).code == 2
    assert "did you mean scale?" in (await kubevnfm(world.url, "explain", "scle")).err
    # The fields that `create vim -f` takes.
    vim = await kubevnfm(world.url, "explain", "vim", "--depth", "2", "--with", "type=openstack")
    assert "  auth_url <text, required>\n" in vim.out
    assert "    application_credential_id <text>\n" in vim.out
    assert "with type=kubernetes some fields differ" in vim.out
    assert "\n  ssl_ca_cert: " in (
        await kubevnfm(world.url, "explain", "vim", "--template", "--with", "type=kubernetes")
    ).out.replace("# ", "")
    # Nothing that is given is left out without a word.
    for words in (
        ["site", "x"],
        ["vim", "--instance", instance_id],
        ["scale", "a", "--package", "b"],
        ["vim", "--with", "typ=x"],
    ):
        assert (await kubevnfm(world.url, "explain", *words)).code == 2, words


# --- config -----------------------------------------------------------------------------------------------------------


def config(home: Path, *words: str, code: int = 0) -> str:
    ran = run_here("config", *words, environment={"HOME": str(home)})
    assert ran.code == code, ran.err
    return ran.out if code == 0 else ran.err


def test_contexts_are_made_shown_chosen_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / ".config/kubevnfm/config.toml"
    config(
        tmp_path,
        "set-context",
        "plant",
        "--url",
        "https://plant.example:9890",
        "--user",
        "ada",
        "--password-file",
        "plant.password",
    )
    config(tmp_path, "set-context", 'fie\nld "x"', "--url", "http://127.0.0.1:9890", "--token-env", "TOKEN")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    read = tomllib.loads(file.read_text())
    assert (read["current"], set(read["contexts"])) == ("plant", {"plant", 'fie\nld "x"'})
    assert read["contexts"]["plant"]["password_file"] == "plant.password", "a path stays as it was given"
    config(tmp_path, "set-context", "plant", "--user", "", "--token-file", "token")
    assert set(tomllib.loads(file.read_text())["contexts"]["plant"]) == {"url", "token_file", "password_file"}
    shown = json.loads(config(tmp_path, "view", "-o", "json"))
    assert [(one["name"], one["current"]) for one in shown] == [("plant", True), ('fie\nld "x"', False)]
    config(tmp_path, "use-context", 'fie\nld "x"')
    config(tmp_path, "delete-context", "plant")
    assert tomllib.loads(file.read_text())["current"] == 'fie\nld "x"'
    assert "did you mean" not in config(tmp_path, "use-context", "plant", code=2)
    assert [path.name for path in file.parent.iterdir()] == ["config.toml"]


def test_a_context_that_could_not_be_used_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / ".config/kubevnfm/config.toml"
    config(tmp_path, "set-context", "plant", "--url", "http://127.0.0.1:9890")
    before = file.read_bytes()
    assert "login" in config(tmp_path, "set-context", "plant", "--url", "http://ada:pw@host", code=2)
    assert "pw" not in config(tmp_path, "set-context", "plant", "--url", "ftp://host", code=2)
    said = config(tmp_path, "set-context", "plant", "--proxy", "http://ada:pw@host", code=2)
    assert said.startswith(f"kubevnfm: {file}: contexts.plant.proxy: ")
    assert file.read_bytes() == before
    file.write_text('[contexts.x]\nurl = "http://h"\ntoken = "s3cret"\n')
    assert "s3cret" not in config(tmp_path, "view", code=2)


def test_any_name_and_value_is_written_as_it_is() -> None:
    content = {"current": "a.b", "contexts": {"a.b": {"url": 'x"\\\n\x7f\u0000é'}}}
    assert tomllib.loads(config_file.toml_of(content)) == content


# --- completion -------------------------------------------------------------------------------------------------------


def test_verbs_options_and_nouns_are_completed_without_a_gateway() -> None:
    environment = {"KUBEVNFM_URL": "http://127.0.0.1:1", "HOME": os.devnull}
    assert set(VERBS) <= set(completing.candidates([""], environment))
    assert completing.candidates(["upl"], environment) == ["upload"]
    assert "--dry-run" in completing.candidates(["apply", "--"], environment)
    assert completing.candidates(["get", "vi"], environment) == ["vim"]
    assert completing.candidates(["get", "-o", "js"], environment) == ["json", "jsonl", "jsonpath="]
    assert completing.candidates(["config", "use"], environment) == ["use-context"]
    assert completing.candidates(["get", "vnf", ""], environment) == []
    assert completing.candidates(["operate", "web", "st"], environment) == ["start", "stop"]
    assert completing.candidates(["create", "v"], environment) == ["vnf", "vim", "volume"]
    assert completing.candidates(["explain", "vo"], environment) == ["volume"]
    assert completing.candidates(["wait", "v"], environment) == ["vnf"]
    assert completing.candidates(["help", "ups"], environment) == []
    assert completing.candidates(["help", "upl"], environment) == ["upload"]


async def test_names_and_ids_come_from_the_gateway_and_hostile_ones_do_not(world: World) -> None:
    await world.sample()
    good, bad = await world.create(vnfInstanceName="web-1"), await world.create(vnfInstanceName="$(reboot)")
    package = (await kubevnfm(world.url, "get", "pkg", "-o", "jsonpath={.items[0].id}")).out.strip()
    world.vims.add("vim-9", "openstack")
    things = {"web-1", good, bad}
    for words, expected in [
        (["instantiate", ""], things),
        (["instantiate", "--timeout", "9s", ""], things),
        (["wait", "vnf", ""], things),
        (["get", "vnf/"], {f"vnf/{one}" for one in things}),
        (["explain", "instantiate", ""], {package}),
        (["change-package", "web-1", "--package", ""], {package}),
        (["instantiate", "web-1", "--vim", "vim-9"], {"vim-9"}),
        # Any text, and what is complete.
        (["heal", "web-1", "--vnfc", ""], set()),
        (["wait", "vnf", "web-1", ""], set()),
        (["operate", "web-1", "stop", ""], set()),
    ]:
        ran = await kubevnfm(world.url, "completion", "words", *words)
        assert set(ran.out.split()) == expected, words


async def test_a_gateway_that_is_slow_delays_no_completion() -> None:
    is_over = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await is_over.wait()
        return web.json_response([])

    app = web.Application()
    app.router.add_get("/{path:.*}", slow)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        began = time.monotonic()
        ran = await kubevnfm(f"http://127.0.0.1:{runner.addresses[0][1]}", "completion", "words", "why", "")
        assert (ran.code, ran.out, ran.err) == (0, "op\nvnf\n", "")
        assert time.monotonic() - began < 10 * completing.LIMIT_S
    finally:
        is_over.set()
        await runner.cleanup()


_COMPLETIONS: Final = {
    "bash": """
        source <(kubevnfm completion bash)
        [[ $(complete -p kubevnfm) == *"-F _kubevnfm "* ]] || exit 1
        COMP_WORDS=(kubevnfm config "$1") COMP_CWORD=2
        _kubevnfm
        printf '%s\\n' "${COMPREPLY[@]}"
        """,
    # The functions of its completion system, which is for terminals.
    "zsh": """
        compdef() { [[ $* == "_kubevnfm kubevnfm" ]] || exit 1 }
        compadd() { shift; print -rl -- "$@" }
        _files() { print files }
        source <(kubevnfm completion zsh)
        words=(kubevnfm config "$1") CURRENT=3
        _kubevnfm
        """,
    "fish": 'kubevnfm completion fish | source; complete -C "kubevnfm config $argv[1]"',
}
"""Programs that print what the second word of ``kubevnfm config`` could become, from what their first argument begins."""
_PLAIN: Final = {"bash": ["--norc", "-c"], "zsh": ["-f", "-c"], "fish": ["--no-config", "-c"]}


@pytest.mark.parametrize("shell", list(_COMPLETIONS))
def test_the_script_of_a_shell_completes_in_it(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        cannot_have(f"{shell} is not installed: `make servers` installs it")
    name = ["--"] if shell == "fish" else [shell]

    def completed(begun: str) -> list[str]:
        words = [shell, *_PLAIN[shell], _COMPLETIONS[shell], *name, begun]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(tmp_path)}
        ran = subprocess.run(
            words, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
        )
        assert ran.stderr == ""
        return ran.stdout.split()

    assert sorted(completed("")) == ["delete-context", "set-context", "use-context", "view"]
    assert completed("us") == ["use-context"]
    assert "--certificate" in completed("--")


# --- doctor and top ---------------------------------------------------------------------------------------------------


async def test_a_gateway_that_is_well_is_found_so(world: World) -> None:
    ran = await kubevnfm(world.url, "doctor", "-o", "json")
    findings = {each["check"]: each["verdict"] for each in json.loads(ran.out)}
    assert {
        name: findings[name]
        for name in ("gateway", "clock", "versions", "authentication", "readiness", "service lcm-api")
    } == dict.fromkeys(("gateway", "clock", "versions", "authentication", "readiness", "service lcm-api"), "ok")
    # Whether the others run is known only 25 s after the gateway was started.
    assert findings["service infra-k8s"] == "warn"
    assert ran.code == 0


async def test_what_waits_for_a_decision_is_named(world: World) -> None:
    await world.sample()
    operation_id = await world.an_operation_in("FAILED_TEMP")
    ran = await kubevnfm(world.url, "doctor")
    assert "warn  operations: INSTANTIATE of " in ran.out
    assert f"kubevnfm why {operation_id}" in ran.out
    shown = await kubevnfm(world.url, "top")
    assert "FAILED_TEMP" in shown.out
    assert json.loads((await kubevnfm(world.url, "top", "-o", "json")).out)["operations"][0]["id"] == operation_id


def test_without_a_gateway_the_doctor_says_so_and_stops() -> None:
    ran = run_here("doctor", environment={"KUBEVNFM_URL": "http://127.0.0.1:1"})
    assert ran.code == 1
    assert "fail  gateway: http://127.0.0.1:1: " in ran.out
    assert "authentication" not in ran.out


@contextlib.asynccontextmanager
async def gateway_with(answers: Mapping[str, tuple[int, Any]], **headers: str) -> AsyncIterator[str]:
    """A gateway with an answer for each path; 401 for all others."""

    async def answer(request: web.Request) -> web.Response:
        status, body = answers.get(request.path, (401, {"detail": "who are you?"}))
        return web.json_response(body, status=status, headers=headers)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_each_thing_that_is_wrong_has_a_verdict_and_a_remedy() -> None:
    parked = {
        "service": "infra-k8s",
        "command": "infra.k8s.apply\x1b[31m",
        "operationId": "op",
        "parkedAt": "2026-01-01T00:00:00Z",
    }
    parts = [
        {"part": "store", "state": "failed", "since": "2026", "text": "It is away\x1b[2J."},
        {"part": "broker", "state": "ready", "since": "2026"},
    ]
    states = {"status": "not ready", "parts": parts, "packageCode": "refused", "parkedCommands": [parked]}
    answers = {
        "/health/live": (200, {"status": "alive"}),
        "/health/ready": (503, states),
        "/openapi.json": (200, {"info": {"version": "9.9.9"}}),
    }
    async with gateway_with(answers, Date="Fri, 01 Jan 2021 00:00:00 GMT") as sick:
        ran = await kubevnfm(sick, "doctor", "-o", "json")
        found: dict[str, dict[str, Any]] = {each["check"]: each for each in json.loads(ran.out)}
        assert {name: each["verdict"] for name, each in found.items() if each["verdict"] != "ok"} == {
            "clock": "fail", "versions": "warn", "authentication": "fail", "readiness": "fail", "package code": "warn", "parked commands": "fail",
        }  # fmt: skip
        assert all(each.get("remedy") for each in found.values() if each["verdict"] != "ok")
        assert ran.code == 1
        printed = (await kubevnfm(sick, "doctor")).out
        assert "\x1b" not in printed
        assert "fail  readiness: the gateway is not ready: store since 2026: It is away\\x1b[2J.\n" in printed
        # It serves without the broker, but an operation stands still.
        parts[0]["part"], states["status"] = "broker", "degraded"
        answers["/health/ready"] = (200, states)
        assert "fail  readiness: the gateway is degraded: broker since" in (await kubevnfm(sick, "doctor")).out


async def test_the_doctor_names_every_part_of_the_page_about_health() -> None:
    """API-199."""
    page = (PROJECT / "docs" / "health.md").read_text().partition("## The parts")[2]
    names = [*dict.fromkeys(re.findall(r"^\| `([a-z-]+)` \| [^n]", page, re.MULTILINE)), "vim-registry"]
    assert len(names) == 7
    for name in names:
        part = {"part": name, "state": "degraded", "since": "2026", "text": "It lacks something."}
        answers = {
            "/health/live": (200, {"status": "live"}),
            "/health/ready": (200, {"status": "degraded", "parts": [part]}),
        }
        async with gateway_with(answers) as url:
            said = (await kubevnfm(url, "doctor")).out
        assert f"warn  readiness: the gateway is degraded: {name} since 2026: It lacks something." in said


def process(pid: int, state: str, *troubles: str, version: str = "1.0.0") -> dict[str, Any]:
    parts = [{"part": each, "text": f"no {each}\x1b[2J", "isBlocking": True} for each in troubles]
    known = {"id": str(pid), "host": "node-1", "pid": pid, "version": version, "startedAt": "s", "seenAt": "10:00"}
    return {**known, "state": state, "since": "09:00", "troubles": parts}


async def test_each_service_is_judged_with_its_processes() -> None:
    def service(name: str, state: str, *processes: dict[str, Any], text: str | None = None) -> dict[str, Any]:
        known = {"name": name, "work": "w", "state": state, "since": "s", "processes": list(processes)}
        return {**known, "health": "problem", "text": text} if text else {**known, "health": "ok"}

    shown = [
        service("lcm-api", "ready", process(1, "ready"), process(2, "away")),
        service("infra-k8s", "not-ready", process(3, "not-ready", "store"), text="no store"),
        service("vim-registry", "missing", text="no process of it has reported"),
        service("mgmt-executor", "unknown", text="no report is heard"),
        service("infra-openstack", "ready", process(4, "ready"), process(5, "ready", version="1.1.0")),
    ]
    answers: dict[str, tuple[int, Any]] = {
        **dict.fromkeys(("/health/live", "/health/ready"), (200, {"status": "ready"})),
        "/vnflcm/v2/vnf_instances": (200, []),
        "/kubevnfm/v1/services": (200, {"services": shown}),
        "/kubevnfm/v1/vims": (200, {"items": [{"id": "1", "state": "ACTIVE", "health": "ok"}]}),
        "/kubevnfm/v1/operations": (200, {"items": []}),
        "/openapi.json": (200, {"info": {"version": client_version()}}),
    }
    async with gateway_with(answers) as url:
        ran = await kubevnfm(url, "doctor")
        lines = [line for line in ran.out.splitlines() if "service" in line or "process" in line]
        assert [line[:40].rstrip() for line in lines if not line.startswith(" ")] == [
            "ok    service lcm-api: 1 of 2 processes",
            "warn  process 2 of lcm-api on node-1: aw",
            "fail  service infra-k8s: not-ready: no s",
            "fail  process 3 of infra-k8s on node-1:",
            "fail  service vim-registry: missing: no",
            "warn  service mgmt-executor: unknown: no",
            "warn  service infra-openstack: 2 of 2 pr",
        ]
        assert "not-ready since 09:00, last report 10:00: store: no store\\x1b[2J\n" in ran.out
        assert "version 1.0.0 and 1.1.0" in ran.out
        assert ran.code == 1
        # Another process that is away takes nothing from a service; without the view, the age of the gateway is named.
        answers["/kubevnfm/v1/services"] = (200, {"services": shown[:1]})
        assert (await kubevnfm(url, "doctor")).code == 0
        answers["/kubevnfm/v1/services"] = (404, {"detail": "there is no resource at this path"})
        ran = await kubevnfm(url, "doctor")
        assert "warn  services: this gateway is older than the view of services" in ran.out
        answers["/kubevnfm/v1/services"] = (403, {"detail": "a reader may not"})
        assert "warn  services: 403: a reader may not\n" in (await kubevnfm(url, "doctor")).out


async def test_vims_that_do_not_answer_or_soon_cannot_are_named() -> None:
    vims = [
        {
            "id": "1",
            "name": "away\x1b[2J",
            "state": "UNREACHABLE",
            "health": "problem",
            "text": "no route",
            "endpoint": "https://c",
        },
        {
            "id": "2",
            "name": "old",
            "state": "ACTIVE",
            "health": "ok",
            "credentialsEnd": {"part": "client_certificate", "daysLeft": 3},
        },
        {"id": "3", "name": "good", "state": "ACTIVE", "health": "ok"},
    ]
    answers = {
        **dict.fromkeys(("/health/live", "/health/ready"), (200, {"status": "ready"})),
        "/vnflcm/v2/vnf_instances": (200, []),
        "/kubevnfm/v1/vims": (200, {"items": vims}),
        "/kubevnfm/v1/operations": (403, {"detail": "a reader may not"}),
    }
    async with gateway_with(answers) as url:
        ran = await kubevnfm(url, "doctor")
    assert ran.code == 1
    assert "fail  VIM away\\x1b[2J: UNREACHABLE: no route\n" in ran.out
    assert "warn  VIM old: its client_certificate ends in 3 days\n" in ran.out
    assert "ok    VIMs: 1 of 3 answer\n" in ran.out
    assert "warn  operations: 403: a reader may not\n" in ran.out
