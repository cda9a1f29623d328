"""`docs/logging.md` has each event that product code writes into the log, and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from contracts.log_events import said
from servers.processes import PROJECT

_ROW = re.compile(r"^\| `([^`]+)` \| ([a-z, ]+) \| (.+) \|$", re.MULTILINE)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+|audit")
_NAMED = re.compile(r"\b(?:log\s+has|log\s+lines|in\s+the\s+log|lines?\s+(?=\(?`))([^.|]*)")
"""The rest of a sentence that speaks of lines of the log."""
_EVENT = re.compile(r"`((?!kubevnfm_)[a-z]+(?:_[a-z0-9]+)+)`")
CHOSEN = {"chosen"}
"""The level depends on what is said."""


def documented() -> Mapping[str, set[str]]:
    """Return the levels of each event of the page."""
    page = (PROJECT / "docs/logging.md").read_text(encoding="utf-8").partition("\n## Events\n")[2]
    rows = _ROW.findall(page)
    assert len(rows) == len({name for name, _, _ in rows}), "an event is there twice"
    assert len(rows) == page.count("\n|") - 2, "a row has another form"
    assert all(meaning.endswith(".") for _, _, meaning in rows)
    return {name: {*levels.split(", ")} for name, levels, _ in rows}


def test_the_name_of_each_event_is_constant_and_in_snake_case() -> None:
    wrong = [each for each in said() if each.event is None or not _NAME.fullmatch(each.event)]
    assert wrong == []


def test_the_page_has_each_event_with_its_levels_and_no_other() -> None:
    found: dict[str, set[str]] = defaultdict(set)
    for each in said():
        found[each.event or ""].add(each.level)
    assert len(found) > 200
    page = documented()
    assert sorted(page) == sorted(found)
    fixed = {name: levels for name, levels in found.items() if not levels & CHOSEN}
    assert {name: page[name] for name in fixed} == fixed
    assert all(len(page[name]) >= 2 for name in found.keys() - fixed.keys())


def test_the_pages_name_events_that_there_are() -> None:
    pages = [*(PROJECT / "docs").rglob("*.md"), *(PROJECT / "services").glob("*/README.md"), PROJECT / "README.md"]
    texts = {
        page.relative_to(PROJECT).as_posix(): page.read_text("utf-8").partition("\n## Events\n")[0] for page in pages
    }
    named = {
        (page, name) for page, text in texts.items() for rest in _NAMED.findall(text) for name in _EVENT.findall(rest)
    }
    assert len({name for _, name in named}) > 20
    assert sorted(each for each in named if each[1] not in documented()) == []
