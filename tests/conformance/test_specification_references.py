"""References in code and documents to the specification lead to a chapter, a block or a requirement that exists."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
SPECIFICATION = DOCS / "specification"
READ = ("deploy", "docs", "libs", "proto-events", "services", "tests")

_REQUIREMENT = r"(?:SEQ|API|CR|MC)-\d{3}|W-\d{2}"
_BLOCK = r"HEAL-1M|[A-EMP]\d+[a-z]{0,2}"
_NUMBER = r"\d+(?:\.\d+)*"
_TARGET = rf"(?:{_REQUIREMENT}|{_BLOCK}|{_NUMBER})\b"
_GAP = r"\s+(?:#\s+)?"  # a comment or docstring may break the line inside a reference
_MENTION = re.compile(
    rf"(?<![\w-])(?P<name>api|architecture|capi|multicloud|sequences|style)\.md`?"
    rf"(?:(?:{_GAP}(?:chapter|section)s?)?{_GAP}(?P<targets>{_TARGET}(?:(?:,|{_GAP}(?:to|and|or)){_GAP}{_TARGET})*))?"
)
_LISTED = re.compile(
    r"\b(?P<series>SEQ|API|CR|MC)-(?P<numbers>\d{3}(?:(?:,| to| and| or)\s+\d{3}\b)*)|\b(?P<weak>W-\d{2})\b"
)


class Reference(NamedTuple):
    """A mention of a document of the specification."""

    place: str
    """Path and line."""
    name: str
    """The document's file name."""
    targets: tuple[str, ...]
    """Chapters, blocks and requirements in it; empty when the document is mentioned as a whole."""


def mentions(text: str, path: str = "") -> Iterator[Reference]:
    """Yield the references of a text to documents."""
    for found in _MENTION.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        targets = tuple(re.findall(_TARGET, found["targets"] or ""))
        yield Reference(f"{path}:{line}", f"{found['name']}.md", targets)


def named(text: str) -> Iterator[str]:
    """Yield the requirements that a text names, also those of ``SEQ-001, 002, 009 to 012``."""
    for found in _LISTED.finditer(text):
        if found["weak"]:
            yield found["weak"]
        else:
            yield from (f"{found['series']}-{number}" for number in re.findall(r"\d{3}", found["numbers"]))


def requirements(document: Path) -> Iterator[str]:
    """Yield the requirements that the document defines: each begins an item of a list or a row of a table."""
    for line in document.read_text(encoding="utf-8").splitlines():
        if found := re.match(rf"(?:- |\| )\**({_REQUIREMENT})\b", line):
            yield found[1]


@cache
def defined(name: str) -> frozenset[str]:
    """Return what references can lead to in the document of that name; raise LookupError if there is no such document."""
    found = [path for path in (DOCS / name, SPECIFICATION / name) if path.is_file()]
    if len(found) != 1:
        raise LookupError(f"{len(found)} documents {name} below docs/")
    targets = set(requirements(found[0]))
    for line in found[0].read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            targets.update(re.findall(rf"^#+ ({_NUMBER})\b", line))
        if line.startswith(("#", "|")):
            targets.update(re.findall(rf"\b(?:{_BLOCK})\b", line))
    return frozenset(targets)


@cache
def texts() -> dict[str, str]:
    """Return the Python modules and Markdown pages of the project by path."""
    paths = [*PROJECT.glob("*.md"), *(path for folder in READ for path in (PROJECT / folder).rglob("*.*"))]
    return {
        path.relative_to(PROJECT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
        if path.suffix in {".py", ".md"} and path != Path(__file__)
    }


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("the plan (sequences.md 1.10).", ("1.10",)),
        ("see `sequences.md` section 2, which", ("2",)),
        ("sequences.md 2.2 to 2.4.", ("2.2", "2.4")),
        ("sequences.md chapters 3 and 10)", ("3", "10")),
        ("sequences.md 1.9, A1t)", ("1.9", "A1t")),
        ("sequences.md D1,\n    # SEQ-035: the stack first", ("D1", "SEQ-035")),
        ("sequences.md 3.9: 4xx is not repeated", ("3.9",)),
        ("`sequences.md` says what an operation does", ()),
    ],
)
def test_references_are_recognised(text: str, targets: tuple[str, ...]) -> None:
    assert list(mentions(text)) == [Reference(":1", "sequences.md", targets)]


def test_abbreviated_lists_of_requirements_are_recognised() -> None:
    assert list(named("SEQ-001, 002, 009 to 012; W-06, API-031")) == [
        "SEQ-001",
        "SEQ-002",
        "SEQ-009",
        "SEQ-012",
        "W-06",
        "API-031",
    ]


def test_each_reference_leads_to_an_existing_document_and_place() -> None:
    references = [reference for path, text in texts().items() for reference in mentions(text, path)]
    assert len(references) > 100
    missing = []
    for place, name, targets in references:
        try:
            known = defined(name)  # also of a mention without targets: the document must exist
            missing += [f"{place}: {name} has no {target}" for target in targets if target not in known]
        except LookupError as error:
            missing.append(f"{place}: {error}")
    assert not missing, "\n".join(missing)


def test_each_named_requirement_is_defined() -> None:
    known = {requirement for document in SPECIFICATION.glob("*.md") for requirement in requirements(document)}
    unknown = {path: sorted(set(named(text)) - known) for path, text in texts().items()}
    assert not {path: ids for path, ids in unknown.items() if ids}


def test_no_requirement_is_defined_twice() -> None:
    times = Counter(requirement for document in SPECIFICATION.glob("*.md") for requirement in requirements(document))
    assert not [requirement for requirement, count in times.items() if count > 1]
