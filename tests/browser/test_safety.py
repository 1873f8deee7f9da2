"""The studio with what is hostile, huge, broken off, or not for everybody."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from playwright.async_api import Browser, expect

from flyball import Agent, LocalRuntime, Service, tool
from flyball.adapters.http.entry import serving_http
from flyball.adapters.http.tokens import Tokens
from flyball.core.limits import Limits, UsageLimits
from flyball.core.messages import Message, Role, ToolCall
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.recorded import until_done
from tests.browser.agents import HOSTILE, Said, agents
from tests.browser.conftest import Studio, studio_of

BOUNDLESS = Limits(max_iterations=100, usage=UsageLimits(request_limit=None))
UNSEEN = "\x1b\x00\x07\u202e\u202c\u2066\u2069\u200b"


async def test_hostile_text_is_only_text(studio: Studio) -> None:
    page = studio.page
    asked = [{"role": "user", "content": HOSTILE}]
    request = SystemRequest.from_json({"messages": asked, "metadata": {"note": HOSTILE}})
    await studio.service.handle("hostile", request, loop_id="<b>/\u202ex'&#39;")
    await studio.open()
    await page.locator(".loops a").click()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    for step in await page.locator(".step").all():
        await step.click()
    await expect(page.locator(".inside .sent").first).to_be_visible()
    for one in await page.locator("details").all():
        await one.evaluate("one => one.open = true")
    await page.get_by_role("tab", name="Journal").click()
    await expect(page.locator(".journal li").first).to_be_visible()
    for one in await page.locator(".journal details").all():
        await one.evaluate("one => one.open = true")
    await studio.picture("hostile")
    assert await page.evaluate("window.owned") is None
    assert await page.locator("img, iframe, object, embed, main script, main style").count() == 0
    links = await page.evaluate("[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))")
    assert [link for link in links if not link.startswith(("#", "/"))] == []
    text = await page.evaluate("document.body.textContent")
    assert "<script>window.owned = 1</script>" in text
    assert [one for one in UNSEEN if one in text] == []
    attributes = await page.evaluate(
        "[...document.querySelectorAll('*')].flatMap(one => [...one.attributes].map(a => a.value)).join('')"
    )
    assert [one for one in UNSEEN if one in attributes] == []


async def test_nothing_but_its_own_scripts_runs_in_the_page(browser: Browser) -> None:
    async with studio_of(browser) as studio:
        page = studio.page
        await studio.open()
        await expect(page.locator(".welcome")).to_be_visible()
        kept = await page.evaluate(
            """() => {
                const found = [];
                try { document.body.innerHTML = "<b>x</b>"; } catch (error) { found.push(error.name); }
                const script = document.createElement("script");
                try {
                    script.text = "window.owned = 1";
                    document.body.append(script);
                } catch (error) { found.push(error.name); }
                return [found, window.owned ?? null];
            }"""
        )
        assert kept == [["TypeError", "TypeError"], None]
        answer = await page.request.get(f"{studio.url}/")
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


async def test_a_line_of_ten_megabytes_and_ten_thousand_events(browser: Browser) -> None:
    @tool
    async def one(number: int) -> str:
        """Give a line."""
        return "x" * 10_000_000 if number == 0 else str(number)

    async def many(request: Request) -> Message | str:
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        if turn == 40:
            return "y" * 10_000_000
        calls = [ToolCall(f"c{turn}-{n}", "one", f'{{"number": {250 * turn + n}}}') for n in range(250)]
        return Message(Role.ASSISTANT, tuple(calls))

    context = await browser.new_context()
    async with LocalRuntime() as runtime:
        service = Service(
            [Agent(FunctionEngine(many, info="many"), name="many", tools=[one], limits=BOUNDLESS)], runtime
        )
        studio = Studio(await context.new_page(), service, Said())
        async with serving_http(service) as studio.url:
            await studio.begin("many", "z" * 1_000_000, "many")
            assert (await until_done(runtime.journal, "many")).error is None
            began = time.monotonic()
            await studio.open("loops/many")
            page = studio.page
            await expect(page.locator("#main .badge")).to_have_text("complete")
            await expect(page.locator(".answer .long button")).to_contain_text("characters more")
            took = time.monotonic() - began
            assert await page.locator(".steps > li").count() <= 600
            await page.get_by_role("button", name="earlier steps").click()
            await page.get_by_role("tab", name="Journal").click()
            await expect(page.locator(".journal li")).to_have_count(200)
            quick = await page.evaluate("performance.now()")
            await page.get_by_role("tab", name="Timeline").click()
            assert await page.evaluate("performance.now()") - quick < 2_000
            await studio.picture("huge")
            assert studio.wrong == []
            assert took < 15, took
            await context.close()
        await service.aclose()


async def test_a_lost_connection_is_shown_and_mended_without_a_reload(browser: Browser) -> None:
    said = Said()
    context = await browser.new_context()
    async with LocalRuntime() as runtime:
        service = Service([*agents(), said.agent()], runtime)
        studio = Studio(await context.new_page(), service, said)
        page = studio.page
        async with serving_http(service, grace=0.1) as studio.url:
            await studio.begin("slow", "Tell me a story", "story")
            await studio.open("loops/story")
            said.say("Once ")
            await expect(page.locator(".live")).to_have_text("Once ")
            asked = len(studio.asked)
        await expect(page.locator(".connection.lost")).to_contain_text("connection lost")
        await studio.picture("lost")
        said.say("upon ", "a time")
        async with serving_http(service, port=int(studio.url.rpartition(":")[2])):
            await expect(page.locator(".live")).to_have_text("Once upon a time")
            await expect(page.locator(".connection.lost")).to_have_count(0)
            said.say(".", None)
            await expect(page.locator("#main .badge")).to_have_text("complete")
            assert not [url for url in studio.asked[asked:] if url.endswith("main.js")], (
                "it was not loaded again"
            )
            await context.close()
        await service.aclose()


async def test_a_token_is_asked_for_and_another_tenants_loops_are_not_there(
    browser: Browser, tmp_path: Path
) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    text, _ = tokens.add("ann")
    async with studio_of(browser, tokens=tmp_path / "tokens.json") as studio:
        page = studio.page
        await studio.open("loops/nothing")
        box = page.locator("dialog input")
        await box.fill("fly_wrong")
        await page.get_by_role("button", name="Come in").click()
        await expect(page.locator("dialog input")).to_have_value("")
        await expect(page.locator("dialog h2")).to_have_text("This token is not known here, or no longer")
        await box.fill("fly_… 漢")  # no header could have it
        await page.get_by_role("button", name="Come in").click()
        await expect(page.locator("dialog input")).to_have_value("")
        await box.fill(f" \u200b{text}\u2069")  # as it is copied from a page
        await page.get_by_role("button", name="Come in").click()
        await expect(page.locator("#main .card.bad")).to_contain_text("ORCHESTRATION_LOOP_NOT_FOUND")
        await expect(page.locator("#side .foot")).to_contain_text("Nothing has run yet")
        assert text not in page.url
        assert await page.evaluate("document.cookie + JSON.stringify(localStorage)") == "{}"


async def test_a_long_answer_streams_into_a_chat_and_the_page_stays_quick(browser: Browser) -> None:
    async with studio_of(browser) as studio:
        page = studio.page
        await studio.open("chat/slow/s1")
        await page.evaluate(
            """() => {
                window.longest = 0;
                const watching = new PerformanceObserver((list) => {
                    const times = list.getEntries().map((one) => one.duration);
                    window.longest = Math.max(window.longest, ...times);
                });
                watching.observe({ entryTypes: ["longtask"] });
            }"""
        )
        await page.get_by_label("Message").fill("Tell me all")
        await page.get_by_label("Message").press("Enter")
        await expect(page.locator(".bubble.user")).to_have_count(1)
        for _ in range(100):
            studio.said.say(*["a few words of a long answer "] * 40)
            await asyncio.sleep(0)
        await expect(page.locator(".live")).to_contain_text("a few words")
        studio.said.say("the end", None)
        await expect(page.locator(".bubble.assistant .long, .bubble.assistant .prose")).to_have_count(1)
        assert await page.evaluate("window.longest") < 2_000
        assert studio.wrong == []


async def test_many_messages_may_wait_in_one_chat(studio: Studio) -> None:
    page = studio.page
    for number in range(8):  # said by several people, or from several pages
        await studio.begin("travel", f"To Rome {number}", f"rome{number}", session_id="s1")
    await studio.open("chat/travel/s1")
    await expect(page.locator(".card.waiting")).to_have_count(8)
    for left in range(7, -1, -1):
        await page.get_by_role("button", name="Approve").first.click()
        await expect(page.locator(".card.waiting")).to_have_count(left)


async def test_what_was_opened_while_the_server_was_away_is_shown_once_it_is_there(browser: Browser) -> None:
    context = await browser.new_context()
    async with LocalRuntime() as runtime:
        service = Service(agents(), runtime)
        studio = Studio(await context.new_page(), service, Said())
        page = studio.page
        async with serving_http(service, grace=0.1) as studio.url:
            await studio.begin("parrot", "Hello", "one")
            await studio.open()
            await expect(page.locator(".loops a")).to_have_count(1)
        await page.evaluate("location.hash = '#/loops/one'")
        await expect(page.locator(".connection.lost")).to_be_visible()
        async with serving_http(service, port=int(studio.url.rpartition(":")[2])):
            await expect(page.locator("#main .badge")).to_have_text("complete")
            await expect(page.locator(".connection.lost")).to_have_count(0)
            await context.close()
        await service.aclose()


async def test_a_server_that_took_ages_once_is_asked_again_soon(studio: Studio) -> None:
    await studio.open()
    assert await studio.page.evaluate(
        """async () => {
            const { Watched } = await import("/studio/watched.js");
            const watched = new Watched("one", () => undefined, new AbortController().signal);
            watched.took = 3_600_000;
            return new Promise((resolve) => {
                watched.refresh = async () => resolve(true);
                watched.soon();
                setTimeout(() => resolve(false), 20_000);
            });
        }"""
    )


IN_LINES = """(which) => [...document.querySelectorAll(which)].filter((one) => {
    const range = document.createRange();
    range.selectNodeContents(one);
    return range.getClientRects().length > one.textContent.split(" ").length;
}).map((one) => one.textContent)"""
"""The texts that stand in more lines than they have words: some word was cut."""


async def test_it_fits_a_phone(browser: Browser) -> None:
    async with studio_of(browser, size=(375, 700)) as studio:
        page = studio.page
        await studio.begin("travel", "Book a trip to Rome, with " + "a" * 300, "trip")
        await studio.open()
        await page.locator(".loops a").click()
        await expect(page.locator(".card.waiting")).to_be_visible()
        await expect(page.locator("#side")).to_be_hidden()
        places = {
            "loops/trip": ".steps",
            "chat/travel/s": ".composer",
            "usage": ".usage table",
            "": ".loops a",
        }
        for place, there in places.items():
            await studio.open(place)
            await expect(page.locator(there).first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        await studio.open("usage")
        await expect(page.locator(".usage td").first).to_be_visible()
        assert await page.evaluate(IN_LINES, ".usage td, .usage thead th") == []
        await studio.open("compare/trip/trip")
        await expect(page.locator(".differences td").first).to_be_visible()
        assert await page.evaluate(IN_LINES, ".differences td") == []
        await studio.open("loops/trip")
        await expect(page.locator(".card.waiting")).to_be_visible()
        await studio.picture("phone")
        assert studio.wrong == []


async def test_events_are_read_however_they_are_cut_and_differences_add_up(studio: Studio) -> None:
    page = studio.page
    await studio.open()
    found = await page.evaluate((Path(__file__).parent / "checks.js").read_text())
    assert found == [0, 3, 3]


async def test_many_loops_change_while_one_looks(studio: Studio) -> None:
    page = studio.page
    await studio.open()
    await asyncio.gather(*[studio.begin("parrot", f"number {n}", f"loop-{n}") for n in range(60)])
    await expect(page.locator(".loops a")).to_have_count(50)
    await page.get_by_role("button", name="Earlier ones").click()
    await expect(page.locator(".loops a")).to_have_count(60)
