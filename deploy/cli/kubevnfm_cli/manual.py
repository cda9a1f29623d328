"""The manual page, made from the arguments and texts that ``--help`` shows: ``python -m kubevnfm_cli.manual > deploy/cli/man/kubevnfm.1``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from typing import Final

from kubevnfm_cli.call import Parser
from kubevnfm_cli.commands import VERBS
from kubevnfm_cli.faults import MEANINGS

_PLUGINS: Final = {
    "run": "run all services in one process",
    "demo": "do the main job once, on the lab, and show it",
    "hash-password": "read a password, print what stands for it in the users file",
    "backup FILE": "write one archive of all documents and packages while the services run; --check reads one",
    "restore FILE": "write what an archive has into an empty installation that does not run",
}


def page() -> str:
    """Return the page as roff."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    yield '.TH KUBEVNFM 1 "" kubevnfm "User Commands"'
    yield from (".SH NAME", r"kubevnfm \- the command line of the VNF manager kubevnfm")
    yield from (".SH SYNOPSIS", r".B kubevnfm", r".I VERB", r"[ARGUMENT...] [OPTION...]", ".br")
    yield from (r".B kubevnfm help", r".I VERB")
    yield from (
        ".SH DESCRIPTION",
        "Asks a gateway of kubevnfm by HTTP. Data go to standard output, progress and errors to standard error.",
    )
    parsers = {verb: _parser(verb) for verb in VERBS}
    for group in dict.fromkeys(verb.group for verb in VERBS.values()):
        yield f".SH {_text(group).upper()}"
        for name, verb in VERBS.items():
            if verb.group == group:
                yield f".SS {_text(name)}"
                yield from _verb(name, parsers[name])
    yield from (r".SH PLUG\-INS", r"Where the services are installed, these run too; each has \-\-help.")
    for name, summary in _PLUGINS.items():
        yield from (".TP", f".B {_text(f'kubevnfm {name}')}", _text(summary))
    yield ".SH OPTIONS OF EVERY VERB"
    yield from _arguments(_common(next(iter(parsers.values()))))
    yield ".SH EXIT STATUS"
    for code, meaning in MEANINGS.items():
        yield from (".TP", f".B {code}", _text(meaning))
    yield from (".SH FILES", ".TP", ".I ~/.config/kubevnfm/config.toml", "the contexts; XDG_CONFIG_HOME moves it")
    yield from (".SH SEE ALSO", r"docs/cli.md: the questions, waiting, output, contexts, proxies")


def _parser(verb: str) -> Parser:
    parser = Parser(verb, VERBS[verb].summary)
    importlib.import_module(VERBS[verb].module).arguments(parser)
    return parser


def _common(parser: Parser) -> list[argparse.Action]:
    return [
        action for group in parser._action_groups if group.title == "for every verb" for action in group._group_actions
    ]


def _verb(name: str, parser: Parser) -> Iterator[str]:
    common = _common(parser)
    own = [action for action in parser._actions if action not in common]
    words = [_counted(action) for action in own if not action.option_strings]
    yield f".B {_text(f'kubevnfm {name}')}"
    yield _text(" ".join([*words, "[OPTION...]"] if len(words) < len(own) else words)) or r"\&"
    yield ".PP"
    yield _text(f"{parser.description}")
    yield from _arguments(own)
    if parser.epilog:
        yield from (".PP", ".nf", *(_text(line) for line in parser.epilog.splitlines()), ".fi")


def _arguments(actions: list[argparse.Action]) -> Iterator[str]:
    for action in actions:
        named = ", ".join(action.option_strings)
        value = "" if action.nargs == 0 or not named else f" {_metavar(action)}"
        text = str(action.help) % {**vars(action), "prog": "kubevnfm"}
        yield from (".TP", f".B {_text(f'{named}{value}' if named else _metavar(action))}", _text(text))


def _metavar(action: argparse.Action) -> str:
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or (action.dest.upper() if action.option_strings else action.dest))


def _counted(action: argparse.Action) -> str:
    """Return an argument as a usage has it."""
    name = _metavar(action)
    more = name if "..." in name else f"{name}..."
    return {"?": f"[{name}]", "*": f"[{more}]", "...": f"[{more}]", "+": more}.get(str(action.nargs), name)


def _text(text: str) -> str:
    """Return a text that roff shows as it is."""
    shown = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return rf"\&{shown}" if shown.startswith((".", "'")) else shown


if __name__ == "__main__":
    sys.stdout.write(page())
