"""Writes the table of causes into the page of errors: ``python -m kubevnfm_lcm_api.views.causes.page docs/errors.md``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

from kubevnfm_lcm_api.views.causes.rules import TABLE

_HEADING: Final = "| cause | sentence | what to do |\n|---|---|---|\n"
_TABLE: Final = re.compile(re.escape(_HEADING) + r"(?:\|[^\n]*\n)*")
_CODE: Final = re.compile(r'^\| (?:<a id="[a-z0-9-]+"></a>)?`([a-z0-9-]+)` \| (?=\d{3}[ ,])', re.MULTILINE)
_SHOWN: Final = {
    "it": "name",
    "thing": "object",
    "said": "reason",
    "kinds": "objects",
    "exit": "code",
    "stuck": "name",
    "late": "name",
}
_PLACE: Final = re.compile(r"\{(\w+)\}")


def rows() -> str:
    """Return the table: one row for each slug, with an anchor."""
    by_slug: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for each in TABLE:
        sentences, dos = by_slug.setdefault(each.slug, ({}, {}))
        shown = each.says.removesuffix(".")
        sentences[_PLACE.sub(lambda found: f"*{_SHOWN.get(found[1], found[1])}*", shown)] = None
        dos[each.do] = None
    return _HEADING + "".join(
        f'| <a id="{slug}"></a>`{slug}` | {". <br>".join(sentences)}. | {". <br>".join(dos)}. |\n'
        for slug, (sentences, dos) in sorted(by_slug.items())
    )


def updated(page: str) -> str:
    """Return the page with the table as it is now, and an anchor for each code that is no cause."""
    slugs = {each.slug for each in TABLE}

    def anchored(found: re.Match[str]) -> str:
        code = found[1]
        return f"| `{code}` | " if code in slugs else f'| <a id="{code}"></a>`{code}` | '

    return _CODE.sub(anchored, _TABLE.sub(lambda _: rows(), page))


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(updated(path.read_text(encoding="utf-8")), encoding="utf-8")
