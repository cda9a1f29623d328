"""``kubevnfm diff -f FILE``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.site import options


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    options.arguments(parser, "diff")


def run(call: Call) -> int:
    """Show what ``apply`` would change."""
    from kubevnfm_cli.site import commands

    return commands.run(call, "diff")
