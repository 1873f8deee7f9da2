"""A real browser, and a real server for it to look at. Where there is no browser, that is a failure."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from flyball import LocalRuntime, Service
from flyball.adapters.http.entry import serving_http
from tests.browser.agents import Said, agents

expect.set_options(timeout=20_000)


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "there is no chromium: apt-get install chromium"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        await browser.close()


class Studio:
    """The page, as somebody looks at it; `wrong` has what went wrong in it, `asked` all that it asked for."""

    def __init__(self, page: Page, service: Service, said: Said) -> None:
        self.page = page
        self.service = service
        self.said = said
        self.url = ""
        self.wrong: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda one: self._heard(one.type, one.text))
        page.on("dialog", lambda one: self.wrong.append(f"a dialog: {one.message}"))
        page.on("request", lambda one: self.asked.append(one.url))

    def _heard(self, kind: str, text: str) -> None:
        # That a request was answered with a problem is no fault of the page.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.wrong.append(text)

    async def open(self, place: str = "") -> None:
        await self.page.goto(f"{self.url}/#/{place}")

    async def begin(self, agent: str, text: str, loop_id: str, **more: Any) -> None:
        asked = {"messages": [{"role": "user", "content": text}], **more}
        where = f"{self.url}/api/agents/{agent}/loops?loop_id={loop_id}"
        answer = await self.page.request.post(where, data=asked)
        assert answer.status == 202, await answer.text()

    async def picture(self, name: str) -> None:
        """Keep a picture, for whoever wants to look: PICTURES names the folder."""
        if folder := os.environ.get("PICTURES"):
            await self.page.screenshot(path=Path(folder) / f"{name}.png")


@asynccontextmanager
async def studio_of(
    browser: Browser, *, size: tuple[int, int] = (1360, 860), **options: Any
) -> AsyncGenerator[Studio]:
    """A page of a server whose loops are kept in memory."""
    said = Said()
    context = await browser.new_context(viewport={"width": size[0], "height": size[1]})
    async with LocalRuntime() as runtime:
        service = Service([*agents(), said.agent()], runtime)
        studio = Studio(await context.new_page(), service, said)
        async with serving_http(service, **options) as url:
            studio.url = url
            yield studio
            await context.close()
        await service.aclose()


@pytest.fixture
async def studio(browser: Browser) -> AsyncGenerator[Studio]:
    async with studio_of(browser) as studio:
        yield studio
        assert studio.wrong == []
        assert [url for url in studio.asked if not url.startswith(f"{studio.url}/")] == []
