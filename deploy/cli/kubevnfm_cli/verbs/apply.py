"""``kubevnfm apply -f FILE``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.site import options


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    options.arguments(parser, "apply")


def run(call: Call) -> int:
    """Make the site what the files say."""
    from kubevnfm_cli.site import commands

    return commands.run(call, "apply")
