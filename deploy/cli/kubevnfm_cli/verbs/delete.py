"""``kubevnfm delete -f FILE``."""

from __future__ import annotations

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.site import commands


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    commands.add_files(parser, is_required=True)
    commands.add_run_options(parser)


def run(call: Call) -> int:
    """Remove what the files have made."""
    return commands.run(call, "delete")
