"""``make stored-operations``: writes what lcm-api stores now into tests/fixtures/stored/<version>.

python tests/stored VERSION [STORY ...]

A folder that exists is refused, except `next`: the files of a release never change, see README.md there.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

from cases import cases_of, plans_and_steps, text_of, with_ends  # noqa: E402
from kubevnfm_secrets import sealing  # noqa: E402
from parts import Story  # noqa: E402
from recording import StoryRing  # noqa: E402
from script import script  # noqa: E402
from stories import STORIES  # noqa: E402
from worlds.stored_operations import FIXTURES, KEY_FILE, NEXT, StoryFile, write_story  # noqa: E402

_KEY = """\
# The key of these fixtures. It was made for them and protects nothing.
c3RvcmVkLW9wZXJhdGlvbnMtb2YtdGhlLXRlc3RzISE=
"""


async def written(name: str, story: Story, ring: StoryRing, known: set[str]) -> StoryFile:
    """Return the story's file; cases that are in ``known`` are left out, new ones are added to it."""
    with tempfile.TemporaryDirectory() as folder:
        async with script(Path(folder), ring, asks_nfvo=story.asks_nfvo) as running:
            running.answers_with(story.answers, story.remains)
            await story.play(running)
            nfvo = running.nfvo
            grant_request = nfvo.requests[-1] if nfvo is not None else None
            operation_id, instance_id = running.operation_id, running.instance_id
            cases = cases_of(running.record.moments, operation_id, instance_id)
    if story.asks_nfvo:  # before it is asked it needs the package, which a replay does not have
        cases = [case for case in cases if not case.name.endswith(("-claimed", "-starting"))]
    plans, steps = plans_and_steps(cases)
    new_cases = []
    for case in cases:
        if (text := text_of(case)) not in known:
            known.add(text)
            new_cases.append(case)
    return StoryFile(
        name=name,
        operation_id=operation_id,
        instance_id=instance_id,
        plans=plans,
        steps=steps,
        answers={
            key: {"type": event.type, "data": event.model_dump(mode="json", context=sealing(ring), exclude_none=True)}
            for key, event in story.answers.items()
        },
        remains=story.remains,
        grant_request=grant_request,
        cases=new_cases,
    )


async def main() -> None:
    """Write the fixtures that are asked for."""
    arguments = argparse.ArgumentParser(prog="python tests/stored", description="Writes fixtures of stored operations")
    arguments.add_argument("version", help=f"the folder: the version that is about to be released, or {NEXT}")
    arguments.add_argument("stories", nargs="*", help="those alone; the whole folder is written again unless given")
    given = arguments.parse_args()
    folder = FIXTURES / given.version
    if given.version != NEXT and folder.exists():
        arguments.error(
            f"{folder.name} is there; what a release has stored stays as it is. Not released yet? Delete it"
        )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / KEY_FILE).write_text(_KEY, encoding="utf-8")
    if not given.stories:
        for path in folder.glob("*.json"):
            path.unlink()
    ring = StoryRing.from_text(_KEY.splitlines()[-1])
    known: set[str] = set()
    for name, story in STORIES.items():
        if not given.stories or name in given.stories:
            file = await with_ends(await written(name, story, ring, known), ring)
            write_story(folder / f"{name}.json", file)
            ways = sum(len(case.ends) for case in file.cases)
            print(f"{name}: {len(file.cases)} cases, {ways} ways to an end", flush=True)  # noqa: T201  # a tool


if __name__ == "__main__":
    asyncio.run(main())
