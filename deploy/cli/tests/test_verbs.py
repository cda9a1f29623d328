"""The verbs against a gateway: what they show, what they send, and with which exit code they end."""

from __future__ import annotations

import asyncio
import importlib
import json
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from callers.command_line import Ran, kubevnfm
from kubevnfm_cli import completing
from kubevnfm_cli.bodies import read_body, with_parameters
from kubevnfm_cli.call import Parser
from kubevnfm_cli.commands import VERBS
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.nouns import NOUNS
from kubevnfm_events import Envelope
from kubevnfm_events.vim import VimStatusChanged
from kubevnfm_kit.errors import Conflict
from kubevnfm_lcm_api.automation.domain.action import Waiting
from patience import until
from real.alertmanager import fault, message
from worlds.lcm_world import SAMPLES, World
from worlds.pm_documents import LATER, store_action, store_job, store_threshold


@pytest.fixture
async def vm(world: World) -> World:
    await world.sample()
    return world


async def run(world: World, *words: str, **more: Any) -> Ran:
    return await kubevnfm(world.url, *words, **more)


def understood(command: str) -> str:
    """Return the verb of a command that the gateway has named, once its words are understood."""
    program, verb, *words = shlex.split(command)
    assert program == "kubevnfm"
    parser = Parser(verb, VERBS[verb].summary)
    importlib.import_module(VERBS[verb].module).arguments(parser)
    parser.parse_args(words)
    return verb


REQUEST = SAMPLES / "vm/requests/instantiate.json"


async def test_a_vnf_by_the_command_line_alone_from_its_creation_to_its_end(vm: World) -> None:
    package = (await run(vm, "get", "pkg", "-o", "jsonpath={.items[0].id}")).out.strip()
    made = await run(vm, "create", "vnf", "--package", package, "--name", "web", "--metadata", "team=a")
    assert (made.code, made.err) == (0, "")
    instance = made.out.strip().removeprefix("vnf/")
    vm.vims.add("vim-9", "openstack")
    on_vim = ("instantiate", "web", "-f", str(REQUEST), "--vim", "vim-9", "--flavour")
    assert (await run(vm, *on_vim, "simple", "--dry-run")).out.startswith("INSTANTIATE would have 1 step,")
    refused = await run(vm, *on_vim, "absent", "--dry-run")
    assert (refused.code, "absent" in refused.err) == (1, True)
    assert (await run(vm, "instantiate", "web", "--vim", "vim-8", "--flavour", "simple")).code == 1
    ran = await run(vm, "instantiate", "web", "-f", str(REQUEST), "--wait", "--timeout", "60s")
    assert ran.code == 0
    assert ran.out.splitlines()[-1].startswith("INSTANTIATE of web: COMPLETED after ")
    # Progress is not data.
    assert "step 1/1" in ran.err
    assert "step 1/1" not in ran.out
    shown = (await run(vm, "get", "vnf/web", "-o", "json")).json()
    assert (shown["id"], shown["instantiationState"], shown["metadata"]["team"]) == (instance, "INSTANTIATED", "a")
    row = (await run(vm, "get", "vnf", "web")).out.splitlines()[1].split()
    assert row[:5] == [instance, "web", "INSTANTIATED", "ok", "machines"]
    for words, said in [
        (("heal", "web", "--cause", "x"), "HEAL would have "),
        (("operate", "web", "stop", "--graceful", "5"), "OPERATE would have 1 step,"),
        (("terminate", "web", "--graceful", "5"), "TERMINATE would have "),
        (("modify", "web", "--description", "x", "--metadata", "a=b"), "the request is valid"),
    ]:
        planned = await run(vm, *words, "--dry-run")
        assert (planned.code, planned.out.startswith(said)) == (0, True), planned
    scaled = await run(vm, "scale", "web", "--aspect", "absent", "--out", "2", "--dry-run")
    assert (scaled.code, "absent" in scaled.err) == (1, True)
    tree = (await run(vm, "describe", "vnf", "web")).out
    assert tree.splitlines()[0].startswith("✓ ")
    assert "web" in tree
    ran = await run(vm, "instantiate", "web", "-f", str(REQUEST))
    assert (ran.code, ran.err.endswith("NOT_INSTANTIATED expected: terminate it first\n")) == (6, True)
    assert (await run(vm, "why", "wbe")).err.endswith("; did you mean web?\n")
    renamed = await run(vm, "modify", "web", "--name", "web2", "--wait")
    assert renamed.code == 0
    ended = await run(vm, "terminate", "web2", "--wait", "-o", "jsonpath={.operation} {.state}")
    assert (ended.code, ended.out) == (0, "TERMINATE COMPLETED\n")
    operations = (await run(vm, "get", "op", "--where", f"vnfInstanceId={instance}", "-o", "jsonl")).out.splitlines()
    assert [json.loads(line)["operation"] for line in operations] == ["TERMINATE", "MODIFY_INFO", "INSTANTIATE"]
    assert (await run(vm, "drift")).out == ""
    assert (await run(vm, "delete", "vnf", "web2", "--dry-run")).out == f"vnf/{instance} would be deleted\n"
    assert (await run(vm, "delete", "vnf", "web2", instance)).out == f"vnf/{instance}\n"
    assert (await run(vm, "get", "vnf")).err == "nothing found\n"


async def test_a_failed_operation_is_explained_described_and_decided(vm: World) -> None:
    operation_id = await vm.an_operation_in("FAILED_TEMP")
    instance = (await vm.operation(operation_id))["vnfInstanceId"]
    why = await run(vm, "why", "vnf", instance)
    assert why.code == 0
    lines = why.out.splitlines()
    assert lines[0].startswith("INSTANTIATE of machine: FAILED_TEMP after ")
    assert lines[1].startswith("why: ")
    assert any(line.startswith(f"  kubevnfm retry {operation_id}") for line in lines)
    assert lines[-1].startswith("more: docs/errors.md#")
    twice = await run(vm, "why", f"vnf/{instance}", operation_id)
    assert twice.out.splitlines()[1:] == lines[1:], "one thing is shown once"
    body = (await run(vm, "why", operation_id, "-o", "json")).json()
    assert {understood(one["command"]) for one in body["next"]} == {"retry", "rollback", "fail"}
    assert body["cause"]["text"] in lines[1]
    described = (await run(vm, "describe", "op", operation_id[:10])).out
    assert "✗ Create the virtual resources" in described
    assert "next:" in described
    assert "automatic:" not in described
    reason = {"trigger": "alarm", "trigger_id": "alarm-1", "reason": "The machine is lost.", "action_id": "action-1"}
    await vm.store.update("vnf_lcm_op_occs", operation_id, {"internal/automatic": reason})
    described = (await run(vm, "describe", "op", operation_id)).out
    assert "automatic: by alarm alarm-1, action action-1\n          The machine is lost.\n" in described
    vm.twins.failing.add("infra.openstack.create_resources")
    assert (await run(vm, "retry", operation_id, "--wait")).code == 5
    ended = await run(vm, "rollback", operation_id, "--wait")
    assert (ended.code, "ROLLED_BACK after" in ended.out) == (0, True)
    assert (await run(vm, "retry", operation_id)).code == 6
    assert (await run(vm, "why", operation_id)).out.splitlines()[0].startswith("INSTANTIATE of ")


async def test_cancel_stops_an_operation_and_fail_gives_it_up(vm: World) -> None:
    operation_id = await vm.an_operation_in("PROCESSING")
    possible = (await run(vm, "why", operation_id, "-o", "json")).json()["next"]
    assert {understood(one["command"]) for one in possible} == {"wait", "cancel"}
    cancelled = await run(vm, "cancel", operation_id, "--mode", "forceful", "--wait")
    assert (cancelled.code, "FAILED_TEMP after" in cancelled.out) == (0, True)
    assert (await run(vm, "fail", operation_id)).out == f"op/{operation_id}\n"
    assert (await vm.operation(operation_id))["operationState"] == "FAILED"


async def test_things_of_each_kind_are_listed_and_described(world: World) -> None:
    assert (await run(world, "get", "all")).out.startswith("VIMs: ")
    world.vims.add("vim-1", "openstack")
    world.regions.add("plant/one", "vim-2")
    for noun in NOUNS:
        listed = await run(world, "get", noun.name, "-o", "json")
        assert (listed.code, listed.err) == (0, ""), noun.name
    assert (await run(world, "get", "vims")).out.splitlines()[1].startswith("vim-1 ")
    with patch.object(world.vims, "delete", side_effect=Conflict("VIM vim-1 is used")):
        refused = await run(world, "delete", "vim", "vim-1")
    assert (refused.code, "is used; kubevnfm get vnf --where vimId=vim-1 lists" in refused.err) == (6, True)
    assert (await run(world, "get", "region/plant/one", "-o", "name")).out == "region/plant/one\n"
    assert "plant/one" in (await run(world, "describe", "region", "one")).out
    await subscriptions_are_shown_with_their_deliveries(world)
    await alarms_are_listed_described_and_acknowledged(world)
    await what_is_measured_is_listed_described_and_deleted(world)
    await automatic_actions_are_listed_described_and_cancelled(world)


async def subscriptions_are_shown_with_their_deliveries(world: World) -> None:
    """A subscription of any API is shown, found by the beginning of its id, and deleted by its own API."""
    view = "/kubevnfm/v1/subscriptions"
    failed = {"delivery": {"failures": 2, "last_failure": "no route"}, "failingSince": "2026-11-28T00:00:00.000Z"}
    ids = ["8f0c1c3e-0000-4000-8000-000000000000", "7a6b5c4d-0000-4000-8000-000000000000"]
    for identifier, api, more in ((ids[1], "v2", failed), (ids[0], "vnfpkgm-v2", {})):
        made = {"id": identifier, "apiVersion": api, "callbackUri": f"https://nfvo.example/{api}", "createdAt": api}
        await world.store.insert("subscriptions", identifier, {**made, **more})
    listed = (await run(world, "get", "sub", "-o", "json")).json()
    shown = (await world.call("GET", view)).must(200).json
    assert ([each["api"] for each in listed["items"]], listed["items"]) == (["vnfpkgm-v2", "v2"], shown["items"])
    described = (await run(world, "describe", "sub", ids[1][:8])).out
    assert "health: problem" in described
    assert "lastFailure: no route" in described
    rows = (await run(world, "get", "sub", "-o", "csv")).out
    assert rows.startswith("ID,API,")
    bare = await run(world, "get", "sub", "-o", "csv", "--no-headers", "--sort-by", "api")
    assert [row.split(",")[1] for row in bare.out.splitlines()] == ["v2", "vnfpkgm-v2"]
    by_path = await run(world, "get", "sub", "-o", "jsonpath={.items[*].api}", "--sort-by", ".id")
    assert by_path.out == "v2 vnfpkgm-v2\n"
    first = await run(world, "get", "sub", "-o", "jsonpath={.items[*].api}", "--sort-by", "api", "--limit", "1")
    assert (first.out, first.err) == ("v2\n", "there are more than 1: --limit and --where select others\n")
    assert not (await run(world, "get", "sub", "--no-headers")).out.startswith("ID ")
    both = (await run(world, "describe", "sub", *ids, "-o", "jsonpath={[*].id}")).out
    assert both.split() == ids
    assert "v2,IDLE,problem,0,,https://nfvo.example/v2," in rows
    assert "notifications were given up: no route" in rows
    words = ["describe", "sub", ids[0][:6]]
    assert await asyncio.to_thread(completing.candidates, words, {"KUBEVNFM_URL": world.url}) == [ids[0]]
    for each in ids:
        assert (await run(world, "delete", "sub", each[:8])).out == f"sub/{each}\n"
    assert (await run(world, "get", "sub")).err == "nothing found\n"


async def alarms_are_listed_described_and_acknowledged(world: World) -> None:
    """The alarm of a VIM; the search finds it by the beginning of its id."""
    world.vims.records["vim-1"].update(status="UNREACHABLE", status_reason="Keystone: connection refused")
    away = VimStatusChanged(vim_id="vim-1", name="lab", old_status="ACTIVE", status="UNREACHABLE")
    await world.bus.publish(Envelope(data=away, source="/kubevnfm/vim-registry"))

    async def raised() -> list[Any] | None:
        return (await world.call("GET", "/kubevnfm/v1/alarms?object=vim-1")).must(200).json["items"] or None

    (alarm,) = await until(raised, timeout_s=300)
    words = ["get", "alarm", "-o", "csv", "--no-headers"]
    row = f"{alarm['id']},MAJOR,OPEN,vim-unreachable,vim/vim-1,no,{alarm['raisedAt']},vim-away,vim-1,"
    assert (await run(world, *words, "--where", "severity=MAJOR", "--where", "state=OPEN")).out.startswith(row)
    assert (await run(world, *words, "--where", "state=CLEARED")).out == ""
    assert "probableCause: vim-away" in (await run(world, "describe", "alarm", alarm["id"][:8])).out
    for _ in range(2):  # one that is seen already stays so
        assert (await run(world, "ack", alarm["id"][:8])).out == f"alarm/{alarm['id']}\n"
    assert len((await run(world, *words, "--where", "ackState=ACKNOWLEDGED")).out.splitlines()) == 1
    await run(world, "ack", "--undo", alarm["id"])
    assert (await run(world, *words, "--where", "ackState=ACKNOWLEDGED")).out == ""
    found = await asyncio.to_thread(completing.candidates, ["ack", alarm["id"][:6]], {"KUBEVNFM_URL": world.url})
    assert found == [alarm["id"]]


async def what_is_measured_is_listed_described_and_deleted(world: World) -> None:
    """PM jobs with their newest values and last report, and thresholds; by the beginning of their ids."""
    ids = ["1f0c1c3e-0000-4000-8000-000000000000", "2a6b5c4d-0000-4000-8000-000000000000"]
    web = "3a6b5c4d-0000-4000-8000-000000000000"
    await store_job(world.store, ids[0], web, "other", failures=2)
    await store_threshold(world.store, ids[1], web)
    listed = (await run(world, "get", "pmjob", "-o", "csv", "--no-headers", "--sort-by", "AGE")).out
    row = f'{ids[0]},WAITING,{web} and 1 more,Vnfc,"VCpuUsageMeanVnf, VirtualisedComputeResource",1m,1,'
    assert listed.startswith(row)
    assert listed.endswith(",Prometheus does not answer (2 times in a row)\n")
    of_web = ["get", "pmjobs", "--where", f"vnfInstanceId={web}", "-o", "name"]
    assert (await run(world, *of_web)).out == f"pmjob/{ids[0]}\n"
    described = (await run(world, "describe", "pmjob", ids[0][:8])).out
    newest, report = described.partition("newest values:")[2].split("last report, ")
    cells = [" ".join(each.split()) for each in (newest + report).splitlines()]
    assert any(each.startswith(f"VCpuUsageMeanVnf {web} web-0 30 ") for each in cells)
    assert "gap from 2026-11-28T10:02:00.000Z to 2026-11-28T10:03:00.000Z: no value of web-1" in cells
    assert "METRIC VNF PART VALUES LEAST MEAN GREATEST LAST" in cells
    assert f"VCpuUsageMeanVnf {web} web-1 2 11 16 21 21" in cells
    assert "lastValues" not in described, "they are in the table alone"
    assert (await run(world, "get", "pmjob", ids[0][:6], "-o", "json")).json()["lastValues"][0]["value"] == 30
    row = f"{ids[1]},MEASURING,UP,{web},Vnfc,VCpuUsageMeanVnf,80.0,5.0,3,"
    assert (await run(world, "get", "threshold", "-o", "csv", "--no-headers")).out.startswith(
        f'{row}"up: SCALE_OUT, aspect web",'
    )
    assert "side: UP" in (await run(world, "describe", "threshold", ids[1][:6])).out
    for noun, identifier in zip(("pmjob", "threshold"), ids, strict=True):
        words = ["describe", noun, identifier[:6]]
        assert await asyncio.to_thread(completing.candidates, words, {"KUBEVNFM_URL": world.url}) == [identifier]
        assert (await run(world, "delete", noun, identifier[:8])).out == f"{noun}/{identifier}\n"
        assert (await run(world, "get", noun)).err == "nothing found\n"


async def automatic_actions_are_listed_described_and_cancelled(world: World) -> None:
    """Those that have not ended first; with the reason for which one was not done, or what it waits for."""
    done, waits = "4f0c1c3e-0000-4000-8000-000000000000", "5a6b5c4d-0000-4000-8000-000000000000"
    await store_action(world.store, done, "vnf-1")
    waiting = Waiting(what="COOL_DOWN", text="a scaling has ended a moment ago", since=LATER)
    await store_action(
        world.store, waits, "vnf-1", state="WAITING", waiting=waiting, reason=None, operation="HEAL", aspect_id=None, direction=None,
    )  # fmt: skip
    rows = (await run(world, "get", "automatic-action", "-o", "csv", "--no-headers")).out.splitlines()
    assert rows[0].startswith(f"{waits},WAITING,HEAL,web,")
    assert rows[0].endswith(",a scaling has ended a moment ago")
    assert rows[1].startswith(f"{done},NOT_DONE,SCALE_OUT web,web,")
    assert rows[1].endswith(",aspect web is at its highest level")
    of_state = ["get", "actions", "--where", "state=NOT_DONE", "-o", "name"]
    assert (await run(world, *of_state)).out == f"automatic-action/{done}\n"
    assert "kind: threshold" in (await run(world, "describe", "automatic-action", done[:8])).out
    assert (await run(world, "delete", "action", waits[:8])).out == f"automatic-action/{waits}\n"
    assert (await run(world, "get", "action", waits, "-o", "jsonpath={.state}")).out == "NOT_DONE\n"
    assert (await run(world, "delete", "action", done)).code == 6, "it has ended"


async def test_a_vnf_is_described_with_its_open_alarms_and_automatic_actions(world: World) -> None:
    await world.sample()
    web = await world.create(vnfInstanceName="web")
    assert "open alarms" not in (await run(world, "describe", "vnf", "web")).out
    (await world.call("POST", "/alert", message(fault(web)), headers={})).must(204)
    for number in range(6):
        state = {"state_since": LATER, "created_at": f"2026-11-28T1{number}:00:00.000Z", "reason": f"reason {number}"}
        await store_action(world.store, f"action-{number}", web, **state)
    listed = (await run(world, "get", "vnf", "-o", "csv", "--no-headers")).out
    assert listed.startswith(f"{web},web,NOT_INSTANTIATED,problem,")
    assert "alarm Server Down (WARNING): No answer." in listed
    assert (await run(world, "get", "vnf", "--where", "problem=true", "-o", "name")).out == f"vnf/{web}\n"
    described = (await run(world, "describe", "vnf", "web")).out
    tree, rest = described.split("\nopen alarms:\n")
    alarms, actions = rest.split("\nautomatic actions:\n")
    assert "alarm Server Down (WARNING): No answer." in tree
    assert alarms.splitlines()[1].split()[1:4] == ["WARNING", "OPEN", "Server"]
    assert [each.split()[0] for each in actions.splitlines()[1:6]] == [f"action-{one}" for one in (5, 4, 3, 2, 1)]
    assert "reason 5" in actions
    assert f"there are more: kubevnfm get automatic-action --where vnfInstanceId={web}\n" in actions


async def test_warnings_of_a_request_are_shown_with_the_name_that_is_meant(vm: World) -> None:
    instance = await vm.create()
    words = ("instantiate", instance, "-f", str(REQUEST), "--set", "some-thing=x")
    planned = await run(vm, *words, "--dry-run")
    assert planned.code == 0
    assert planned.out.splitlines()[1:] == ["   1  Create the virtual resources"]
    assert planned.err.startswith("warning: ")
    assert (await run(vm, *words, "--dry-run", "-o", "jsonpath={.operation}")).out == "INSTANTIATE\n"
    assert (await run(vm, "get", "op")).err == "nothing found\n"
    started = await run(vm, *words)
    assert started.code == 0
    assert "warning: " in started.err
    assert started.err.splitlines()[-1].startswith("accepted; kubevnfm wait op ")


async def test_events_and_logs_are_shown(vm: World) -> None:
    operation_id = await vm.an_operation_in("PROCESSING")
    printed = await run(vm, "logs", "op", operation_id, "--node", "worker1")
    assert (printed.code, printed.err) == (0, "")
    assert "worker1" in printed.out
    refused = await run(vm, "events", "-o", "csv")
    assert refused.code == 2
    drawn = (await run(vm, "trace", "op", operation_id)).out.splitlines()
    assert drawn[0].startswith("trace ")
    assert [line.split()[:2] for line in drawn[1:3]] == [["▸", "INSTANTIATE"], ["▸", "create_resources"]]
    assert "…" in drawn[1]
    shown = (await run(vm, "trace", "op", operation_id, "-o", "json")).json()["resourceSpans"]
    names = [span["name"] for service in shown for span in service["scopeSpans"][0]["spans"]]
    assert names[:2] == ["INSTANTIATE", "create_resources"]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("instantiate", "absent", "--flavour", "x"), 1, "no vnf has the name absent"),
        (("scale", "absent", "--out", "0", "--aspect", "a"), 2, "at least 1 step expected"),
        (("scale", "absent"), 2, "--aspect ID with --out STEPS"),
        (("scale", "absent", "--to", "a=b"), 2, "ASPECT=LEVEL expected"),
        (("operate", "absent"), 2, "start or stop expected"),
        (("modify", "absent"), 2, "nothing to modify"),
        (("create", "vnf"), 2, "--package PKG or --vnfd ID expected"),
        (("create", "vim", "--name", "x"), 2, "-f FILE expected; kubevnfm explain vim shows its fields"),
        (("create", "thing"), 2, "one of vnf, op, pkg"),
        (("get", "vmi"), 2, "expected; did you mean vim?"),
        (
            ("instantiate", "absent", "--flavor=x"),
            2,
            "--flavor=x; did you mean --flavour?; see kubevnfm instantiate --help",
        ),
        (("get",), 2, "a noun expected: vnf, op, pkg"),
        (("delete", "alarm", "6f1c"), 2, "are not deleted"),
        (("create", "alarm"), 2, "raises them"),
        (("create", "automatic-action"), 2, "ask for them"),
        (("get", "pmjbo"), 2, "did you mean pmjob?"),
        (("get", "treshold"), 2, "did you mean threshold?"),
        (("describe", "pmjob", "absent"), 1, "no pmjob has an id that begins with absent"),
        (("get", "vnf", "--sort-by", "NAEM"), 2, "or a JSONPath as .name; did you mean NAME?"),
        (("get", "vnf", "--sort-by", ".items[?]"), 2, "jsonpath: "),
        (("get", "vnf/absent", "--sort-by", "NAEM"), 2, "did you mean NAME?"),
        (("drift", "absent", "--sort-by", "NAEM"), 2, "did you mean NAME?"),
        (("get", "vnf", "--where", "nam=x"), 1, "nam: no such query parameter: did you mean name?"),
        (("upload", __file__), 1, f"{__file__}: 400: "),
        (("get", "vnf", "-o", "json", "--no-headers"), 2, "--no-headers is for -o table, wide and csv"),
        (("get", "vnf", "-w", "--sort-by", "name"), 2, "--sort-by is not for --watch"),
        (("get", "vnf,op", "-o", "json"), 2, "-o json is for one noun"),
        (("get", "all", "--where", "a=b"), 2, "several nouns have no ID"),
        (("get", "vnf,op", "--limit", "0"), 2, "at least 1 expected"),
        (("get", "vnf,op", "--timeout", "1s"), 2, "--timeout is for --watch"),
        (("get", "vnf", "--output-watch-events"), 2, "--output-watch-events is for --watch"),
        (
            ("get", "vnf/00000000-0000-4000-8000-000000000000", "pkg/00000000-0000-4000-8000-000000000000"),
            2,
            "things of one kind",
        ),
        (("describe", "web"), 2, "as in describe vnf web"),
        (("heal", "absent", "--set", "s3cret"), 2, "--set: KEY=VALUE expected"),
        (("wait", "op", "00000000-0000-4000-8000-000000000000"), 1, "404: "),
        (("wait", "vim", "x"), 2, "op or vnf expected"),
        (("wait", "x", "--timeout", "soon"), 2, "a duration as 90s, 10m or 1h30m expected"),
        (("heal", "absent", "--wait", "--timeout", "soon"), 2, "a duration as 90s, 10m or 1h30m expected"),
        (("heal", "absent", "-o", "jsonpath={"), 2, "pairs of braces expected"),
        (("apply", "-f", "absent", "-o", "csv"), 2, "-o csv is not for sites"),
        (("explain", "vnf"), 2, "site, a noun or an operation expected"),
        (("describe", "pkg"), 2, "an id or a name expected"),
        (("delete", "vnf"), 2, "NOUN ID or -f FILE expected"),
        (("delete", "op", "x"), 2, "cannot be deleted"),
    ],
)
async def test_wrong_words_are_one_line(words: tuple[str, ...], code: int, complaint: str, world: World) -> None:
    ran = await run(world, *words)
    assert (ran.code, ran.out) == (code, "")
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1
    assert "s3cret" not in ran.err


class Given:
    """The options of a verb."""

    def __init__(self, *words: str, texts: tuple[str, ...] = (), files: tuple[str, ...] = ()) -> None:
        self.set, self.set_string, self.set_file = words, texts, files


async def test_a_name_is_taken_for_no_other_thing(vm: World) -> None:
    """An id can begin with a name such as `cafe`."""
    operation = await vm.an_operation_in("PROCESSING")
    other = await vm.create(vnfInstanceName=operation[:8])
    assert (await run(vm, "why", "op", operation[:8])).code == 0
    for verb in ("cancel", "why", "wait"):
        ran = await run(vm, verb, operation[:8])
        assert (ran.code, "has had no operation" in ran.err) == (1, True), (verb, ran)
    ran = await run(vm, "wait", other, operation)
    assert (ran.code, f"operation {operation} is not one of the VNF {other}" in ran.err) == (2, True)
    for words in (("delete", "vnf", other[:7]), ("terminate", other[:7]), ("describe", "vnf", other[:3])):
        ran = await run(vm, *words)
        assert (ran.code, "characters of it" in ran.err) == (1, True), (words, ran)
    package = (await run(vm, "get", "pkg", "-o", "name")).out.strip()
    ran = await run(vm, "delete", "pkg", package)
    assert (ran.code, "is in use" in ran.err) == (6, True)
    assert (await run(vm, "get", "pkg", "-o", "jsonpath={.items[0].operationalState}")).out == "ENABLED\n"
    assert (await run(vm, "delete", "vnf", other[:8])).code == 0
    await vm.twins.release()


def test_parameters_are_set_below_names_with_values_of_yaml(tmp_path: Path) -> None:
    secret = tmp_path / "word"
    secret.write_text("s3cret")
    given = Given("a.b=1", "a.c=[x, true]", r"d\.e=no", "f=", "g=null", texts=("h=1",), files=(f"i={secret}",))
    body = with_parameters({"additionalParams": {"a": {"z": 0}, "k": "kept"}}, given)
    assert body["additionalParams"] == {
        "a": {"z": 0, "b": 1, "c": ["x", True]}, "d.e": "no", "f": "", "g": None, "h": "1", "i": "s3cret", "k": "kept",
    }  # fmt: skip


@pytest.mark.parametrize("word", ["a..b=1", ".a=1", "a.=1", "k.x=1", "a=[", "a=!!python/object:x y"])
def test_a_parameter_that_cannot_be_set_is_wrong_usage(word: str) -> None:
    with pytest.raises(UsageFault, match="--set "):
        with_parameters({"additionalParams": {"k": "text"}}, Given(word))


def test_a_file_with_a_fault_is_named_with_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "body.yaml"
    file.write_text("a: 1\nb: [\n")
    with pytest.raises(UsageFault, match=rf"{file}:3:1: "):
        read_body(str(file))
    for text in ("- 1\n", ""):
        file.write_text(text)
        with pytest.raises(UsageFault, match="which is an object"):
            read_body(str(file))
    file.write_text('# cause: ""  # of a template\n')
    assert read_body(str(file)) == {}
