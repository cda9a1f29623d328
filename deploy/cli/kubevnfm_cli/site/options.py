"""The options of ``apply -f``, ``diff -f`` and ``delete -f``; what they do is imported when it is done."""

from __future__ import annotations

from typing import Final, Literal

from kubevnfm_cli.call import Parser

Action = Literal["apply", "diff", "delete"]
_EPILOG: Final = """\
A site file has VIMs, cloud regions, packages, VNF instances, virtual links, volumes and subscriptions by name:
`kubevnfm explain site` lists all attributes, docs/site-files.md explains them. The same file twice changes nothing."""


def add_files(parser: Parser, *, is_required: bool) -> None:
    """Add the option that names site files."""
    parser.add_argument(
        "-f", "--file", metavar="FILE", action="append", default=[], required=is_required, dest="files",
        help="a site file, a folder with *.yaml, or - for standard input; repeatable",
    )  # fmt: skip


def add_run_options(parser: Parser, *, also: str = "") -> None:
    """Add the options of what changes something; ``also``: what a dry run does beside showing it."""
    parser.add_argument("--dry-run", action="store_true", help=f"show what would be done, and do nothing{also}")
    parser.add_argument(
        "--timeout", metavar="TIME", default="1h", help="end all waits after 90s, 10m or 1h30m (default: %(default)s)"
    )


def arguments(parser: Parser, action: Action) -> None:
    """Add the arguments of ``apply`` or ``diff``."""
    parser.epilog = _EPILOG
    add_files(parser, is_required=True)
    parser.add_argument(
        "--adopt", action="store_true", help="take over what has a name of the file and belongs to no site"
    )
    parser.add_argument(
        "--renew-secrets",
        action="store_true",
        help="send access data of VIMs and regions again; secrets cannot be compared",
    )
    if action == "apply":
        add_run_options(parser, also="; operations of instances are checked by the gateway")
        parser.add_argument(
            "--wait", action="store_true", help="wait for the end of the last operation of each instance too"
        )
    else:
        parser.add_argument("--exit-code", action="store_true", help="exit with 1 if something differs")
