"""Sites applied to a gateway: what is made, what a repetition does, what stands in the way, and what is removed."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
from callers.command_line import Ran, Running, kubevnfm
from kubevnfm_cli import archives
from kubevnfm_csar.pack import pack as pack_csar
from servers.subscriber import Subscriber
from worlds.lcm_world import World, lcm_world, sample_request

SAMPLES: Final = Path(__file__).parents[3] / "samples"
PASSWORD: Final = "s3cret-of-the-site"
VNFD_ID: Final = sample_request("vm", "create")["vnfdId"]
NEXT_VNFD_ID: Final = "1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a4"
SITE: Final = """
site: plant
vims:
  cloud:
    type: openstack
    auth_url: http://keystone.example/v3
    auth_cred: {username: ada, password: {valueFrom: {env: CLOUD_PASSWORD}}, user_domain_name: Default}
    vim_project: {name: nfv, project_domain_name: Default}
packages:
  machine: {file: vm}
instances:
  web:
    package: machine
    vim: cloud
    flavourId: simple
    vnfInstanceDescription: front
    metadata: {owner: ada}
    additionalParams: {}
    extVirtualLinks:
      - id: external
        resourceId: net0
        extCps: [{cpdId: VDU1_CP1, cpConfig: {VDU1_CP1_1: {cpProtocolData: [{layerProtocol: IP_OVER_ETHERNET}]}}}]
"""


class Site:
    """A site file and the gateway that it is applied to."""

    def __init__(self, world: World, folder: Path) -> None:
        self.world, self.file = world, folder / "site.yaml"
        self.environment = {"CLOUD_PASSWORD": PASSWORD}
        shutil.copytree(SAMPLES / "vm", folder / "vm")
        self.write(SITE)

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def edit(self, old: str, new: str) -> None:
        text = self.file.read_text()
        assert old in text
        self.write(text.replace(old, new))

    def add_app(self, attributes: str) -> None:
        """Add an instance beside ``web``."""
        self.edit("extVirtualLinks:", "extVirtualLinks: &links")
        more = "package: machine, flavourId: simple, extVirtualLinks: *links"
        self.write(f"{self.file.read_text()}  app: {{{attributes}, {more}}}\n")

    async def run(self, verb: str, *options: str) -> Ran:
        """Run a verb; the secret is never printed."""
        ran = await kubevnfm(self.world.url, verb, "-f", str(self.file), *options, environment=self.environment)
        assert PASSWORD not in ran.out + ran.err
        return ran

    async def must(self, verb: str, *options: str, code: int = 0) -> list[str]:
        ran = await self.run(verb, *options)
        assert ran.code == code, ran.out + ran.err
        return sorted((ran.out if code == 0 else ran.err).splitlines())

    async def instance(self, name: str = "web") -> dict[str, Any]:
        found = (await self.world.lcm("GET", f"/vnf_instances?filter=(eq,vnfInstanceName,{name})")).must(200).json
        (one,) = found
        shown: dict[str, Any] = (await self.world.lcm("GET", f"/vnf_instances/{one['id']}")).must(200).json
        return shown


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    for name in ("gateway", "site"):
        (tmp_path / name).mkdir()
    async with lcm_world(tmp_path / "gateway", page_size=100, allowed_networks="127.0.0.0/8") as world:
        yield Site(world, tmp_path / "site")


@pytest.fixture
def writes(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that are no GET, as they are sent."""
    from kubevnfm_cli.gateway import Gateway

    sent: list[str] = []
    original = Gateway._once

    def counted(self: Gateway, method: str, target: str, content: Any, headers: Any) -> Any:
        if method != "GET":
            sent.append(f"{method} {target.partition('?')[0]}")
        return original(self, method, target, content, headers)

    monkeypatch.setattr(Gateway, "_once", counted)
    return sent


async def test_a_site_is_made_once_and_the_same_file_again_writes_nothing(
    site: Site, writes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, original = list[Path](), archives.pack

    def pack(folder: Path, out: Path, *, follows_links: bool = False) -> None:
        packed.append(folder)
        original(folder, out, follows_links=follows_links)

    monkeypatch.setattr(archives, "pack", pack)
    assert await site.must("diff") == [
        "+ package/machine: upload",
        "+ vim/cloud: create",
        "+ vnf/web: create, instantiate",
    ]
    assert writes == []
    assert await site.must("apply", "--wait") == [
        "package/machine uploaded", "vim/cloud created", "vnf/web created, instantiated",
    ]  # fmt: skip
    assert len(packed) == 3, "once for each command, and once more to be sent"
    web = await site.instance()
    assert (web["instantiationState"], web["metadata"]["owner"]) == ("INSTANTIATED", "ada")
    assert next(iter(web["vimConnectionInfo"].values()))["vimId"] == "vim-2"
    writes.clear()
    assert await site.must("apply", "--wait") == [
        "package/machine unchanged",
        "vim/cloud unchanged",
        "vnf/web unchanged",
    ]
    assert await site.must("diff", "--exit-code") == []
    assert writes == []
    listed = json.loads((await site.run("diff", "-o", "json")).out)
    assert {(each["kind"], each["name"], each["outcome"]) for each in listed} == {
        ("vim", "cloud", "unchanged"), ("package", "machine", "unchanged"), ("vnf", "web", "unchanged"),
    }  # fmt: skip
    assert await site.must("delete") == ["package/machine deleted", "vim/cloud deleted", "vnf/web terminated, deleted"]
    assert list(site.world.vims.records) == ["vim-1"], "what the file has not made stays"
    assert (await site.world.packages("GET")).json == []
    writes.clear()
    assert await site.must("delete") == ["package/machine unchanged", "vim/cloud unchanged", "vnf/web unchanged"]
    assert writes == []


async def test_a_change_becomes_the_operation_that_fits_or_a_refusal(site: Site, writes: list[str]) -> None:
    await site.must("apply", "--wait")
    site.edit("front", "back")
    site.edit("owner: ada", "owner: bob")
    assert await site.must("diff") == [
        '    metadata/owner: "ada" -> "bob"', '    vnfInstanceDescription: "front" -> "back"', "~ vnf/web: modify",
    ]  # fmt: skip
    assert "vnf/web modified" in await site.must("apply")
    assert (await site.instance())["metadata"]["owner"] == "bob"
    site.edit("additionalParams: {}", "additionalParams: {size: 3}")
    writes.clear()
    (line,) = await site.must("apply", code=6)
    assert line.startswith("vnf/web failed: additionalParams, instantiationLevelId")
    assert writes == []
    site.edit("additionalParams: {size: 3}", "additionalParams: {}")
    site.edit("vim: cloud", "")
    site.edit("auth_url: http://keystone.example", "auth_url: http://other.example")
    assert [line.partition(":")[0] for line in await site.must("apply", code=6)] == ["vim/cloud failed"]
    assert await site.must("diff", code=6) == [
        '! vim/cloud failed: auth_url: "http://keystone.example/v3" -> "http://other.example/v3"; delete the VIM and apply again',
        "0 to change, 2 as wanted, 1 refused",
    ]  # fmt: skip
    site.edit("http://other.example", "http://keystone.example")
    (site.file.parent / "vm" / "Files").mkdir(exist_ok=True)
    (site.file.parent / "vm" / "Files" / "note.txt").write_text("another content")
    (line,) = [line for line in await site.must("apply", code=1) if line.startswith("package/machine failed: ")]
    assert "belongs to VNF package" in line, "another content under the id of a VNFD that instances use"


async def test_another_package_changes_the_vnf_and_the_former_one_goes(site: Site, writes: list[str]) -> None:
    await site.must("apply", "--wait")
    for file in (site.file.parent / "vm" / "Definitions").iterdir():
        file.write_text(file.read_text().replace(VNFD_ID, NEXT_VNFD_ID))
    expected = {f"    vnfdId: {VNFD_ID} -> that of the new package", "~ vnf/web: change the package of"}
    assert expected | {"- former-package/machine: delete"} < set(await site.must("diff"))
    assert await site.must("apply", "--wait") == [
        "former-package/machine deleted", "package/machine uploaded", "vim/cloud unchanged", "vnf/web package changed",
    ]  # fmt: skip
    assert (await site.instance())["vnfdId"] == NEXT_VNFD_ID
    assert [each["vnfdId"] for each in (await site.world.packages("GET")).json] == [NEXT_VNFD_ID]
    writes.clear()
    await site.must("apply", "--wait")
    assert writes == []


async def test_what_was_removed_by_hand_is_planned_and_made_again(site: Site) -> None:
    """Also the VIM and the package of an instance: a dry run does not ask the gateway about what is still to be made."""
    site.edit(
        "    metadata:", "    termination: {additionalParams: {reason: {valueFrom: {env: REASON}}}}\n    metadata:"
    )
    site.environment["REASON"] = "end of the test"
    await site.must("apply", "--wait")
    vim = site.world.vims.records.pop("vim-2")
    stays = "! vnf/web failed: vim: the VNF is on another VIM, where it stays: delete it, and apply again"
    assert stays in await site.must("diff", code=6)
    site.world.vims.records["vim-2"] = vim
    one = f"/vnf_instances/{(await site.instance())['id']}"
    ended = await site.world.lcm("POST", f"{one}/terminate", {"terminationType": "FORCEFUL"})
    await site.world.reached(ended.headers["Location"].rpartition("/")[2], "COMPLETED")
    del site.world.vims.records["vim-2"]
    site.edit("flavourId: simple", "flavourId: other")
    for file in (site.file.parent / "vm" / "Definitions").iterdir():
        file.write_text(file.read_text().replace(VNFD_ID, NEXT_VNFD_ID))
    for verb in (("diff",), ("apply", "--dry-run")):
        shown = await site.must(*verb)
        assert [line for line in shown if "SHA-256" not in line and not line.startswith("    package ")] == [
            f"    vnfdId: {VNFD_ID} -> that of the new package", "+ package/machine: upload", "+ vim/cloud: create",
            "- former-package/machine: delete", "~ vnf/web: modify, instantiate",
        ], verb  # fmt: skip
    site.edit("flavourId: other", "flavourId: simple")
    site.edit("vim: cloud", "vim: clod")
    assert any(line.endswith("of this name; did you mean cloud?") for line in await site.must("apply", code=6))
    site.edit("vim: clod", "vim: cloud")
    site.edit("additionalParams: {}", "extensions: {none: 1}\n    additionalParams: {}")
    assert "vnf/web instantiated" not in await site.must("apply", "--dry-run", code=1)
    site.edit("extensions: {none: 1}\n    additionalParams: {}", "additionalParams: {}")
    assert "vnf/web instantiated" in await site.must("apply", "--wait")
    removed = await site.run("delete")
    assert removed.code == 0, removed.err
    assert "vnf/web: warning: additionalParams/reason: not used" in removed.err
    given = [
        each.get("operationParams") or {} for each in (await site.world.lcm("GET", "/vnf_lcm_op_occs?all_fields")).json
    ]
    assert {"reason": "end of the test"} in [each.get("additionalParams") for each in given]


async def test_secrets_are_sent_again_only_if_asked(site: Site, writes: list[str]) -> None:
    await site.must("apply", "--wait")
    writes.clear()
    assert "vim/cloud updated" in await site.must("apply", "--renew-secrets")
    assert writes == ["PUT /v1.0/vims/vim-2"]
    assert site.world.vims.records["vim-2"]["auth_cred"]["password"] == PASSWORD


async def test_what_others_have_made_is_a_conflict_unless_it_is_adopted(site: Site, writes: list[str]) -> None:
    package = await site.world.sample()
    other = await site.world.create(vnfInstanceName="web")
    site.world.vims.add(
        "vim-7", "openstack", name="cloud", auth_url="http://keystone.example/v3", auth_cred={}, status="ACTIVE"
    )
    writes.clear()
    lines = await site.must("apply", code=6)
    assert [line.partition(":")[0] for line in lines] == [
        "package/machine failed", "vim/cloud failed", "vnf/web skipped",
    ]  # fmt: skip
    assert "--adopt takes it over" in lines[0]
    assert "0 to change, 0 as wanted, 2 refused, 1 skipped" in await site.must("diff", code=6)
    assert writes == []
    another = await site.world.create(vnfInstanceName="web")
    assert "vnf/web failed: 2 instances have this name, and none of them a mark" in await site.must(
        "apply", "--adopt", code=6
    )
    (await site.world.lcm("DELETE", f"/vnf_instances/{another}")).must(204)
    await site.must("apply", "--adopt", "--wait")
    web = await site.instance()
    assert (web["id"], web["instantiationState"]) == (other, "INSTANTIATED")
    assert [each["id"] for each in (await site.world.packages("GET")).json] == [package["id"]]
    writes.clear()
    await site.must("apply", "--wait")
    assert writes == []
    site.edit("site: plant", "site: field")
    lines = await site.must("apply", "--adopt", code=6)
    assert all("it belongs to site plant" in line for line in lines if "skipped" not in line)


@pytest.mark.parametrize("sample", ["vm", "cluster"])
def test_a_folder_is_packed_as_the_samples_are(sample: str, tmp_path: Path) -> None:
    """The same bytes, so the checksum says whether anything differs."""
    pack_csar(SAMPLES / sample, tmp_path / "one.zip")
    archives.pack(SAMPLES / sample, tmp_path / "other.zip", follows_links=True)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


def test_a_large_file_is_packed_without_being_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "_LARGE", 10)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "image.qcow2").write_bytes(b"x" * 100)
    (tmp_path / "package" / "note").write_bytes(b"small")
    digests = set()
    for number in range(2):
        archives.pack(tmp_path / "package", tmp_path / f"{number}.zip")
        with zipfile.ZipFile(tmp_path / f"{number}.zip") as packed:
            assert packed.testzip() is None
            assert (packed.read("image.qcow2"), packed.read("note")) == (b"x" * 100, b"small")
        digests.add((tmp_path / f"{number}.zip").read_bytes())
    assert len(digests) == 1


async def test_a_call_that_is_killed_after_each_request_is_continued_by_the_next(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call does one writing request, whose answer is lost: an apply, a change of the package, and a removal."""
    from kubevnfm_cli.faults import Unreachable
    from kubevnfm_cli.gateway import Gateway

    original, may_write, lock, sent = Gateway._once, True, threading.Lock(), list[str]()

    def lossy(self: Gateway, method: str, target: str, content: Any, headers: Any) -> Any:
        nonlocal may_write
        if method == "GET":
            return original(self, method, target, content, headers)
        with lock:
            is_mine, may_write = may_write, False
        if is_mine:
            sent.append(f"{method} {target}")
            original(self, method, target, content, headers)
        raise Unreachable("killed")

    monkeypatch.setattr(Gateway, "_once", lossy)

    async def repeated(verb: str, *options: str) -> int:
        nonlocal may_write
        for count in range(20):
            may_write = True
            if (await site.run(verb, *options)).code == 0:
                return count
        raise AssertionError(sent)

    assert await repeated("apply", "--wait") == 5
    assert (await site.instance())["instantiationState"] == "INSTANTIATED"
    assert (len((await site.world.packages("GET")).json), len(site.world.vims.records)) == (1, 2)
    for file in (site.file.parent / "vm" / "Definitions").iterdir():
        file.write_text(file.read_text().replace(VNFD_ID, NEXT_VNFD_ID))
    await repeated("apply", "--wait")
    assert [each["vnfdId"] for each in (await site.world.packages("GET")).json] == [NEXT_VNFD_ID]
    assert (await site.instance())["vnfdId"] == NEXT_VNFD_ID
    await repeated("delete")
    assert ((await site.world.packages("GET")).json, (await site.world.lcm("GET", "/vnf_instances")).json) == ([], [])
    assert len(site.world.vims.records) == 1


async def test_a_failed_operation_is_shown_and_not_repeated(site: Site) -> None:
    site.world.twins.failing.add("infra.openstack.create_resources")
    (line,) = [line for line in await site.must("apply", "--wait", code=5) if line.startswith("vnf/web failed")]
    assert "INSTANTIATE is FAILED_TEMP" in line
    (again,) = await site.must("apply", code=6)
    assert "kubevnfm retry, rollback or fail" in again
    site.world.twins.failing.clear()
    (operation,) = (await site.world.lcm("GET", "/vnf_lcm_op_occs")).json
    (await site.world.lcm("POST", f"/vnf_lcm_op_occs/{operation['id']}/retry")).must(202)
    assert "vnf/web unchanged" in await site.must("apply", "--wait")


async def test_without_wait_an_operation_goes_on_and_a_repetition_leaves_it_alone(
    site: Site, writes: list[str]
) -> None:
    site.world.twins.waiting.add("infra.openstack.create_resources")
    assert "vnf/web created, instantiated" in await site.must("apply")
    writes.clear()
    (line,) = [line for line in await site.must("apply") if line.startswith("vnf/web unchanged: INSTANTIATE ")]
    assert line.endswith("goes on")
    assert writes == []
    waiting = asyncio.create_task(site.run("apply", "--wait", "--timeout", "0.3"))
    assert (await waiting).code == 3
    await site.world.twins.release()
    await site.must("apply", "--wait")


async def test_what_another_entry_needs_is_awaited_without_wait_too(site: Site) -> None:
    site.add_app("vim: cloud, after: [web]")
    site.world.twins.waiting.add("infra.openstack.create_resources")
    environment = {"KUBEVNFM_URL": site.world.url, **site.environment}
    running = Running("apply", "-f", str(site.file), "--timeout", "120s", environment=environment)
    await running.says("vnf/web: INSTANTIATE: ")
    assert [each["vnfInstanceName"] for each in (await site.world.lcm("GET", "/vnf_instances")).json] == ["web"]
    await site.world.twins.release()
    ran = await running.end()
    assert (ran.code, "vnf/app created, instantiated" in ran.out) == (0, True), ran


async def test_a_dry_run_knows_the_clusters_that_it_would_make(site: Site) -> None:
    site.add_app("vim: cloud")
    site.world.twins.failing.add("infra.openstack.create_resources")
    await site.must("apply", "--wait", code=5)
    for operation in (await site.world.lcm("GET", "/vnf_lcm_op_occs")).json:
        (await site.world.lcm("POST", f"/vnf_lcm_op_occs/{operation['id']}/rollback")).must(202)
        await site.world.reached(operation["id"], "ROLLED_BACK")
    site.edit("app: {vim: cloud", "app: {vimOf: web")
    assert await site.must("apply", "--dry-run") == ["~ vnf/app: instantiate", "~ vnf/web: instantiate"]


async def test_a_wait_survives_that_the_gateway_is_away(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubevnfm_cli.faults import Unreachable
    from kubevnfm_cli.gateway import Gateway

    original, lost = Gateway._once, list[str]()

    def lossy(self: Gateway, method: str, target: str, content: Any, headers: Any) -> Any:
        if "/kubevnfm/v1/operations/" in target and len(lost) < 4:
            lost.append(target)
            raise Unreachable("connection refused")
        return original(self, method, target, content, headers)

    monkeypatch.setattr(Gateway, "_once", lossy)
    ran = await site.run("apply", "--wait")
    assert ran.code == 0, ran.err
    assert len(lost) == 4


async def test_two_calls_at_the_same_moment_make_each_thing_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both calls have seen that nothing exists before either creates it."""
    from kubevnfm_cli.gateway import Gateway

    original = Gateway._once
    created = ("/v1.0/vims", "/vnflcm/v2/subscriptions", "/vnflcm/v2/vnf_instances", "/vnfpkgm/v2/vnf_packages")
    meetings = {path: threading.Barrier(2) for path in created}

    def together(self: Gateway, method: str, target: str, content: Any, headers: Any) -> Any:
        meeting = meetings.get(target) if method == "POST" else None
        if meeting is not None and meeting.wait(60) == 0:
            del meetings[target]
        return original(self, method, target, content, headers)

    async with Subscriber.listening() as receiver:
        site.write(f"{site.file.read_text()}subscriptions:\n  alarms: {{callbackUri: '{receiver.uri}'}}\n")
        monkeypatch.setattr(Gateway, "_once", together)
        both = await asyncio.gather(site.run("apply", "--wait"), site.run("apply", "--wait"))
        assert [ran.code for ran in both] == [0, 0], [ran.out + ran.err for ran in both]
        assert not meetings, "each was created by both"
        monkeypatch.setattr(Gateway, "_once", original)
        counts = [len((await site.world.lcm("GET", path)).json) for path in ("/vnf_instances", "/subscriptions")]
        assert counts == [1, 1]
        assert (len((await site.world.packages("GET")).json), len(site.world.vims.records)) == (1, 2)
        # A thing that is no longer the site's does not keep its place.
        left = site.file.with_name("left.json")
        left.write_text('{"metadata": {"kubevnfm_site": null}}')
        renamed = await kubevnfm(site.world.url, "modify", "web", "-f", str(left), "--name", "own", "--wait")
        assert renamed.code == 0, renamed.err
        assert "vnf/web created, instantiated" in await site.must("apply", "--wait")


async def test_subscriptions_are_made_replaced_and_removed(site: Site, writes: list[str]) -> None:
    async with Subscriber.listening() as receiver:
        text = f"site: plant\nsubscriptions:\n  alarms: {{callbackUri: '{receiver.uri}?token=x', verbosity: SHORT"
        text += ", filter: {notificationTypes: [VnfLcmOperationOccurrenceNotification]}}\n"
        site.write(text)
        assert await site.must("apply") == ["subscription/alarms created"]
        writes.clear()
        assert await site.must("apply") == ["subscription/alarms unchanged"]
        assert writes == []
        site.edit("SHORT, filter: {notificationTypes: [VnfLcmOperationOccurrenceNotification]}", "FULL")
        assert await site.must("diff") == [
            "    filter/notificationTypes: not wanted", '    verbosity: "SHORT" -> "FULL"', "~ subscription/alarms: replace",
        ]  # fmt: skip
        assert await site.must("apply") == ["subscription/alarms replaced, the former deleted"]
        (left,) = (await site.world.lcm("GET", "/subscriptions")).json
        assert (left["verbosity"], left["metadata"]) == ("FULL", {"kubevnfm_site": "plant", "name": "alarms"})
        assert await site.must("delete") == ["subscription/alarms deleted"]


async def test_a_vnf_is_scaled_to_the_levels_of_the_file(site: Site) -> None:
    request = sample_request("vm", "instantiate")
    assert request["flavourId"] == "simple"
    site.edit("additionalParams: {}", "additionalParams: {colour: blue}")
    ran = await site.run("apply", "--wait")
    assert ran.code == 0
    assert "vnf/web: warning: additionalParams/colour: not used" in ran.err
    (status,) = (await site.instance())["instantiatedVnfInfo"]["scaleStatus"]
    aspect = status["aspectId"]
    site.edit("metadata: {owner: ada}", f"scale: {{{aspect}: {status['scaleLevel'] + 1}}}")
    assert f"    scale/{aspect}: {status['scaleLevel']} -> {status['scaleLevel'] + 1}" in await site.must("diff")
    assert "~ vnf/web: scale" in await site.must("apply", "--dry-run")
    site.edit(f"{aspect}: {status['scaleLevel'] + 1}", f"{aspect}: 9")
    refused = await site.must("apply", "--dry-run", code=1)
    assert any(line.startswith("! vnf/web failed: 400: ") for line in refused), refused
    site.edit(f"{aspect}: 9", f"{aspect}: {status['scaleLevel'] + 1}")
    assert len((await site.world.lcm("GET", "/vnf_lcm_op_occs")).json) == 1, "a dry run begins nothing"
    assert "vnf/web scaled" in await site.must("apply")
    assert (await site.instance())["instantiatedVnfInfo"]["scaleStatus"][0]["scaleLevel"] == status["scaleLevel"] + 1
    site.edit(aspect, "other")
    (line,) = await site.must("apply", code=6)
    assert f"no aspect other; this VNF has {aspect}" in line
