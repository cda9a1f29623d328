"""docs/errors.md has every error of the services, with its status."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from kubevnfm_kit.errors import VnfmError
from kubevnfm_lcm_api.views.causes.page import updated
from kubevnfm_lcm_api.views.causes.rules import TABLE

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs/errors.md"
_ROW = re.compile(r"^\| (?:<a id=\"[a-z0-9-]+\"></a>)?`([a-z0-9-]+)` \| ([\d, ]+) \| (.+?) \| (.+?) \|$")
_FOREIGN = ("kubevnfm_sandbox.tacker_shim", "kubevnfm_sandbox.launcher", "kubevnfm_sandbox.runner")
"""Code that runs in a process of its own, beside modules that only exist there."""


def import_all() -> None:
    """Import every module of the services and libraries, so that their error classes exist."""
    members = (
        *PROJECT.glob("libs/*/kubevnfm_*"),
        *PROJECT.glob("services/*/kubevnfm_*"),
        PROJECT / "deploy/single/kubevnfm",
    )
    for folder in members:
        if folder.suffix == ".egg-info":
            continue
        package = import_module(folder.name)
        for module in pkgutil.walk_packages(package.__path__, f"{folder.name}."):
            if not module.name.startswith(_FOREIGN) and not module.name.endswith("__main__"):
                import_module(module.name)


def errors(of: type[VnfmError] = VnfmError) -> Iterator[type[VnfmError]]:
    """Yield the class and all that derive from it."""
    yield of
    for derived in of.__subclasses__():
        yield from errors(derived)


def test_the_page_has_every_error_with_its_status() -> None:
    """CR-124: cause and remedy are given for each."""
    import_all()
    known: dict[str, set[int]] = {}
    for error in errors():
        if error.__module__.startswith("kubevnfm"):
            known.setdefault(error.code, set()).add(error.status)
    rows = [fits for line in PAGE.read_text(encoding="utf-8").splitlines() if (fits := _ROW.match(line))]
    shown = {fits[1]: {int(status) for status in fits[2].split(",")} for fits in rows}
    assert len(shown) == len(rows)
    assert shown == known


def test_the_page_has_every_cause_as_the_table_has_it() -> None:
    """To write it: python -m kubevnfm_lcm_api.views.causes.page docs/errors.md. Each code and each cause has one anchor."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == updated(page)
    anchors = re.findall(r'<a id="([a-z0-9-]+)"></a>', page)
    assert len(anchors) == len(set(anchors))
    assert {fits[1] for line in page.splitlines() if (fits := _ROW.match(line))} <= set(anchors)
    situations = page.partition("## Situations")[2].partition("\n## ")[0]
    assert set(re.findall(r"`([a-z0-9-]+)`", situations)) <= {each.slug for each in TABLE}
