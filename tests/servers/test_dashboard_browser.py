"""The dashboard in a real browser: every view, both colour schemes, a phone, the keyboard alone, scripts off, and
engines that go down while somebody looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect

from recollect import AsyncRecollect
from recollect.settings import Settings
from tests.falkordb_server import FalkorServer
from tests.servers.dashboard_browser import (
    DESK,
    PHONE,
    assert_accessible,
    assert_fits,
    browser,
    chromium,
    looking,
    screenshots,
)
from tests.servers.dashboard_server import Server, fill, serving

__all__ = ["browser", "chromium", "screenshots"]  # fixtures of another module

pytestmark = pytest.mark.asyncio(loop_scope="session")

VIEWS = {
    "start": "/",
    "recall": "/?q=has+invoice+12344+been+paid%3F&limit=4",
    "compare": "/?q=where+do+our+green+beans+come+from%3F&limit=3&versus=sci&expect=beans-before",
    "refused": "/?q=beans&limit=1000",
    "nothing": "/?q=beans&space=nowhere",
    "memories": "/memories?kind=knowledge",
    "empty": "/memories?space=nowhere",
    "memory": "/memory?id=beans-now",
    "missing": "/memory?id=nobody",
    "health": "/health",
    "unused": "/health?space=nowhere",
    "spaces": "/spaces",
    "login": "/login",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demo's memories, which no test may change."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('site') / 'memory.db'}", embedder="hashing") as server:
        server.do(fill)
        yield server


async def come_again(page: Page) -> None:
    """Let the time pass after which a page looks again, without waiting for it."""
    await page.clock.fast_forward(5_000)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_view(browser: Browser, site: Server, screenshots: Path, scheme: Literal["light", "dark"]) -> None:
    """In both colour schemes, on a desk and on a phone: nothing has to be scrolled sideways, axe-core finds nothing
    serious, and a screenshot is kept.
    """
    async with looking(browser, site.base, color_scheme=scheme) as page:
        for name, path in VIEWS.items():
            await page.set_viewport_size(DESK)  # type: ignore[arg-type]
            await page.goto(path)
            await assert_accessible(page)
            await page.screenshot(path=screenshots / f"{name}-{scheme}-desk.png", full_page=True)
            await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
            await assert_fits(page)
            await page.screenshot(path=screenshots / f"{name}-{scheme}-phone.png", full_page=True)


async def test_with_the_keyboard_alone(browser: Browser, site: Server) -> None:
    """Skip the menu, ask, open a hit, and walk along a link in the drawing: with Tab, letters and Enter."""
    async with looking(browser, site.base) as page:
        await page.goto("/memories")
        await page.keyboard.press("Tab")
        await expect(page.get_by_text("Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_be_focused()
        await page.goto("/")
        await expect(page.get_by_label("Question")).to_be_focused()
        await page.keyboard.type("why could nobody buy anything on 14 May?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".hit").first).to_be_visible()
        await tab_to(page, "Open memory 1")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="What is around it")).to_be_visible()
        first = page.url
        await page.locator(".web a").first.focus()
        await page.keyboard.press("Tab")
        await expect(page.locator(".web a").nth(1)).to_be_focused()
        await page.keyboard.press("Enter")
        await page.wait_for_url(lambda url: url != first and "/memory?" in url)


async def tab_to(page: Page, label: str) -> None:
    """Press Tab until something with this label has the focus."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if (await page.evaluate("document.activeElement.getAttribute('aria-label') || ''")).startswith(label):
            return
    raise AssertionError(f"Tab does not lead to {label}")


async def test_what_has_the_focus_shows(browser: Browser, site: Server) -> None:
    """Links, fields, buttons and circles of the drawing have a ring, by the keyboard."""
    async with looking(browser, site.base) as page:
        await page.goto("/memory?id=beans-now")
        await page.keyboard.press("Tab")
        outlined = "getComputedStyle(document.activeElement).outlineStyle"
        for _ in range(8):
            assert await page.evaluate(outlined) == "solid"
            await page.keyboard.press("Tab")
        await page.evaluate("document.activeElement.blur()")
        circle = page.locator(".web a circle").first
        width = "shape => parseFloat(getComputedStyle(shape).strokeWidth)"
        before = await circle.evaluate(width)
        await page.locator(".web a").first.focus()
        assert await circle.evaluate(width) > before


async def test_without_scripts(browser: Browser, site: Server, screenshots: Path) -> None:
    """Ask, compare, filter, turn the page, choose colours, look at the engines: all by links and forms."""
    async with looking(browser, site.base, java_script_enabled=False, color_scheme="light") as page:
        await page.goto("/")
        await page.get_by_label("Question").fill("invoice 12344")
        await page.get_by_label("Compare with").select_option("novamem")
        await page.get_by_role("button", name="Recall").click()
        await expect(page.locator("mark").first).to_be_visible()
        await expect(page.locator("section.side")).to_have_count(2)
        await page.get_by_text("Numbers").first.click()
        await expect(page.get_by_role("cell").first).to_be_visible()
        await page.get_by_role("link", name="Memories").click()
        await page.get_by_role("link", name="Next page").click()
        await page.get_by_label("Kind").select_option("message")
        await page.get_by_role("button", name="Filter").click()
        await expect(page.locator(".list li")).to_have_count(6)
        await page.get_by_role("button", name="Dark").click()
        await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        await expect(page.locator(".list li")).to_have_count(6)
        await page.get_by_role("link", name="Health").click()
        await expect(page.locator(".engines .state.ok")).to_have_count(2)
        await page.get_by_role("link", name="Look again").click()
        await page.screenshot(path=screenshots / "health-without-scripts.png", full_page=True)


async def test_chosen_colours_outweigh_the_systems(browser: Browser, site: Server) -> None:
    """Light or dark by the button, else as the system says."""
    paper = "getComputedStyle(document.body).backgroundColor"
    async with looking(browser, site.base, color_scheme="light") as page:
        await page.goto("/")
        light = await page.evaluate(paper)
        await page.emulate_media(color_scheme="dark")
        dark = await page.evaluate(paper)
        assert light != dark
        for name, colour in (("Light", light), ("Dark", dark), ("Auto", dark)):
            await page.get_by_role("button", name=name).click()
            await expect(page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", "true")
            assert await page.evaluate(paper) == colour


async def test_something_is_under_way(browser: Browser, site: Server, screenshots: Path) -> None:
    """While an answer is awaited the page says so, and no longer when one comes back to it."""
    async with looking(browser, site.base) as page:
        await page.goto("/")
        await page.evaluate("document.addEventListener('submit', event => event.preventDefault())")  # wait for ever
        await page.get_by_label("Question").fill("beans")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("button", name="Recalling…")).to_be_visible()
        await expect(page.locator("html")).to_have_attribute("aria-busy", "true")
        await page.screenshot(path=screenshots / "under-way.png")
        await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow'))")
        await expect(page.get_by_role("button", name="Recall", exact=True)).to_be_visible()
        await expect(page.locator("html")).not_to_have_attribute("aria-busy", "true")


async def test_an_engine_goes_down_while_the_page_is_open(
    browser: Browser, mortal_falkordb: FalkorServer, tmp_path: Path, screenshots: Path
) -> None:
    """Health shows it without being asked, and what waits for it; a recall says that it is degraded; and when the
    engine is back the page says that, too.
    """
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    settings = replace(Settings.load(url=url, embedder="hashing"), graph=mortal_falkordb.url)

    async def remember(client: AsyncRecollect) -> None:
        await client.space("default").remember("The web shop is down")

    with serving(url, settings=settings) as server:
        server.do(fill)
        async with looking(browser, server.base) as page:
            await page.clock.install()
            await page.goto("/health")
            engine = page.locator(".engines li", has_text="falkordb").first
            await expect(engine.locator(".state")).to_have_text("ok")
            await page.get_by_text("The same as numbers").click()
            mortal_falkordb.kill()
            server.do(remember)
            await come_again(page)
            await expect(engine.locator(".state")).to_have_text("down")
            await expect(engine.locator(".lag")).to_contain_text(re.compile("changes? waits? since"))
            await expect(page.locator("#numbers")).to_have_attribute("open", "")
            await assert_accessible(page)
            await page.screenshot(path=screenshots / "health-engine-down.png", full_page=True)
            await page.goto("/?q=web+shop")
            await expect(page.get_by_text("A degraded answer")).to_be_visible()
            await expect(page.locator(".hit").first).to_be_visible()
            await assert_accessible(page)
            await page.screenshot(path=screenshots / "recall-degraded.png", full_page=True)
            await page.goto("/health")
            mortal_falkordb.start()
            await come_again(page)
            await expect(engine.locator(".state")).to_have_text("ok")


async def test_the_server_goes_down_while_the_page_is_open(browser: Browser, tmp_path: Path, screenshots: Path) -> None:
    """What was seen stays, and the page says that it is not fresh."""
    async with looking(browser, "") as page:
        await page.clock.install()
        with serving(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as server:
            await page.goto(f"{server.base}/health")
        await come_again(page)
        await expect(page.get_by_text("The server does not answer as it should")).to_be_visible()
        await expect(page.get_by_text("It cannot be reached.")).to_be_visible()
        await expect(page.locator(".engines li").first).to_be_visible()
        await page.screenshot(path=screenshots / "health-server-down.png", full_page=True)


async def test_the_store_goes_down_while_the_page_is_open(browser: Browser, tmp_path: Path) -> None:
    """The server cannot even tell who asks: the page says what it says, in a sentence."""

    async def close(client: AsyncRecollect) -> None:
        await client._store.close()

    with serving(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as server:
        async with looking(browser, server.base) as page:
            await page.clock.install()
            await page.goto("/health")
            server.do(close)
            await come_again(page)
            await expect(page.get_by_text("It says:")).to_contain_text("open the store first")
            await page.goto("/memories")
            await expect(page.get_by_role("alert")).to_contain_text("open the store first")
            await assert_accessible(page)


async def test_a_page_that_is_not_there(browser: Browser, site: Server) -> None:
    """A person is told so in a page, a program in a document."""
    async with looking(browser, site.base) as page:
        answer = await page.goto("/nowhere/<b>")
        assert answer
        assert answer.status == 404
        await expect(page.get_by_role("alert")).to_contain_text("there is no page")
        document = await page.request.get("/nowhere", headers={"Accept": "*/*"})
        assert document.headers["content-type"] == "application/problem+json"


async def test_tokens_from_the_first_to_signing_out(browser: Browser, tmp_path: Path, screenshots: Path) -> None:
    """Make one, see its secret once, sign in with it, revoke another, sign out."""
    with serving(f"sqlite:///{tmp_path / 'memory.db'}", embedder="hashing") as server:
        server.do(fill)
        async with looking(browser, server.base) as page:
            await page.goto("/spaces")
            await page.get_by_label("Name").fill("Ada")
            await page.get_by_label("May").select_option("admin")
            await page.get_by_label("all spaces").check()
            await page.get_by_role("button", name="Make the token").click()
            secret = await page.get_by_label("Secret").input_value()
            await assert_accessible(page)
            await page.screenshot(path=screenshots / "token-made.png", full_page=True)
            await page.goto("/memories?kind=fact")
            await page.get_by_label("Token").fill(secret[:-1] + "x")
            await page.get_by_role("button", name="Sign in").click()
            await expect(page.get_by_role("alert")).to_contain_text("this is not a token of this store")
            await assert_accessible(page)
            await page.get_by_label("Token").fill(secret)
            await page.get_by_role("button", name="Sign in").click()
            await page.wait_for_url("**/memories?kind=fact")
            await expect(page.get_by_text("Signed in as Ada")).to_be_visible()
            await page.goto("/spaces")
            await page.get_by_label("Name").fill("CI")
            await page.get_by_label("default").check()
            await page.get_by_role("button", name="Make the token").click()
            await page.get_by_text("Revoke CI").click()
            await page.get_by_role("button", name="Revoke for good").click()
            await expect(page.locator(".tokens")).to_contain_text("revoked")
            await assert_accessible(page)
            await page.screenshot(path=screenshots / "tokens.png", full_page=True)
            await page.get_by_role("button", name="Sign out").click()
            await page.wait_for_url("**/login")
            await page.goto("/")
            await page.wait_for_url("**/login?next=*")
