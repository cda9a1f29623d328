"""One call of the command line: its parser, its gateway, its two streams."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.terminal import Screen, printable

if TYPE_CHECKING:
    from kubevnfm_cli.contexts import Context
    from kubevnfm_cli.gateway import Gateway
    from kubevnfm_cli.main import Streams
    from kubevnfm_cli.output import Format


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Knows its width by itself: argparse would import shutil for each argument's sake, a tenth of the start."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns)
        except (OSError, ValueError):
            columns = 80
        super().__init__(prog, width=max(columns, 40) - 2)


class Parser(argparse.ArgumentParser):
    """The arguments of one verb; every verb has the global options."""

    def __init__(self, verb: str, summary: str, out: TextIO = sys.stdout) -> None:
        super().__init__(prog=f"kubevnfm {verb}", description=f"{summary}.", allow_abbrev=False, add_help=False)
        self.formatter_class = _Formatter
        self.verb = verb
        self._out = out
        common = self.add_argument_group("for every verb")
        common.add_argument("-h", "--help", action="help", help="show this text")
        common.add_argument("--context", metavar="NAME", help="a gateway of ~/.config/kubevnfm/config.toml")
        common.add_argument(
            "--url", help="the gateway's URL (default: KUBEVNFM_URL, the context, http://127.0.0.1:9890)"
        )
        common.add_argument(
            "--insecure-skip-tls-verify", action="store_true", help="take any certificate for the gateway's"
        )
        common.add_argument(
            "-o", "--output", metavar="FORMAT", help="table, wide, json, yaml, jsonl, name, csv or jsonpath=EXPRESSION"
        )
        common.add_argument(
            "--no-color", action="store_true", help="no colours; NO_COLOR and CLICOLOR_FORCE are read too"
        )
        common.add_argument("--no-pager", action="store_true", help="show long texts without PAGER")

    def print_help(self, file: Any = None) -> None:
        """Write the help to the command's output."""
        super().print_help(file or self._out)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line more than argparse: where help is."""
        lacks_noun = message.startswith("the following arguments are required: NOUN")
        if lacks_noun:
            from kubevnfm_cli.nouns import NOUNS

            message = f"a noun expected: {', '.join(noun.name for noun in NOUNS)}"
        raise UsageFault(f"{printable(message, 1000)}{self._hint(message)}; see {self.prog} --help")

    def _hint(self, message: str) -> str:
        """Return the option that was meant, if the message is about one that is not known."""
        from kubevnfm_cli.names import nearest

        unknown = message.removeprefix("unrecognized arguments: ").partition(" ")[0].partition("=")[0]
        is_option = unknown != message and unknown.startswith("--")
        near = nearest(unknown, self._option_string_actions) if is_option else None
        return f"; did you mean {near}?" if near else ""


class Call:
    """The command, its gateway and its two streams, for a verb."""

    def __init__(self, verb: str, given: argparse.Namespace, environment: Mapping[str, str], streams: Streams) -> None:
        self.verb = verb
        self.given = given
        self.environment = environment
        self.out = Screen(streams.out, environment, no_color=given.no_color)
        """For data."""
        self.err = Screen(streams.err, environment, no_color=given.no_color)
        """For progress, hints and errors."""

    @cached_property
    def gateway(self) -> Gateway:
        """The gateway of the command. Raises UsageFault."""
        return gateway_of(self.environment, self.given, warn=self.note)

    @cached_property
    def format(self) -> Format:
        """The form of the output. Raises UsageFault."""
        from kubevnfm_cli.output import Format

        return Format.read(self.given.output)

    def note(self, line: str) -> None:
        """Write a line of progress to standard error."""
        self.err.say(line)

    def page(self, text: str) -> None:
        """Write a whole text to standard output, by a pager if it is long."""
        self.out.page(text, no_pager=self.given.no_pager)


def gateway_of(
    environment: Mapping[str, str], given: argparse.Namespace, *, warn: Callable[[str], None] = lambda text: None
) -> Gateway:
    """Return the gateway that a command means, by its global options and the environment. Raises UsageFault."""
    from kubevnfm_cli.credentials import Authentication, proxy_of, tls_of
    from kubevnfm_cli.gateway import Gateway

    chosen = chosen_context(environment, given)
    if chosen.insecure_skip_tls_verify and chosen.url.startswith("https:"):
        warn(
            f"warning: the certificate of {printable(chosen.url)} is not checked: another server may answer in its place"
        )
    return Gateway(chosen.url, Authentication(chosen, environment), tls_of(chosen), proxy_of(chosen, environment))


def chosen_context(environment: Mapping[str, str], given: argparse.Namespace) -> Context:
    """Return the context of a command. Raises UsageFault."""
    from kubevnfm_cli import contexts

    chosen = contexts.choose(environment, context=given.context, url=given.url)
    return replace(chosen, insecure_skip_tls_verify=True) if given.insecure_skip_tls_verify else chosen
