"""The frame of the command line: verbs, plug-ins, contexts, forms of output, exit codes."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pytest
import yaml
from callers.command_line import Output, kubevnfm, run_here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubevnfm_cli import contexts, jsonpath, manual, names, output, terminal, yaml_text
from kubevnfm_cli.commands import VERBS
from kubevnfm_cli.faults import Fault, UsageFault
from kubevnfm_kit.nearest import nearest
from worlds.lcm_world import World

ROOT: Final = Path(__file__).parents[1]
SECRET: Final = "s3cret-of-the-test"


def test_the_wheel_imports_nothing_but_what_it_declares() -> None:
    """The environment of tests has every member and package; the wheel is installed with those that it declares alone."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w-]", each)[0].lower() for each in project["dependencies"]}
    names = {"pyyaml": "yaml", "kubevnfm-proxies": "kubevnfm_proxies"}
    allowed = {*sys.stdlib_module_names, "kubevnfm_cli", *(names.get(one, one) for one in declared)}
    for path in (ROOT / "kubevnfm_cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = (
                [one.name for one in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert {module.partition(".")[0] for module in modules} <= allowed, path


LOADED: Final = """
import sys
before = set(sys.modules)
from kubevnfm_cli.main import Streams, run
import os
environment = {"KUBEVNFM_URL": "http://127.0.0.1:1", "HOME": os.devnull}
code = run(sys.argv[1:], environment, Streams(sys.stdout, sys.stderr))
print(code, *{name.partition(".")[0] for name in set(sys.modules) - before}, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "code", "not_loaded"),
    [
        (["--help"], 0, {"rich", "yaml", "http", "ssl", "json", "argparse", "pathlib", "importlib.metadata"}),
        (["get", "vnf"], 7, {"rich", "yaml", "subprocess", "asyncio", "tomllib"}),
    ],
)
def test_a_command_loads_only_what_it_needs(words: list[str], code: int, not_loaded: set[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True, timeout=60)
    ended, *loaded = ran.stderr.splitlines()[-1].split()
    assert int(ended) == code
    assert not_loaded & set(loaded) == set()


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help_and_each_of_its_arguments_a_text(verb: str) -> None:
    import importlib

    from kubevnfm_cli.call import Parser

    parser = Parser(verb, VERBS[verb].summary)
    importlib.import_module(VERBS[verb].module).arguments(parser)
    assert [action.dest for action in parser._actions if not action.help] == []
    assert parser.format_help().startswith(f"usage: kubevnfm {verb} ")
    assert VERBS[verb].summary in run_here("--help").out


def test_the_manual_page_says_what_help_says() -> None:
    """The wheel installs it; `python -m kubevnfm_cli.manual` writes it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (file,) = project["tool"]["setuptools"]["data-files"]["share/man/man1"]
    text = manual.page()
    assert (ROOT / file).read_text(encoding="utf-8") == text
    assert [verb for verb in VERBS if f".SS {verb.replace('-', chr(92) + '-')}\n" not in text] == []
    assert r".B \-\-sort\-by FIELD" in text
    assert "%(" not in text


DOCUMENTED: Final = [
    line.strip().removeprefix("$ ").partition(" #")[0].partition(" <<")[0].strip()
    for page in ("docs/cli.md", "docs/site-files.md", "docs/walk-cli.md", "README.md")
    for line in (ROOT.parents[1] / page).read_text(encoding="utf-8").splitlines()
    if line.startswith(("    kubevnfm ", "    $ kubevnfm "))
]


@pytest.mark.parametrize("command", DOCUMENTED)
def test_each_command_of_the_documentation_is_understood(command: str) -> None:
    import importlib

    from kubevnfm_cli.call import Parser

    verb, *words = shlex.split(command)[1:]
    if verb != "--help":
        parser = Parser(verb, VERBS[verb].summary)
        importlib.import_module(VERBS[verb].module).arguments(parser)
        parser.parse_args(words)


def test_each_verb_is_documented() -> None:
    page = (ROOT.parents[1] / "docs/cli.md").read_text(encoding="utf-8")
    assert [verb for verb in VERBS if not re.search(rf"kubevnfm {verb}\b|`{verb}`", page)] == []


@settings(deadline=None, max_examples=50)
@given(st.text("naem_N", max_size=8), st.lists(st.text("naem_N", max_size=8), max_size=5))
def test_the_nearest_name_is_that_of_the_gateway(name: str, known: list[str]) -> None:
    """The wheel has none of the gateway's libraries, so it has the rule once more."""
    assert names.nearest(name, known) == nearest(name, known)


def test_a_verb_that_does_not_exist_is_wrong_usage_with_the_nearest_one() -> None:
    ran = run_here("gte", "vnf")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "kubevnfm: gte is no verb and no plug-in; did you mean get?\n"


def test_global_options_may_be_before_the_verb() -> None:
    assert run_here("--url", "http://127.0.0.1:1", "get", "vnf").code == 7
    assert run_here("-o", "nothing", "get", "vnf").code == 2
    assert run_here("help", "get").out == run_here("get", "--help").out


def test_a_plug_in_on_the_path_is_run_in_the_place_of_the_command(tmp_path: Path) -> None:
    plugin = tmp_path / "kubevnfm-some-thing"
    plugin.write_text('#!/bin/sh\necho "plug-in got $*"\nexit 9\n')
    plugin.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "kubevnfm_cli", "some-thing", "--help", "x"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    assert (ran.returncode, ran.stdout) == (9, "plug-in got --help x\n")


@pytest.mark.parametrize("name", ["../x", "x/y", "X", "", "-x"])
def test_a_name_that_is_a_path_is_no_plug_in(name: str, tmp_path: Path) -> None:
    from kubevnfm_cli.plugins import path_of

    assert path_of(name, {"PATH": str(tmp_path)}) is None


def test_options_before_a_plug_in_are_refused(tmp_path: Path) -> None:
    (tmp_path / "kubevnfm-here").touch(0o755)
    ran = run_here("--url", "http://x", "here", environment={"PATH": str(tmp_path)})
    assert (ran.code, "its name comes first" in ran.err) == (2, True)


def test_a_reader_that_goes_away_is_no_fault() -> None:
    """`kubevnfm ... | head`."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as out:
        ran = subprocess.run(
            [sys.executable, "-m", "kubevnfm_cli", "version", "--client"],
            stdout=out, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [(">&-", "version --client", 0), ("2>&-", "get things", 2), (">&- 2>&-", "--help", 0), ("2>/dev/full", "get things", 1)],
)  # fmt: skip
def test_closed_and_full_streams_are_no_fault_of_the_program(closed: str, words: str, code: int) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m kubevnfm_cli {words} {closed}"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (code, "")


def test_a_plug_in_in_the_working_directory_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kubevnfm_cli.plugins import path_of

    (tmp_path / "kubevnfm-here").touch(0o755)
    monkeypatch.chdir(tmp_path)
    assert path_of("here", {"PATH": ":.:"}) is None


def config(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "kubevnfm" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder), "HOME": os.devnull}


TWO: Final = 'current = "a"\n[contexts.a]\nurl = "http://a"\nuser = "ada"\npassword_file = "a.password"\n[contexts.b]\nurl = "http://b"\n'


def test_the_gateway_is_chosen_by_command_then_environment_then_file(tmp_path: Path) -> None:
    environment = config(tmp_path, TWO)
    urls = [
        contexts.choose(environment | more, context=context, url=url).url
        for context, url, more in [
            (None, None, {}),
            ("b", None, {}),
            (None, None, {"KUBEVNFM_CONTEXT": "b"}),
            (None, None, {"KUBEVNFM_CONTEXT": "b", "KUBEVNFM_URL": "http://env"}),
            (None, "http://word", {"KUBEVNFM_URL": "http://env"}),
            ("b", None, {"KUBEVNFM_URL": "http://env"}),
        ]
    ]
    assert urls == ["http://a", "http://b", "http://b", "http://env", "http://word", "http://b"]


def test_another_url_gets_no_credentials_of_a_context(tmp_path: Path) -> None:
    environment = config(tmp_path, TWO)
    assert contexts.choose(environment, url="http://other").user is None
    assert contexts.choose({**environment, "KUBEVNFM_URL": "http://other"}).user is None
    assert contexts.choose(environment, context="a", url="http://other").user == "ada"


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        ('[contexts.a]\nurl = "http://a"\ntoken = "s3cret-of-the-test"\n', 0o600, "token_file or token_env expected"),
        ('[contexts.a]\nurl = "http://a"\nurk = "x"\n', 0o600, "contexts.a.urk: "),
        ("[contexts.a]\nurl = 7\n", 0o600, "contexts.a.url: a text expected"),
        ('[contexts.a]\nca = "x"\n', 0o600, "url is missing"),
        ("current = = 1\n", 0o600, "config.toml: "),
        (TWO, 0o622, "other users can write it"),
        (TWO.replace('"a"', '"c"', 1), 0o600, "context c does not exist"),
    ],
)
def test_a_wrong_configuration_is_one_line_without_secrets(
    text: str, mode: int, complaint: str, tmp_path: Path
) -> None:
    ran = run_here("get", "vnf", environment=config(tmp_path, text, mode))
    assert ran.code == 2
    assert complaint in ran.err
    assert len(ran.err.splitlines()) == 1
    assert SECRET not in ran.err


def test_a_configuration_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    environment = config(tmp_path, TWO, 0o600)
    file = contexts.config_path(environment)
    file.unlink()
    os.mkfifo(file, 0o600)
    ran = run_here("get", "vnf", environment=environment)
    assert (ran.code, "a regular file expected" in ran.err) == (2, True)


def test_a_secret_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o644)
    with pytest.raises(UsageFault, match="other users can read"):
        contexts.read_secret_file(file)
    file.chmod(0o600)
    assert contexts.read_secret_file(file) == SECRET


def test_a_terminal_gets_colours_and_no_other_control() -> None:
    out = Output(is_terminal=True)
    screen = terminal.Screen(out, {"TERM": "xterm"})
    screen.say(screen.paint("a", "red") + "\x1b]0;title\x07\x9b2J\tb")
    assert out.getvalue() == "\x1b[31ma\x1b[0m\\x1b]0;title\\x07\\x9b2J\tb\n"


@pytest.mark.parametrize("pager", ["tee", "no-such-pager", "'"])
def test_a_long_text_is_shown_by_the_pager_or_without_it(pager: str, tmp_path: Path) -> None:
    out, shown, text = Output(is_terminal=True), tmp_path / "shown", "line\x1b[2J\n" * 30
    screen = terminal.Screen(out, {"PAGER": f"{pager} {shown}", "PATH": os.environ["PATH"]})
    screen.page(text)
    assert (shown.read_text() if pager == "tee" else out.getvalue()) == "line\\x1b[2J\n" * 30
    assert bool(out.getvalue()) is (pager != "tee")
    screen.page(text, no_pager=True)
    screen.page("short\n")
    assert out.getvalue().endswith("line\\x1b[2J\nshort\n")


def test_ctrl_c_is_for_the_pager_which_sets_the_terminal_back_itself(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\nkill -INT $PPID\ncat > {shown}\n")
    pager.chmod(0o700)
    screen = terminal.Screen(Output(is_terminal=True), {"PAGER": str(pager), "PATH": os.environ["PATH"]})
    screen.page("line\n" * 30)
    assert shown.read_text() == "line\n" * 30


def test_later_lines_of_a_table_get_the_room_that_there_is() -> None:
    columns = [
        output.Column("ID", lambda one: "7"),
        output.Column("NAME", lambda one: one["name"]),
        output.Column("STATE", lambda one: one["state"], is_state=True),
    ]
    short, long = {"name": "web", "state": "ok"}, {"name": "a-much-longer-name", "state": "progressing"}
    for width, expected in [
        (80, "7   a-much-longer-name  progressing\n"),
        (24, "7   a-much…  progressing\n"),
        (16, "7   a-m…  progr…\n"),
    ]:
        screen = terminal.Screen(Output(is_terminal=True), {"NO_COLOR": "1"})
        with patch.object(terminal.Screen, "columns", width):
            grid = output.Grid(screen, columns, is_wide=False)
            assert grid.text([short]) == "ID  NAME  STATE\n7   web   ok\n"
            assert grid.text([long]) == expected
            assert grid.text([short]).split() == ["7", "web", "ok"]


@settings(deadline=None)
@given(st.text())
def test_no_foreign_text_reaches_a_terminal_with_control_characters(text: str) -> None:
    shown = terminal.printable(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert json.loads(terminal.printable_json(json.dumps(text, ensure_ascii=False))) == text


DOCUMENT: Final = {"items": [{"id": "a", "n": {"x.y": 1}}, {"id": "b"}], "is": True}


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("{.items[*].id}", "a b"),
        (".items[-1].id", "b"),
        ("items[0].n['x.y']", "1"),
        ('{.items[0].id}{"\\n"}{.is}', "a\ntrue"),
        ("ids: {.items[*].id};", "ids: a b;"),
        ("{.nothing}", ""),
        ("{.items[7].id}", ""),
        ("{$}", json.dumps(DOCUMENT)),
    ],
)
def test_jsonpath_finds(expression: str, text: str) -> None:
    assert jsonpath.evaluate(expression, DOCUMENT) == text


@pytest.mark.parametrize("expression", ["{.items[?(@.id=='a')]}", "{range .items[*]}", "{.a", "{..id}"])
def test_jsonpath_refuses_what_it_does_not_do(expression: str) -> None:
    with pytest.raises(UsageFault, match="jsonpath"):
        jsonpath.evaluate(expression, DOCUMENT)


@settings(deadline=None)
@given(st.text(alphabet=".[]*'{}ab0\"$@\\", max_size=20))
def test_jsonpath_answers_any_expression(expression: str) -> None:
    with contextlib.suppress(UsageFault):
        jsonpath.evaluate(expression, DOCUMENT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: yes\nb: 0o17\nc: 1.5\nd: null\ne: '7'\nf: 2026-01-01\n", {"a": "yes", "b": 15, "c": 1.5, "d": None, "e": "7", "f": "2026-01-01"}),
        ("a: [1, 0x1f, -.inf, TRUE]\n", {"a": [1, 31, "-.inf", True]}),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ('{"a": "\\u00e4"}', {"a": "ä"}),
    ],
)  # fmt: skip
def test_yaml_has_the_scalars_of_1_2(text: str, value: object) -> None:
    assert yaml_text.read_documents(text, "f") == [value]


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2\n",
        "a: [\n",
        "a: !!python/object:os.system x\n",
        "[" * 200 + "]" * 200,
        "a: &a [*a]\n",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(6)),
        "? [a]\n: 1\n",
    ],
)  # fmt: skip
def test_hostile_yaml_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Fault, match=r"f:\d+:\d+: "):
        yaml_text.read_documents(text, "f")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_yaml_that_is_written_is_read_as_the_same(value: object) -> None:
    written = yaml_text.write({"v": value})
    assert yaml.safe_load(written) == {"v": value}
    assert terminal.is_harmless(written)
    assert yaml_text.read_documents(written, "f") == [{"v": value}]


async def test_a_list_in_each_form(world: World) -> None:
    """The JSON is the gateway's body, over all its pages, which have two things each here."""
    await world.sample()
    ids = {await world.create(vnfInstanceName=name) for name in ("one", "two", "three\x1b[31m")}
    listed = await kubevnfm(world.url, "get", "vnf")
    assert [line.split()[0] in ids for line in listed.out.splitlines()] == [False, True, True, True]
    assert r"three\x1b[31m" in listed.out
    assert {one["id"] for one in (await kubevnfm(world.url, "get", "vnf", "-o", "json")).json()["items"]} == ids
    names = (await kubevnfm(world.url, "get", "vnf", "-o", "name")).out.split()
    assert set(names) == {f"vnf/{one}" for one in ids}
    lines = (await kubevnfm(world.url, "get", "vnf", "-o", "jsonl")).out.splitlines()
    assert {json.loads(line)["id"] for line in lines} == ids
    found = (await kubevnfm(world.url, "get", "vnf", "-o", "jsonpath={.items[*].id}")).out.split()
    assert set(found) == ids
    in_yaml = yaml.safe_load((await kubevnfm(world.url, "get", "vnf", "-o", "yaml")).out)
    assert {one["id"] for one in in_yaml["items"]} == ids
    rows = (await kubevnfm(world.url, "get", "vnf", "-o", "csv")).out.splitlines()
    assert (rows[0], len(rows)) == ("ID,NAME,STATE,HEALTH,KIND,PRODUCT,OPERATION,AGE,VNFD,VIMS,NAMESPACE,WHY", 4)
    coloured = await kubevnfm(world.url, "get", "vnf", environment={"CLICOLOR_FORCE": "1"})
    assert coloured.out.startswith("\x1b[1mID")
    plain = await kubevnfm(world.url, "get", "vnf", "--no-color", environment={"CLICOLOR_FORCE": "1"})
    assert "\x1b" not in plain.out


async def test_one_thing_by_id_prefix_or_name(world: World) -> None:
    await world.sample()
    ids = [await world.create(vnfInstanceName=name) for name in ("same", "same", "other")]
    for word in (ids[2], ids[2][:13], "other"):
        ran = await kubevnfm(world.url, "get", "vnf", word, "-o", "jsonpath={.id}")
        assert (ran.code, ran.out) == (0, f"{ids[2]}\n")
    ambiguous = await kubevnfm(world.url, "get", "vnf", "same")
    assert ambiguous.code == 2
    assert all(one in ambiguous.err for one in ids[:2])
    assert ids[2] not in ambiguous.err
    absent = await kubevnfm(world.url, "get", "vnf/nothing")
    assert absent.code == 1
