"""`make bench-api`, on a small scale: it measures what it says, on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench.api.command import main
from bench.api.followers import check
from bench.api.load import Cost, lowest
from bench.api.table import Figure, printed
from bench.api.wire import Reply

BRIEF = ["--rounds", "1", "--requests", "20", "--at-once", "4", "--followers", "5", "--pieces", "5"]


@pytest.fixture(autouse=True)
def _models_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    # Its servers are processes of their own, which the suite's refusal of models is not for.
    monkeypatch.setenv("FLYBALL_ALLOW_MODEL_REQUESTS", "1")


@pytest.mark.integration
@pytest.mark.parametrize("case", ["memory", "tokens"])
def test_requests_are_measured_beside_handle(
    case: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status = main([*BRIEF, "--only", "requests", "--case", case, "--json", str(tmp_path / "figures.json")])
    said = capsys.readouterr().out
    assert status == ("✗" in said)
    figures = json.loads((tmp_path / "figures.json").read_text())["requests"]
    assert [figure["budget"] for figure in figures] == [None, 400.0, 1000.0, None]
    assert figures[0]["floor"] > 0


@pytest.mark.integration
def test_followers_are_told_everything_once(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([*BRIEF, "--only", "followers"])
    said = capsys.readouterr().out
    assert "5 followers of one loop" in said
    assert "5 loops with one follower each" in said
    assert status == ("✗" in said)


@pytest.mark.integration
def test_the_way_of_pieces_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    status = main([*BRIEF, "--only", "first-byte", "--timed", "5", "--others", "2"])
    said = capsys.readouterr().out
    assert said.count("p99") == 4
    assert "2 other streams" in said
    assert status == ("✗" in said)


def test_the_lowest_of_the_rounds_counts() -> None:
    assert lowest([Cost(2.0, 5.0), Cost(3.0, 4.0)]) == Cost(2.0, 4.0)


def test_a_figure_is_held_to_its_budget() -> None:
    assert Figure("on top", 400, "µs", 400).held
    assert not Figure("on top", 401, "µs", 400).held
    assert Figure("rate", 1000, "/s", 1000, at_least=True).held
    assert not Figure("rate", 999, "/s", 1000, at_least=True).held
    said = printed("some", [Figure("on top", 401, "µs", 400, 3.0), Figure("shown", 1.234, "MB")])
    assert "401 µs  floor 3.00 µs" in said
    assert "at most 400 µs: missed ✗" in said
    assert said.endswith("1.23 MB")


def stream(*numbers: int, text: str = "1 2 ") -> bytes:
    answer = {"event": "model_answered", "message": {"parts": [{"kind": "text", "text": "1 2 "}]}}
    frames = [("piece", {"stream": "text", "text": text})]
    frames += [("event", {"number": number, "event": answer}) for number in numbers]
    said = [f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in [*frames, ("over", {})]]
    return ": still here\n\n".join(said).encode()


def test_what_a_follower_was_told_is_checked() -> None:
    assert check(stream(1, 2), 2) == 4
    cut = stream(1).partition(b"event: over")[0]
    for wrong in (stream(1, 3), stream(1, 1), stream(2), stream(1, text="1 "), cut):
        with pytest.raises(SystemExit):
            check(wrong, 2)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_replies_are_read_however_they_are_cut(size: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for raw, body in (
        (head + b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n", b"abc0123456789abcdef"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
    ):
        reply = Reply()
        for at in range(0, len(raw), size):
            assert not reply.done
            reply.feed(raw[at : at + size])
        assert (reply.done, bytes(reply.body)) == (True, body)
