"""A user of the web page in a browser, and a client of the API that makes what the page shows."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from callers.user import Answer, User
from callers.users import PASSWORD, basic

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Locator, Page

AXE: Final = Path(__file__).parents[3] / "services/lcm-api/page/node_modules/axe-core/axe.min.js"
_ASK: Final = """
;axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(found =>
  found.violations.map(({id, help, nodes}) => ({id, help, nodes: nodes.slice(0, 5).map(node => node.html + " " + node.failureSummary)})))
"""

LOOKS: Final[Sequence[tuple[Literal["light", "dark"], int, int]]] = (
    ("light", 1280, 900),
    ("dark", 1280, 900),
    ("light", 320, 900),
)
"""Scheme, width and height at which each view is checked."""


class Client(User):
    """A client of the API with the password of an admin: it makes what the page shows."""

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Answer:
        return await super().call(method, path, body, headers={**basic("anna"), **(headers or {})}, data=data)


@dataclass
class Tab:
    """A tab of the browser, with what went wrong in it and where it has sent requests."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def heed(self) -> None:
        """Record errors of scripts, refusals of the policy and requests to other hosts."""
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda said: self.wrong.append(said.text) if _is_wrong(said) else None)
        self.page.on(
            "request",
            lambda sent: None if sent.url.startswith(f"{self.url}/") else self.elsewhere.append(sent.url),
        )

    async def log_in(self, name: str, path: str = "/") -> None:
        """Open the page, and log in."""
        await self.page.goto(f"{self.url}{path}")
        await self.page.get_by_label("Name").fill(name)
        await self.page.get_by_label("Password").fill(PASSWORD)
        await self.page.keyboard.press("Enter")
        await self.page.get_by_role("navigation", name="Views").wait_for()

    async def picture(self, name: str, at: Locator | None = None) -> None:
        """Write what is in the tab for the documents, with a small palette; only where a folder was named for pictures.

        ``at``: what must be in the middle; None: what is in sight.
        """
        folder = os.environ.get("KUBEVNFM_PICTURES")
        if not folder:
            return
        from PIL import Image

        await self.page.set_viewport_size({"width": 1100, "height": 820})
        if at is not None:
            await at.evaluate("element => element.scrollIntoView({block: 'center'})")
        shot = Image.open(io.BytesIO(await self.page.screenshot(animations="disabled")))
        shot.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(Path(folder) / f"{name}.png", optimize=True)
        await self.page.set_viewport_size({"width": 1280, "height": 900})

    async def faultless(self, looks: Sequence[tuple[Literal["light", "dark"], int, int]] = LOOKS) -> None:
        """Raise AssertionError if axe finds something against WCAG 2.2 AA: in light or dark, at a width and height."""
        for scheme, width, height in looks:
            await self.page.emulate_media(color_scheme=scheme)
            await self.page.set_viewport_size({"width": width, "height": height})
            # As a tester's tool, not as a script of the page: the page's policy would refuse it.
            found = await self.page.evaluate(AXE.read_text() + _ASK)
            assert not found, f"{self.page.url} {scheme} {width}: {json.dumps(found, indent=1)}"
            await self._has_width(width)
        await self.page.emulate_media(color_scheme=None)
        await self.page.set_viewport_size({"width": 1280, "height": 900})

    async def fits(self) -> None:
        """Raise AssertionError if the page scrolls sideways, wide or at 320 pixels."""
        for width in (320, 1280):
            await self.page.set_viewport_size({"width": width, "height": 900})
            await self._has_width(width)

    async def _has_width(self, width: int) -> None:
        beyond = await self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert beyond <= 0, f"{self.page.url} scrolls sideways by {beyond} at {width} pixels"


def _is_wrong(said: ConsoleMessage) -> bool:
    # The browser reports each answer of 4xx, which is what some tests ask for.
    return said.type == "error" and "Failed to load resource" not in said.text
