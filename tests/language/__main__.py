"""Finds words, sentence forms and long functions that the project does not use, and names what to write instead.

Usage: python tests/language [PATH ...]. Reads every file that git tracks below the paths, comments, texts and names
alike. Prints one line for each finding and ends with 1 if there is one. The rules come from CONTRIBUTING.md, Language,
whose tables quote what is not to be written and are left out.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PROSE: Final = (".md", ".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg", ".txt", "Makefile", "Dockerfile")
EXEMPT: Final = re.compile(
    r"^(LICENSE|tests/language/|requirements\.lock|deploy/base/locks/|.*/tacker_shim/|docs/specification/sources/"
    r"|tests/fixtures/|proto-events/released/)"
)
STORED: Final = "# a stored name: it stays"
"""Ends a line with a name that documents of earlier releases hold."""
FUNCTION_LINES: Final = 80
SENTENCE_START: Final = r"""(?:^\s*(?:[-*]\s+|\#+:?\s*|r?"{3})?|[.;:!?]\s+)"""


def word(pattern: str) -> re.Pattern[str]:
    """Return an expression for a whole word, where an underscore ends a word too."""
    return re.compile(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", re.IGNORECASE)


WORDS: Final = (
    (word("told|tells?|telling|untold"), "publish, return, report, notify, say"),
    (word("anew"), "again, or `new`"),
    (word("shall"), "must, should, will"),
    (word(r"nobody(?!\.nogroup)|somebody|whoever|whom"), "no caller, another process, no one; name the actor"),
    (word("besides"), "also, in addition to"),
    (word("in vain"), "without success"),
    (word(r"(?:go|goes|going|went) on with"), "continue with"),
    (word(r"(?:is|are|be|been|was|were|being) looked at"), "is examined, is checked"),
    (word("by (?:its|their) names?"), "by name"),
    (word("of before"), "previous, earlier"),
    (word("lies|lying"), "is, is stored, is located"),
    (word("doors?"), "listener, entry point"),
    (word("rungs?"), "a name that says the thing: retry_delay"),
    (word("(?<!k8s_step_)beginnings"), "a name that says the thing"),  # a collection of released versions
)
SENTENCES: Final = (
    (re.compile(rf"{SENTENCE_START}(?:Who|Whose|What|Of)\b(?!'s)"), "subject first, then verb"),
    (re.compile(r"(?:^|[,;:.]\s+)who (?!are you)"), "`a caller that ...`, or `if a caller ...`"),
)
PYTHON: Final = (
    (re.compile(r"\bdef (?:of|at|take|told|kept)\("), "a name that says what it makes: `from_request`"),
    (re.compile(r"\bclass Subjects?\b|\bSubjects?\("), "a name that says the thing: `VnfUnderChange`"),
    (re.compile(r"^\s*kept(?:: [^=]+)? = "), "a name that says what was kept"),
)


def findings(path: Path) -> Iterator[str]:
    """Yield a line for each word or form in the file that is not to be used."""
    rules = WORDS + SENTENCES + (PYTHON if path.suffix == ".py" else ())
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if path.name == "CONTRIBUTING.md" and line.startswith("|"):
            continue
        if line.endswith(STORED):
            continue
        if path.suffix == ".md" and line.startswith(("#", "|")):
            checked = [rule for rule in rules if rule not in SENTENCES]
        else:
            checked = list(rules)
        for pattern, advice in checked:
            if (found := pattern.search(line)) is not None:
                yield f"{path}:{number}: {found.group().strip()!r}: write {advice}"


def long_functions(path: Path) -> Iterator[str]:
    """Yield a line for each function of the Python file with more than FUNCTION_LINES lines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{path}:{node.lineno}: {node.name} has {lines} lines: write functions of up to {FUNCTION_LINES}"


def main(paths: list[str]) -> int:
    """Check the files below ``paths``; return the exit code."""
    listed = subprocess.run(["git", "ls-files", "--", *paths], check=True, capture_output=True, text=True)
    names = [name for name in listed.stdout.splitlines() if name.endswith(PROSE) and not EXEMPT.match(name)]
    present = [Path(name) for name in names if Path(name).is_file()]
    lines = [line for path in present for line in findings(path)]
    lines += [line for path in present if path.suffix == ".py" for line in long_functions(path)]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
