"""The studio while its server cannot do its work: a model is on its way, or nothing is heard of it."""

from __future__ import annotations

from playwright.async_api import Browser, expect

from flyball.core.errors import FlyballError, ModelBeingFetched
from tests.browser.conftest import studio_of
from tests.browser.silence import between


class _Coming:
    """A model that is so far."""

    def __init__(self) -> None:
        self.percent: int | None = 37

    def missing(self, model: str | None = None) -> FlyballError | None:
        said = f"the model qwen is being fetched ({self.percent} %)"
        return None if self.percent is None else ModelBeingFetched(said, model="qwen")

    async def wait(self, model: str) -> None:
        """Nobody does."""


async def test_a_model_that_is_fetched_is_told_and_a_message_waits_for_it(browser: Browser) -> None:
    coming = _Coming()
    async with studio_of(browser, grace=0.1, arriving=coming) as studio:
        page = studio.page
        await studio.open("chat/slow/s1")
        await expect(page.locator(".connection.unready")).to_have_text(
            "the model qwen is being fetched (37 %)"
        )
        await page.get_by_label("Message").fill("Hello")
        await page.get_by_label("Message").press("Enter")
        await expect(page.locator(".bubble.assistant .thinking-dots")).to_contain_text("37 %")
        await studio.picture("fetching")
        coming.percent = 88
        await expect(page.locator(".bubble.assistant .thinking-dots")).to_contain_text("88 %")
        coming.percent = None
        await expect(page.locator(".connection.unready")).to_have_count(0)
        await expect(page.locator(".bubble.assistant .thinking-dots")).to_have_text("…")
        studio.said.say("Hi.", None)
        await expect(page.locator(".bubble.assistant .prose")).to_have_text("Hi.")
        assert studio.wrong == []


async def test_a_server_that_falls_silent_is_noticed_within_ten_seconds(browser: Browser) -> None:
    async with studio_of(browser, grace=0.1) as studio, between(studio.url) as proxy:
        page = studio.page
        await studio.begin("slow", "Tell me a story", "story")
        await page.clock.install()
        await page.goto(f"{proxy.url}/#/loops/story")
        studio.said.say("Once ")
        await expect(page.locator(".live")).to_have_text("Once ")
        proxy.silent = True
        studio.said.say("upon ")
        await page.clock.run_for(10_000)
        await expect(page.locator(".connection.lost")).to_contain_text("connection lost")
        proxy.silent = False
        studio.said.say("a time")
        for _ in range(20):
            await page.clock.run_for(1_000)
            await page.wait_for_timeout(20)
        await expect(page.locator(".live")).to_have_text("Once upon a time")
        await expect(page.locator(".connection.lost")).to_have_count(0)
        assert studio.wrong == []


async def test_who_is_answered_or_does_not_look_is_not_alarmed(browser: Browser) -> None:
    async with studio_of(browser) as studio, between(studio.url) as proxy:
        page = studio.page
        await page.clock.install()
        await page.goto(f"{proxy.url}/#/")
        await expect(page.locator("#side .foot")).to_contain_text("Nothing has run yet")
        for _ in range(6):
            async with page.expect_response("**/api/loops*"):
                await page.clock.run_for(2_000)
        await expect(page.locator(".connection.lost")).to_have_count(0)
        await page.evaluate(
            """() => {
                Object.defineProperty(document, "hidden", { value: true });
                Object.defineProperty(document, "visibilityState", { value: "hidden" });
            }"""
        )
        proxy.silent = True
        await page.clock.run_for(60_000)
        await expect(page.locator(".connection.lost")).to_have_count(0)
        assert studio.wrong == []
