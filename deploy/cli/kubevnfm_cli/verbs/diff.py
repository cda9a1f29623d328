"""``kubevnfm diff -f FILE``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.site import commands


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    commands.arguments(parser, "diff")


def run(call: Call) -> int:
    """Show what ``apply`` would change."""
    return commands.run(call, "diff")
