"""A real browser for the dashboard's tests: one Chromium for the session, a fresh context for each test."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
GRAVE = ("serious", "critical")


@pytest.fixture(scope="session")
def chromium() -> Path:
    """Where it is; without one a test is skipped, or fails where all of them must run."""
    if not CHROMIUM.exists() and not os.environ.get("CI"):
        pytest.skip(f"there is no {CHROMIUM}: install Chromium to test the dashboard in it")
    return CHROMIUM


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: Path) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=[*FLAGS])
        yield browser
        await browser.close()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in RECOLLECT_SCREENSHOTS, for people to look at; else a temporary one."""
    folder = Path(os.environ.get("RECOLLECT_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@asynccontextmanager
async def looking(browser: Browser, base: str, **options: Any) -> AsyncIterator[Page]:
    """A page of a person's own, who sees no error on it: neither of a script nor of the policy about them."""
    context = await browser.new_context(**{"base_url": base, "viewport": DESK, "reduced_motion": "reduce", **options})
    page = await context.new_page()
    page.set_default_timeout(10_000)
    errors: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            errors.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    await context.close()
    assert errors == []


async def assert_fits(page: Page) -> None:
    """Nobody has to scroll sideways."""
    wide, screen = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= screen, f"{page.url} is {wide} wide on a screen of {screen}"


async def assert_accessible(page: Page) -> None:
    """axe-core finds nothing serious or critical."""
    found = await Axe().run(page)
    grave = [one for one in found.response["violations"] if one["impact"] in GRAVE]
    told = [(one["id"], node["html"], node.get("failureSummary")) for one in grave for node in one["nodes"]]
    assert told == [], f"{page.url}: {told}"
