"""How a person uses a page: with a mouse, or with the keyboard alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

_MOST_TABS: Final = 150
_IS_FOCUSED: Final = "element => element === document.activeElement"


class Hand(ABC):
    """A person at a page."""

    def __init__(self, page: Page) -> None:
        self.page = page

    @abstractmethod
    async def press(self, what: Locator) -> None:
        """Press a button, a link, the lid of a part or a box."""

    @abstractmethod
    async def write(self, what: Locator, text: str) -> None:
        """Write a text into a field."""

    @abstractmethod
    async def choose(self, what: Locator, label: str) -> None:
        """Choose an option by name."""

    @abstractmethod
    async def give(self, what: Locator, files: Sequence[Path]) -> None:
        """Give files to a field for them."""


class Mouse(Hand):
    """Clicks, and types where it has clicked."""

    async def press(self, what: Locator) -> None:
        await what.click()

    async def write(self, what: Locator, text: str) -> None:
        await what.click()
        await what.fill(text)

    async def choose(self, what: Locator, label: str) -> None:
        await what.select_option(label)

    async def give(self, what: Locator, files: Sequence[Path]) -> None:
        async with self.page.expect_file_chooser() as chooser:
            await what.click()
        await (await chooser.value).set_files(files)


class Keyboard(Hand):
    """Reaches all with Tab, presses with Enter or the space bar, and chooses by the beginning of a name."""

    async def _reach(self, what: Locator) -> None:
        await what.wait_for()
        for _ in range(_MOST_TABS):
            if await what.evaluate(_IS_FOCUSED):
                return
            await self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {what}")

    async def press(self, what: Locator) -> None:
        await self._reach(what)
        is_box = await what.evaluate("element => element.type === 'checkbox'")
        await self.page.keyboard.press("Space" if is_box else "Enter")

    async def write(self, what: Locator, text: str) -> None:
        await self._reach(what)
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(text)

    async def choose(self, what: Locator, label: str) -> None:
        await self._reach(what)
        await self.page.keyboard.press("Home")
        for _ in range(await what.locator("option").count()):
            if await what.evaluate("element => element.selectedOptions[0]?.textContent") == label:
                return
            await self.page.keyboard.press("ArrowDown")
        assert await what.evaluate("element => element.selectedOptions[0]?.textContent") == label

    async def give(self, what: Locator, files: Sequence[Path]) -> None:
        await self._reach(what)
        async with self.page.expect_file_chooser() as chooser:
            await self.page.keyboard.press("Space")
        await (await chooser.value).set_files(files)
