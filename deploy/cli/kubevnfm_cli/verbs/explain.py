"""``kubevnfm explain site`` and ``kubevnfm explain OPERATION --package P``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kubevnfm_cli import lists, schema_text
from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault
from kubevnfm_cli.forms import form_of, package_of
from kubevnfm_cli.gateway import path_of
from kubevnfm_cli.json_types import read_json
from kubevnfm_cli.names import did_you_mean
from kubevnfm_cli.nouns import WORDS, Noun, noun_of
from kubevnfm_cli.output import show_body
from kubevnfm_cli.terminal import printable

SITE: Final = "site"
OPERATIONS: Final[Mapping[str, str]] = {
    "create": "create",
    "instantiate": "instantiate",
    "scale": "scale",
    "scale-to-level": "scale_to_level",
    "heal": "heal",
    "operate": "operate",
    "change-ext-conn": "change_ext_conn",
    "change-package": "change_vnfpkg",
    "change-flavour": "change_flavour",
    "modify": "modify",
    "terminate": "terminate",
}
"""The operations with a form, by the word of the command line."""

KINDS: Final[Mapping[str, str]] = {
    "vim": "vim",
    "region": "cloud-region",
    "link": "virtual-link",
    "volume": "persistent-volume",
    "sub": "subscription",
    "pmjob": "pm-job",
    "threshold": "threshold",
}
"""The nouns with a form, and the gateway's words for them."""


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = f"""\
`site` shows the form of site files (kubevnfm apply -f), `site.instances` a part of it; {", ".join(KINDS)} that of
kubevnfm create -f. The others show what a request can have for a package, and for an instance:
{", ".join(OPERATIONS)}. `-o json` prints the JSON Schema itself."""
    parser.add_argument(
        "what", metavar="WHAT[.FIELD...]", help="site, a noun or an operation; with fields after points"
    )
    parser.add_argument("of", metavar="PACKAGE", nargs="?", help="the same as --package")
    parser.add_argument(
        "--package", metavar="PACKAGE", help="an id, the beginning of an id, or the name of the product"
    )
    parser.add_argument("--instance", metavar="VNF", help="the VNF instance; its package is the one")
    parser.add_argument(
        "--with", metavar="FIELD=VALUE", dest="chosen", action="append", default=[],
        help="the fields that a request has with this value, such as --with flavourId=complex; repeatable (default: the defaults)",
    )  # fmt: skip
    parser.add_argument(
        "--depth", type=int, default=1, help="how many levels of fields are shown (default: %(default)s)"
    )
    parser.add_argument("--template", action="store_true", help="print a file for -f, with all fields to fill in")


def run(call: Call) -> int:
    """Show the fields of a form."""
    what, *names = call.given.what.split(".")
    schema = _site(call) if what == SITE else _form(call, what)
    chosen = {name: values[-1] for name, values in lists.pairs(call.given.chosen, "--with").items()}
    form = schema_text.Form(schema, chosen)
    for name in chosen:
        schema_text.found(form, [name])
    part = schema_text.found(form, names)
    if call.given.template:
        if names:
            raise UsageFault("--template is for a whole request")
        call.out.stream.write(schema_text.template(form))
        return DONE
    if not call.format.is_for_people:
        show_body(call, part if names else schema)
        return DONE
    width = min(call.out.columns, 120)
    shown = schema_text.lines(part, form, call.given.what, depth=max(call.given.depth, 1), width=width)
    call.page("".join(f"{line}\n" for line in shown))
    return DONE


def _site(call: Call) -> Mapping[str, Any]:
    from importlib.resources import files

    _without_package(call, SITE)
    text = files("kubevnfm_cli.site").joinpath("site.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = read_json(text, "site.schema.json")
    return schema


def _without_package(call: Call, what: str) -> None:
    if call.given.of or call.given.package or call.given.instance:
        raise UsageFault(f"explain {printable(what)}: its form needs no package and no instance")


def _form_of_noun(call: Call, noun: Noun) -> Mapping[str, Any]:
    """Return the form of what ``create NOUN -f`` takes: a VIM without the ``vim`` around it."""
    _without_package(call, noun.name)
    schema = call.gateway.get(path_of("kubevnfm", "v1", "forms", KINDS[noun.name])).object()
    inner = schema_text.properties_of(schema).get(noun.inside)
    if not isinstance(inner, Mapping):
        return schema
    return {**{name: schema[name] for name in ("$schema", "$defs") if name in schema}, **inner}


def _form(call: Call, what: str) -> Mapping[str, Any]:
    operation = OPERATIONS.get(what) or (what if what in OPERATIONS.values() else None)
    if operation is None:
        noun = WORDS.get(what)
        if noun is not None and noun.name in KINDS:
            return _form_of_noun(call, noun)
        known = [SITE, *KINDS, *OPERATIONS]
        raise UsageFault(f"{printable(what)}: site, a noun or an operation expected{did_you_mean(what, known)}")
    instance_id = None
    if call.given.instance:
        instance_id = lists.resolve(call.gateway, noun_of("vnf"), call.given.instance)
    if call.given.package and call.given.of:
        raise UsageFault("the package is named twice: PACKAGE or --package expected")
    package = call.given.package or call.given.of
    if package:
        package_id = lists.resolve(call.gateway, noun_of("pkg"), package)
    elif instance_id is not None:
        package_id = package_of(call.gateway, instance_id)
    else:
        raise UsageFault(f"--package or --instance expected: what {printable(what)} can have is in the package")
    return form_of(call.gateway, package_id, operation, instance_id)
