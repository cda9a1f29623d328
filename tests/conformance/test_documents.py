"""The pages for people who change the project name files, classes and functions that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[2]
PAGES: Final = (
    "CONTRIBUTING.md",
    "docs/architecture.md",
    *(path.relative_to(PROJECT).as_posix() for path in sorted((PROJECT / "services").glob("*/README.md"))),
    *(path.relative_to(PROJECT).as_posix() for path in sorted((PROJECT / "docs" / "adr").glob("*.md"))),
)
EXAMPLES: Final = frozenset({"utils.py", "Release.key"})
"""Names of files that are not the project's."""
FOLDERS: Final = ("deploy", "docs", "libs", "proto-events", "services", "tests")
SHORT: Final = {"worker/": "kubevnfm_worker/"}
"""Abbreviations that docs/architecture.md introduces."""

OWN: Final = frozenset({"AddressPools", "Inventory", "Pool"})
"""Classes that CONTRIBUTING.md describes without an example."""

every_page = pytest.mark.parametrize("page", PAGES)


@cache
def files() -> tuple[str, ...]:
    """Return the paths of the project's files, each with a slash before it."""
    found = [path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.*") if path.is_file()]
    return tuple(f"/{path.relative_to(PROJECT).as_posix()}" for path in [*found, *PROJECT.glob("*.*")])


@cache
def sources() -> tuple[str, ...]:
    """Return the text of each of the product's modules."""
    paths = [path for path in files() if path.endswith(".py") and not path.startswith("/tests/")]
    return tuple((PROJECT / path[1:]).read_text(encoding="utf-8") for path in paths)


@cache
def members(class_name: str) -> frozenset[str]:
    """Return `Class.member` for each method, field and property of the product's classes of that name."""
    return frozenset(
        f"{node.name}.{name}"
        for source in sources()
        # Only the modules that have it are parsed: all of them take many seconds.
        if f"class {class_name}" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name == class_name
        for name in names_in(node)
    )


def names_in(node: ast.ClassDef) -> set[str]:
    found = {one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    return found | {
        one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }


def examples(page: str) -> str:
    """Return the indented examples as one text."""
    lines = (PROJECT / page).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith("    "))


def quoted(page: str) -> list[str]:
    """Return the texts between backticks, outside of indented examples."""
    lines = (PROJECT / page).read_text(encoding="utf-8").splitlines()
    return re.findall(r"`([^`]+)`", "\n".join(line for line in lines if not line.startswith("    ")))


def found_at(text: str) -> list[str]:
    """Return the files that a text such as `domain/saga.py` can mean."""
    wanted = next((full + text.removeprefix(short) for short, full in SHORT.items() if text.startswith(short)), text)
    return [path for path in files() if path.endswith(f"/{wanted}")]


@every_page
def test_a_page_names_files_that_exist(page: str) -> None:
    named = {text for text in quoted(page) if re.fullmatch(r"[\w./-]+\.(?:py|md|sh|toml|yml)", text)}
    assert not [text for text in sorted(named - EXAMPLES) if not found_at(text)]


@every_page
def test_a_page_names_functions_of_a_file_that_are_there(page: str) -> None:
    text = (PROJECT / page).read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+\.py)` \(`(\w+)`\)", text)
    assert not [
        f"{path}: {name}"
        for path, name in named
        if not any(re.search(rf"\b{name}\b", (PROJECT / one[1:]).read_text(encoding="utf-8")) for one in found_at(path))
    ]


@every_page
def test_a_page_names_members_of_classes_that_exist(page: str) -> None:
    named = {text for text in quoted(page) if re.fullmatch(r"[A-Z]\w*[a-z]\w*\.(?!md|py)\w+", text)}
    assert sorted(text for text in named - EXAMPLES if text not in members(text.partition(".")[0])) == []


def test_examples_use_classes_that_exist() -> None:
    text = examples("CONTRIBUTING.md")
    used = set(re.findall(r"\b[A-Z][a-z]\w*(?=[\[(,:\]])", re.sub(r'""".*?"""', "", text, flags=re.DOTALL)))
    known = "\n".join(sources())
    own = set(re.findall(r"class (\w+)", text))
    assert [name for name in sorted(used - own - OWN) if not re.search(rf"\b{name}\b", known)] == []
