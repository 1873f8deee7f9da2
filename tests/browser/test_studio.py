"""The studio, in a real browser: what people do with it."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Route, expect

from flyball.core.events import Outcome, SignalReceived, Started
from flyball.core.messages import user
from flyball.orchestrate.catalogue.query import LoopQuery
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.recorded import until_done
from tests.browser.conftest import Studio
from tests.patience import PATIENCE


async def test_loops_are_listed_live_and_searched(studio: Studio) -> None:
    page = studio.page
    await studio.open()
    await expect(page.locator("#side .foot")).to_have_text(re.compile("Nothing has run yet"))
    await studio.begin("parrot", "Tell me about Rome", "one")
    await studio.begin("travel", "Book a trip", "two")
    rows = page.locator(".loops a")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("needs approval")
    await page.keyboard.press("/")
    await page.keyboard.type("Rome")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Tell me about Rome")
    await page.locator("input[type=search]").fill("")
    await page.get_by_role("button", name="Waiting", exact=True).click()
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("Book a trip")
    await studio.picture("list")


async def test_a_call_is_approved_and_the_rest_is_seen_as_it_happens(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip to Rome", "trip")
    await studio.open("loops/trip")
    await expect(page.locator(".card.waiting")).to_contain_text("May it book?")
    await expect(page.locator(".step")).to_have_count(3)
    await studio.picture("approval")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    await expect(page.locator(".answer strong")).to_have_text("21 °C")
    await expect(page.locator(".step .what")).to_have_text(
        ["model call 1", "weather", "model call 2", "approve", "book", "model call 3", "complete"]
    )
    await expect(page.locator(".head .facts").last).to_contain_text("450 → 60 tokens")
    await studio.picture("complete")


async def test_a_call_is_rejected_with_a_reason_that_is_recorded(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip to Rome", "trip")
    await studio.open("loops/trip")
    await page.get_by_role("button", name="Reject…").click()
    await page.locator("dialog textarea").fill("It is too far.")
    await studio.picture("reject")
    await page.locator("dialog").get_by_role("button", name="Reject").click()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    assert await said_to(studio, "trip") == [("reject", "It is too far.")]


async def test_an_answer_streams_in_and_the_loop_is_cancelled(studio: Studio) -> None:
    page = studio.page
    await studio.begin("slow", "Tell me a story", "story")
    await studio.open("loops/story")
    studio.said.say("Once ", "upon ")
    await expect(page.locator(".live")).to_have_text("Once upon ")
    studio.said.say("a time")
    await expect(page.locator(".live")).to_have_text("Once upon a time")
    await expect(page.locator(".step .about")).to_contain_text("under way")
    await studio.picture("streaming")
    await page.get_by_role("button", name="Cancel").click()
    await page.locator("dialog input").fill("enough")
    await page.get_by_role("button", name="Cancel it").click()
    await expect(page.locator("#main .badge")).to_have_text("cancelled")
    assert (await until_done(studio.service.journal, "story")).outcome is Outcome.CANCELLED
    assert await said_to(studio, "story") == [("cancel", "enough")]


async def test_a_loop_is_paused_told_something_and_resumed(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip to Rome", "trip")
    await studio.open("loops/trip")
    await expect(page.locator(".card.waiting")).to_be_visible()
    await page.get_by_role("button", name="Pause").click()
    await expect(page.locator("#main .badge")).to_have_text("paused")
    await page.get_by_role("button", name="Feedback").click()
    await page.locator("dialog textarea").fill("Make it short.")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_role("button", name="Resume").click()
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    told = await said_to(studio, "trip")
    assert told == [("pause", ""), ("feedback", "Make it short."), ("resume", ""), ("approve", "")]


async def said_to(studio: Studio, loop_id: str) -> list[tuple[str, str]]:
    """The signals in a loop's journal."""
    events = await studio.service.journal.read(loop_id)
    signals = [event.signal for event in events if isinstance(event, SignalReceived)]
    return [(str(signal.type), signal.text) for signal in signals]


async def test_what_was_sent_is_shown_beside_the_turn_before(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip to Rome", "trip")
    await studio.open("loops/trip")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    await page.locator(".step", has_text="model call 2").click()
    inside = page.locator(".inside:visible")
    await expect(inside.locator(".sent summary").first).to_have_text("2 messages as before")
    await expect(inside.locator(".sent > .message.new header")).to_have_text(["assistant", "tool"])
    await expect(inside.locator(".received .call b")).to_contain_text("book")
    await page.locator(".step", has_text="weather").click()
    await expect(page.locator(".inside:visible").first).to_contain_text('"celsius": 21')
    await studio.picture("turn")
    await page.get_by_role("tab", name="Journal").click()
    await expect(page.locator(".journal li")).to_have_count(8)
    await page.locator(".journal summary").first.click()
    await expect(page.locator(".journal pre").first).to_contain_text('"event": "started"')


async def test_a_loop_is_forked_and_compared(studio: Studio) -> None:
    page = studio.page
    await studio.begin("parrot", "Good morning", "one")
    await until_done(studio.service.journal, "one")
    await studio.open("loops/one")
    await page.get_by_role("button", name="Fork…").click()
    await page.locator("dialog textarea").first.fill("Good evening")
    await studio.picture("fork")
    await page.locator("dialog").get_by_role("button", name="Fork").click()
    await expect(page.locator(".compare .loop")).to_have_count(2)
    await expect(page.locator(".differences del")).to_have_text("morning,")
    await expect(page.locator(".differences ins")).to_have_text("evening,")
    await studio.picture("compare")


async def test_a_plan_and_a_vote_are_drawn(studio: Studio) -> None:
    page = studio.page
    steps = [{"name": name, "type": "infer", "input": name} for name in ("gather", "weigh", "answer")]
    await studio.begin("parrot", "Do it in steps", "plan", mode="plan", plan={"steps": steps})
    await studio.open("loops/plan")
    await expect(page.locator(".leaf.done .name")).to_have_text(["gather", "weigh", "answer"])
    await page.locator(".leaf").first.click()
    await page.locator(".leaf a").first.click()
    await expect(page.locator("#main .above")).to_contain_text("under plan")
    await studio.begin("parrot", "Decide", "vote", mode="redundant", output={"schema": {"type": "object"}})
    await studio.open("loops/vote")
    await expect(page.locator(".beside > .leaf")).to_have_count(3)
    await expect(page.locator("#main .badge")).to_have_text("failed")
    await studio.picture("vote")


async def test_one_talks_with_an_agent_and_it_is_there_again_after_a_reload(studio: Studio) -> None:
    page = studio.page
    await studio.open("chat/parrot/s1")
    box = page.get_by_label("Message")
    await box.fill("Hello")
    await box.press("Enter")
    await expect(page.locator(".bubble.assistant .prose")).to_have_text("You said: Hello, after 0 messages")
    await box.fill("And again")
    await box.press("Enter")
    await expect(page.locator(".bubble.assistant .prose").last).to_have_text(
        "You said: And again, after 2 messages"
    )
    await page.reload()
    await expect(page.locator(".bubble.user")).to_have_text(["Hello", "And again"])
    await expect(page.locator(".bubble.assistant .prose")).to_have_count(2)
    await page.locator("select").select_option("travel")
    await box.fill("To Rome")
    await box.press("Enter")
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator(".bubble.assistant .prose strong")).to_have_text("21 °C")
    await expect(page.locator(".calls summary b")).to_have_text(["weather", "book"])
    await studio.picture("chat")


async def test_what_is_said_next_waits_for_the_answer_and_goes_on_from_all(
    studio: Studio,
) -> None:
    page = studio.page
    await studio.open("chat/travel/s1")
    box = page.get_by_label("Message")
    await box.fill("To Rome")
    await box.press("Enter")
    await expect(page.locator(".card.waiting")).to_have_count(1)
    await box.fill("And then?")
    await box.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="Not sent yet")).to_be_visible()
    await expect(box).to_have_value("And then?")
    assert len(await studio.service.journal.loops()) == 1
    await page.get_by_role("button", name="Approve").click()
    await expect(page.locator(".bubble.assistant .prose")).to_have_count(1)
    await box.press("Enter")
    await expect(page.locator(".bubble.assistant .prose")).to_have_count(2)
    await expect(box).to_have_value("")
    newest = (await studio.service.loops(LoopQuery())).loops[0]
    events = await studio.service.journal.read(newest.loop_id)
    assert isinstance(events[0], Started)
    said = [message.role.value for message in events[0].history]
    assert (newest.prompt, said) == (
        "And then?",
        ["user", "assistant", "tool", "assistant", "tool", "assistant"],
    )


async def test_what_could_not_be_sent_is_sent_once_when_it_is_said_again(studio: Studio) -> None:
    page = studio.page
    await studio.open("chat/parrot/s1")
    box = page.get_by_label("Message")

    async def lose_the_answer(route: Route) -> None:
        await route.fetch()  # it arrives, and nobody hears of that
        await route.abort()

    await page.route("**/api/agents/parrot/loops?*", lose_the_answer, times=1)
    await box.fill("Hello")
    await box.press("Enter")
    await expect(page.locator(".toast")).to_be_visible()
    await expect(box).to_have_value("Hello")
    await box.press("Enter")
    await expect(page.locator(".bubble.assistant .prose")).to_have_count(1)
    assert len(await studio.service.journal.loops()) == 1


async def test_who_does_not_look_holds_no_connection_and_misses_nothing(studio: Studio) -> None:
    page = studio.page
    await studio.begin("slow", "Tell me a story", "story")
    await studio.open("loops/story")
    studio.said.say("Once ")
    await expect(page.locator(".live")).to_have_text("Once ")
    await page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: true, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    gone = asyncio.Event()
    page.on("requestfailed", lambda one: gone.set() if one.url.endswith("/stream") else None)
    await asyncio.wait_for(gone.wait(), PATIENCE)
    studio.said.say("upon a time", None)
    await until_done(studio.service.journal, "story")
    await page.evaluate(
        """() => {
            Object.defineProperty(document, "hidden", { value: false, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    await expect(page.locator("#main .badge")).to_have_text("complete")
    await expect(page.locator(".answer .prose")).to_have_text("Once upon a time")


async def test_odd_addresses_and_the_way_to_the_loop(studio: Studio) -> None:
    page = studio.page
    await studio.begin("parrot", "Hello", "hello")
    for place in ("constructor", "toString", "loops", "nothing/at/all"):
        await studio.open(place)
        await expect(page.locator(".welcome")).to_be_visible()
    await studio.open("chat/parrot")
    await expect(page.get_by_label("Message")).to_be_visible()
    assert "#/chat/parrot/" in page.url
    await studio.open("loops/hello")
    await page.reload()  # nothing has the focus
    await expect(page.locator("#main .badge")).to_have_text("complete")
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
    await expect(page.locator("#main .badge")).to_have_text("complete")
    assert "hello" in await page.title()


async def test_a_loop_may_have_any_id(studio: Studio) -> None:
    page = studio.page
    ids = (".", "..", "~.", "~~..", "a/b", "%2e%2e", "?x=1#y", "../../etc", "...", "~", "é ü")
    for loop_id in ids:
        await studio.service.handle(
            "parrot", SystemRequest(messages=(user(f"I am {loop_id}"),)), loop_id=loop_id
        )
    await studio.open()
    await expect(page.locator(".loops a")).to_have_count(len(ids))
    for loop_id in ids:
        await page.locator(".loops a").filter(has=page.get_by_text(f"I am {loop_id}", exact=True)).click()
        await expect(page.locator(".answer")).to_contain_text(f"You said: I am {loop_id}, after")
        await page.get_by_role("tab", name="Journal").click()
        await expect(page.locator(".journal li")).to_have_count(3)


async def test_a_message_is_sent_once(studio: Studio) -> None:
    page = studio.page
    await studio.open("chat/parrot/s1")
    box = page.get_by_label("Message")
    await box.fill("Hello")
    await box.press("Enter")
    await box.press("Enter")
    await expect(page.locator(".bubble.assistant .prose")).to_have_count(1)
    assert len(await studio.service.journal.loops()) == 1


async def test_keys_do_it_too(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip", "trip")
    await studio.begin("parrot", "Hello", "hello")
    await studio.open()
    await expect(page.locator(".loops a")).to_have_count(2)
    await page.keyboard.press("j")
    await expect(page.locator("#main h1")).to_have_text("Hello")
    await page.keyboard.press("j")
    await expect(page.locator("#main .card.waiting")).to_be_visible()
    await page.keyboard.press("a")
    await expect(page.locator("#main .badge")).to_have_text("complete")
    await page.keyboard.press("?")
    await expect(page.locator("dialog dt")).to_have_count(11)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(page.locator(".welcome")).to_be_visible()


async def test_usage_and_themes(studio: Studio) -> None:
    page = studio.page
    await studio.begin("travel", "Book a trip", "trip")
    await studio.open("usage")
    await expect(page.locator(".usage tbody th").nth(1)).to_have_text("travel")
    seen: set[str] = set()
    for _ in range(3):
        await page.keyboard.press("d")
        seen.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2
