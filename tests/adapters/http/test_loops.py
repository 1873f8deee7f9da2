"""Loops over HTTP: followed from anywhere, spoken to, forked, gone on with."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent
from flyball.core.errors import JournalCorrupt, JournalFailure
from flyball.core.events import Event, Outcome, Reopened
from flyball.core.messages import user
from flyball.core.signals import Signal, SignalType
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.projections.explanation import explain
from flyball.orchestrate.recorded import calls_waiting, until_done
from flyball.orchestrate.service import Service
from tests.adapters.http.running import ASK, Told, agents, events_in, followed, here, problem


async def begun(client: Any, agent: str, loop_id: str = "it") -> str:
    answer = await client.post(f"/api/agents/{agent}/loops", json=ASK, params={"loop_id": loop_id})
    assert answer.status_code == 202, answer.text
    return loop_id


async def waiting(service: Service, loop_id: str, wants: str) -> None:
    """Wait until a loop waits for somebody."""
    length = 0
    while not any(call.wants == wants for call in await service.waiting(loop_id)):
        await service.journal.wait(loop_id, length)
        length = len(await service.journal.read(loop_id))


async def test_a_journal_in_pages() -> None:
    async with here() as (client, service):
        await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "it"})
        whole = (await client.get("/api/loops/it/events")).json()
        assert whole["length"] == len(whole["events"]) == len(await service.journal.read("it"))
        assert whole["next"] is None
        pages: list[Any] = []
        after: int | None = 0
        while after is not None:
            page = (await client.get("/api/loops/it/events", params={"after": after, "limit": 2})).json()
            pages += page["events"]
            after = page["next"]
        assert pages == whole["events"]
        assert [one["number"] for one in pages] == list(range(1, len(pages) + 1))


@pytest.mark.parametrize(
    "wrong", ["limit=0", "limit=1001", "after=-1", "after=x", "aftr=1", "after=1&after=2"]
)
async def test_wrong_parameters_are_told(wrong: str) -> None:
    async with here() as (client, _):
        await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "it"})
        answer = await client.get(f"/api/loops/it/events?{wrong}")
        assert answer.status_code in (400, 422)
        assert answer.json()["field"] in ("limit", "after", "aftr")


async def test_a_loop_is_followed_to_its_end() -> None:
    async with here() as (client, service):
        await begun(client, "counter")
        told = await followed(client, "/api/loops/it/stream")
        recorded = [one.data["number"] for one in told if one.event == "event"]
        assert recorded == list(range(1, len(await service.journal.read("it")) + 1))
        assert (told[-1].event, told[-1].data) == ("over", {"loop_id": "it", "stage": "complete"})
        text = "".join(one.data["text"] for one in told if one.data.get("stream") == "text")
        assert text == "It is 3."


async def test_who_comes_back_goes_on_after_any_event() -> None:
    engine = ScriptedEngine("A fairly long answer, in many pieces.", chunk=4)
    async with here(Agent(engine, name="slow")) as (client, _):
        await begun(client, "slow")
        told = await followed(client, "/api/loops/it/stream")
        assert len(told) > 5
        for place, one in enumerate(told[:-1]):
            if one.event == "event" and place == len(told) - 2:
                answer = await client.get("/api/loops/it/stream", headers={"Last-Event-ID": one.id})
                assert (answer.status_code, answer.content) == (204, b"")
                continue
            rest = await followed(client, "/api/loops/it/stream", headers={"Last-Event-ID": one.id})
            assert _said([*told[: place + 1], *rest]) == _said(told), one
            by_query = await followed(client, "/api/loops/it/stream", params={"after": one.id})
            assert by_query == rest


def _said(told: list[Told]) -> tuple[list[int], str, int]:
    """Which events were told, which text, and how often its end."""
    numbers = [one.data["number"] for one in told if one.event == "event"]
    pieces = [one.data for one in told if one.event == "piece"]
    assert not any(piece["stream"] == "restart" for piece in pieces)
    text = "".join(piece.get("text", "") for piece in pieces)
    return numbers, text, [piece["stream"] for piece in pieces].count("finish")


async def test_a_reader_is_told_as_it_happens_and_many_are_told_the_same() -> None:
    go = asyncio.Event()
    engine = ScriptedEngine("It goes on.", chunk=2, pause=go.wait)
    async with here(Agent(engine, name="slow")) as (client, _):
        await begun(client, "slow")
        readers = [asyncio.create_task(followed(client, "/api/loops/it/stream")) for _ in range(20)]
        go.set()
        told = await asyncio.gather(*readers)
        texts = ["".join(one.data.get("text", "") for one in all_ if one.event == "piece") for all_ in told]
        assert texts == ["It goes on."] * 20
        assert len({str([one for one in all_ if one.event == "event"]) for all_ in told}) == 1


async def test_a_stream_that_has_nothing_to_tell_says_that_it_is_there() -> None:
    async with here(heartbeat=0.01) as (client, service):
        await begun(client, "buyer")
        await waiting(service, "it", "approval")
        async with client.stream("GET", "/api/loops/it/stream") as answer:
            async for line in answer.aiter_lines():
                if line.startswith(":"):
                    break
        await client.post("/api/loops/it/signals", json={"type": "approve"})
        assert (await followed(client, "/api/loops/it/stream"))[-1].event == "over"


async def test_calls_are_approved_and_who_did_is_recorded() -> None:
    async with here() as (client, service):
        await begun(client, "buyer")
        await waiting(service, "it", "approval")
        waits = (await client.get("/api/loops/it/waiting")).json()["calls"]
        assert [(call["call"]["name"], call["wants"]) for call in waits] == [("pay", "approval")]
        said = {"type": "approve", "by": "ann", "call_id": waits[0]["call"]["id"], "id": "once"}
        for _ in range(2):
            answer = await client.post("/api/loops/it/signals", json=said)
            assert answer.status_code == 200, answer.text
        await until_done(service.journal, "it")
        assert (await client.get("/api/loops/it/response")).json()["content"] == "paid 4"
        refused = await client.post("/api/loops/it/signals", json={"type": "pause"})
        assert problem(refused) == (409, "ORCHESTRATION_SIGNAL_REFUSED")


async def test_a_signal_that_there_is_none_of() -> None:
    async with here() as (client, _):
        await begun(client, "buyer")
        wrong: list[Any] = [{"type": "explode"}, {}, {"type": 7}, [], "approve"]
        for document in wrong:
            answer = await client.post("/api/loops/it/signals", json=document)
            assert problem(answer) == (422, "CONFIG_INVALID_REQUEST")


async def test_results_from_outside() -> None:
    async with here() as (client, service):
        await begun(client, "builder")
        await waiting(service, "it", "result")
        early = await client.get("/api/loops/it/response")
        assert problem(early) == (409, "API_NOT_OVER")
        call = (await client.get("/api/loops/it/waiting")).json()["calls"][0]["call"]
        wrong = {"results": [{"tool_name": "build", "tool_call_id": "nope", "content": "green"}]}
        assert problem(await client.post("/api/loops/it/results", json=wrong)) == (
            409,
            "ORCHESTRATION_ANSWER_REFUSED",
        )
        right = {"results": [{"tool_name": "build", "tool_call_id": call["id"], "content": "green"}]}
        assert (await client.post("/api/loops/it/results", json=right)).status_code == 200
        assert (await until_done(service.journal, "it")).outcome is Outcome.SUCCESS
        assert (await client.get("/api/loops/it/response")).json()["content"] == "The build is green."


async def test_a_failed_loop_is_tried_again() -> None:
    engine = ScriptedEngine(OSError("the line is down"), "Back again.")
    async with here(Agent(engine, name="shaky")) as (client, service):
        answer = await client.post("/api/agents/shaky/requests", json=ASK, params={"loop_id": "it"})
        assert problem(answer) == (502, "INFERENCE_ENGINE_ERROR")
        again = await client.post("/api/loops/it/resume", json={"retry": True})
        assert (again.status_code, again.json()) == (202, {"loop_id": "it"})
        assert (await until_done(service.journal, "it")).outcome is Outcome.SUCCESS
        assert (await client.get("/api/loops/it/response")).json()["content"] == "Back again."
        over = await client.post("/api/loops/it/resume", json={"retry": True})
        assert problem(over) == (409, "ORCHESTRATION_SIGNAL_REFUSED")


async def test_a_failed_plan_is_tried_again_and_it_is_recorded_for_whom() -> None:
    engine = ScriptedEngine(OSError("the line is down"), "Back again.")
    document = {**ASK, "mode": "plan", "plan": {"steps": [{"name": "one", "type": "infer", "input": "one"}]}}
    async with here(Agent(engine, name="shaky")) as (client, service):
        answer = await client.post("/api/agents/shaky/requests", json=document, params={"loop_id": "it"})
        assert answer.status_code == 502, answer.text
        await service.signal("it", Signal(SignalType.RETRY, by="ann"))
        told = await followed(client, "/api/loops/it/stream")
        assert told[-1].data["stage"] == "complete"
        reopened = [event for event in await service.journal.read("it") if isinstance(event, Reopened)]
        assert [event.by for event in reopened] == ["ann"]
        assert problem(await client.post("/api/loops/it/resume", json={"retry": True}))[0] == 409


async def test_a_loop_is_forked_and_the_fork_goes_on() -> None:
    async with here() as (client, service):
        await client.post("/api/agents/echo/requests", json=ASK, params={"loop_id": "it"})
        fork = {"turn": 0, "prompt": "Something else", "loop_id": "other"}
        answer = await client.post("/api/loops/it/fork", json=fork)
        assert (answer.status_code, answer.json()) == (201, {"loop_id": "other"})
        await until_done(service.journal, "other")
        assert (await client.get("/api/loops/other/response")).json()["content"] == "You said: Something else"
        assert problem(await client.post("/api/loops/it/fork", json={"turn": 9}))[0] == 422
        taken = await client.post("/api/loops/it/fork", json=fork)
        assert problem(taken)[0] == 422


async def test_callers_do_not_choose_whom_the_server_speaks_to() -> None:
    async with here() as (client, _):
        await client.post("/api/agents/echo/requests", json=ASK, params={"loop_id": "it"})
        for model in ("openai:gpt-5", "http://169.254.169.254/v1#x", "local:/etc/passwd"):
            answer = await client.post("/api/loops/it/fork", json={"turn": 0, "model": model})
            assert problem(answer) == (422, "CONFIG_INVALID_REQUEST")
            assert answer.json()["field"] == "model"


async def test_a_loop_is_shown_in_all_its_forms() -> None:
    async with here() as (client, service):
        await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "it"})
        summary = (await client.get("/api/loops/it")).json()
        assert (summary["agent"], summary["stage"], summary["turns"]) == ("counter", "complete", 2)
        steps = (await client.get("/api/loops/it/course")).json()["steps"]
        assert [step["kind"] for step in steps] == ["model_call", "tool_call", "model_call", "end"]
        why = (await client.get("/api/loops/it/why")).json()
        assert why["verdict"] == explain(await service.journal.read("it")).verdict
        assert why["turns"][0]["sent"]["messages"][-1]["parts"][0]["text"] == "How much?"
        second = (await client.get("/api/loops/it/why", params={"turn": 2})).json()
        assert [turn["number"] for turn in second["turns"]] == [2]
        assert problem(await client.get("/api/loops/it/why", params={"turn": 3}))[0] == 422
        steps = (await client.get("/api/loops/it/trajectory", params={"detail": "full"})).json()["steps"]
        assert [step["step_type"] for step in steps] == ["model_call", "tool_call", "model_call"]


async def test_what_is_not_there_is_404_everywhere() -> None:
    async with here() as (client, _):
        reading = ("", "/events", "/stream", "/response", "/trajectory", "/course", "/why", "/waiting")
        for path in reading:
            assert problem(await client.get(f"/api/loops/nope{path}"))[0] == 404, path
        for path, document in (
            ("signals", {"type": "cancel"}),
            ("results", {"results": [{"tool_name": "x", "tool_call_id": "y", "content": "z"}]}),
            ("resume", {}),
            ("fork", {"turn": 0}),
        ):
            assert problem(await client.post(f"/api/loops/nope/{path}", json=document))[0] == 404, path


async def test_a_flow_is_followed_and_shown_too() -> None:
    async with here() as (client, _):
        plan = {"steps": [{"name": one, "type": "infer", "input": one} for one in ("one", "two")]}
        document = {**ASK, "mode": "plan", "plan": plan}
        await client.post("/api/agents/echo/requests", json=document, params={"loop_id": "it"})
        told = await followed(client, "/api/loops/it/stream")
        assert (told[0].data["event"]["event"], told[-1].event) == ("flow_started", "over")
        summary = (await client.get("/api/loops/it")).json()
        assert (summary["kind"], summary["stage"]) == ("flow", "complete")
        assert (await client.get("/api/loops/it/why")).json()["flow"]["steps"]
        assert (await client.get("/api/loops/it/course")).json()["steps"]


async def test_the_loops_of_agents_that_are_not_here_can_still_be_read() -> None:
    async with here() as (client, service):
        stranger = Agent("test:Hello.", name="stranger")
        await stranger.run("Hi", journal=service.journal, loop_id="theirs")
        assert (await client.get("/api/loops/theirs/response")).json()["content"] == "Hello."
        assert (await client.get("/api/loops/theirs")).json()["agent"] == "stranger"
        fork = await client.post("/api/loops/theirs/fork", json={"turn": 0})
        assert problem(fork) == (404, "ORCHESTRATION_UNKNOWN_AGENT")


async def test_the_agents_are_listed() -> None:
    async with here() as (client, _):
        cards = (await client.get("/api/agents")).json()["agents"]
        assert [card["name"] for card in cards] == [agent.config.name for agent in agents()]
        buyer = (await client.get("/api/agents/buyer")).json()
        assert buyer["tools"][0]["approval"] is True
        assert problem(await client.get("/api/agents/nobody"))[0] == 404


@pytest.mark.parametrize("mode", [None, "tool"])
async def test_an_agents_card_says_what_its_answers_look_like(mode: Any) -> None:
    typed = [
        Agent("test", output=list[int], output_mode=mode, name="numbers", description="Counts."),
        Agent("test", name="text"),
        Agent("test", output=(int, str), name="either"),
    ]
    async with here(*typed) as (client, _):
        numbers, text, either = (await client.get("/api/agents")).json()["agents"]
        assert (numbers["output"]["type"], numbers["output"]["items"]) == ("array", {"type": "integer"})
        assert (numbers["description"], text["output"], either["output"]) == ("Counts.", None, None)


async def test_loops_are_listed_and_searched() -> None:
    async with here() as (client, _):
        for number in range(5):
            asked = {
                "messages": [{"role": "user", "content": f"word{number}"}],
                "session_id": f"s{number % 2}",
            }
            path = "/api/agents/echo/requests"
            assert (await client.post(path, json=asked, params={"loop_id": f"l{number}"})).status_code == 200
        await begun(client, "buyer", "buying")

        async def found(**query: Any) -> list[str]:
            ids: list[str] = []
            cursor = ""
            while True:
                page = (await client.get("/api/loops", params={**query, "cursor": cursor})).json()
                ids += [one["loop_id"] for one in page["loops"]]
                if not (cursor := page["next"]):
                    return ids

        assert await found() == ["buying", "l4", "l3", "l2", "l1", "l0"]
        assert await found(limit=2) == ["buying", "l4", "l3", "l2", "l1", "l0"]
        assert await found(text="WORD3") == ["l3"]
        assert await found(session_id="s1") == ["l3", "l1"]
        assert await found(stage="complete", agent="echo", limit=1) == ["l4", "l3", "l2", "l1", "l0"]
        assert await found(stage="executing,awaiting_approval") == ["buying"]
        for wrong in ("limit=0", "stage=sideways", "cursor=%00", "since=soon", "limt=2"):
            assert (await client.get(f"/api/loops?{wrong}")).status_code == 422, wrong
        usage = (await client.get("/api/usage", params={"agent": "echo"})).json()
        assert usage["agents"]["echo"]["usage"]["requests"] == 5
        assert usage["outcomes"] == {"complete": 5}


async def test_the_models_are_listed() -> None:
    async with here(Agent("test", name="one"), Agent("test", name="two")) as (client, _):
        assert (await client.get("/api/models")).json() == {
            "models": [{"name": "test", "agents": ["one", "two"]}]
        }


class Gate:
    """Lets an engine's pieces through one by one."""

    def __init__(self) -> None:
        self._open = asyncio.Semaphore(0)

    async def __call__(self) -> None:
        await self._open.acquire()

    def let(self, count: int) -> None:
        for _ in range(count):
            self._open.release()


async def some_of(client: Any, count: int, last: str = "") -> list[Told]:
    """The first pieces of a stream; then its reader goes away."""
    text = ""
    async with client.stream("GET", "/api/loops/it/stream", headers={"Last-Event-ID": last}) as answer:
        async for chunk in answer.aiter_text():
            text += chunk
            told = events_in(text.rpartition("\n\n")[0])
            if len([one for one in told if one.event == "piece"]) >= count:
                return told
    return events_in(text)


@pytest.mark.parametrize("begins", ["loops", "stream"])
async def test_who_comes_or_comes_back_in_the_middle_of_an_answer_is_told_at_once(begins: str) -> None:
    gate = Gate()
    engine = ScriptedEngine("one two three four five", chunk=4, pause=gate)
    async with here(Agent(engine, name="slow")) as (client, _):
        path = f"/api/agents/slow/{begins}"
        beginning = asyncio.create_task(client.post(path, json=ASK, params={"loop_id": "it"}))
        if begins == "loops":
            assert (await beginning).status_code == 202
        gate.let(3)
        while (await client.get("/api/loops/it")).status_code == 404:
            pass
        first = await some_of(client, 2)
        assert _texts(first)[:8] == "one two "
        gate.let(2)
        second = await some_of(client, 1, first[-1].id)
        assert "one" not in _texts(second)
        gate.let(99)
        rest = await followed(client, "/api/loops/it/stream", headers={"Last-Event-ID": second[-1].id})
        assert _texts([*first, *second, *rest]) == "one two three four five"
        await beginning


def _texts(told: list[Told]) -> str:
    return "".join(one.data.get("text", "") for one in told if one.event == "piece")


async def test_a_fork_may_have_another_of_the_models() -> None:
    both = [Agent("test:I am A.", name="a"), Agent("test:I am B.", name="b")]
    async with here(*both) as (client, service):
        await client.post("/api/agents/a/requests", json=ASK, params={"loop_id": "it"})
        fork = {"turn": 0, "model": "test:I am B.", "loop_id": "other"}
        assert (await client.post("/api/loops/it/fork", json=fork)).status_code == 201
        await until_done(service.journal, "other")
        answer = (await client.get("/api/loops/other/response")).json()
        assert answer["content"] == "I am B."


async def test_what_is_not_recorded_was_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: Any) -> int:
        raise JournalFailure("the disk is full")

    async with here() as (client, _):
        monkeypatch.setattr(MemoryJournal, "append", full)
        plan = {"steps": [{"name": "one", "type": "infer", "input": "one"}]}
        for document in (ASK, {**ASK, "mode": "plan", "plan": plan}):
            answer = await client.post("/api/agents/echo/loops", json=document)
            assert problem(answer) == (503, "ORCHESTRATION_JOURNAL_FAILED")


async def test_an_id_that_is_taken_is_refused_at_once() -> None:
    async with here() as (client, _):
        await begun(client, "buyer")
        other = {"messages": [{"role": "user", "content": "Something else"}]}
        for _ in range(5):
            answer = await client.post("/api/agents/buyer/loops", json=other, params={"loop_id": "it"})
            assert problem(answer) == (409, "CONFIG_LOOP_MISMATCH")
        assert (
            await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "it"})
        ).status_code == 202


async def test_names_may_have_slashes() -> None:
    async with here(Agent("test:Hello.", name="router:maker/model")) as (client, service):
        path = "/api/agents/router%3Amaker%2Fmodel"
        assert (await client.get(path)).json()["name"] == "router:maker/model"
        assert (await client.post(f"{path}/requests", json=ASK)).json()["content"] == "Hello."
        assert (await client.get("/v1/models/router%3Amaker%2Fmodel")).json()["id"] == "router:maker/model"
        await Agent("test:Hi.", name="other").run("Hi", journal=service.journal, loop_id="trip/17 é")
        assert (await client.get("/api/loops/trip%2F17%20%C3%A9")).json()["loop_id"] == "trip/17 é"
        assert problem(await client.get("/api/loops/..%2F..%2Fetc"))[0] == 404


@pytest.mark.parametrize(
    ("loop_id", "written"),
    [(".", "~."), ("..", "~.."), ("~.", "~~."), ("~x", "~x"), ("...", "...")],
)
async def test_a_loops_id_may_be_dots(loop_id: str, written: str) -> None:
    async with here() as (client, service):
        await service.handle("echo", SystemRequest(messages=(user("Hello"),)), loop_id=loop_id)
        assert (await client.get(f"/api/loops/{written}")).json()["loop_id"] == loop_id
        assert (await client.get(f"/api/loops/{written}/response")).json()["loop_id"] == loop_id


async def test_what_was_said_to_a_loop_stays_said_though_nobody_here_can_go_on_with_it() -> None:
    journal = MemoryJournal()
    buyer = next(agent for agent in agents() if agent.config.name == "buyer")

    async def look(context: object, output: str) -> str:
        return output

    async with LocalRuntime(journal) as runtime:
        await runtime.submit(buyer.clone(validators=[look]), "Pay", loop_id="it")
        while not await calls_waiting(journal, "it"):
            await journal.wait("it", len(await journal.read("it")))
    async with LocalRuntime(
        journal
    ) as runtime:  # its process has gone, and this one has another agent of that name
        service = Service([buyer], runtime)
        await service.signal("it", Signal(SignalType.APPROVE, by="ann"))
        assert not await calls_waiting(journal, "it")
        await service.aclose()


async def test_of_a_loop_that_cannot_be_read_nobody_is_told_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with here() as (client, service):
        await client.post("/api/agents/echo/requests", params={"loop_id": "torn"}, json=ASK)

        async def read(_: MemoryJournal, loop_id: str, start: int = 0) -> list[Event]:
            raise JournalCorrupt(f"/srv/secret/runs.db: {loop_id} is torn at {start}")

        monkeypatch.setattr(type(service.journal), "read", read)
        answer = await client.get("/api/loops")
        assert "secret" not in answer.text
        (one,) = answer.json()["loops"]
        assert (one["loop_id"], one["error"]) == ("torn", "ORCHESTRATION_JOURNAL_CORRUPT")
