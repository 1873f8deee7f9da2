"""Models that are fetched while a server serves: how far they are, why they do not come, and who waits."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from flyball import models
from flyball.adapters.cli.arriving import arriving
from flyball.core.backoff import Backoff
from flyball.core.errors import ModelBeingFetched, ModelDownloadFailed, UnknownModel
from flyball.models import DEFAULT, SMALL, hearing
from tests.models.files import gguf
from tests.models.hub import serving
from tests.patience import PATIENCE

NAME = f"local:{SMALL.name}"
AT_ONCE = Backoff(0.0)
LATER = Backoff(30.0)


class Network:
    """Gives a model when it is let, or fails so often first."""

    def __init__(self, fails: int = 0) -> None:
        self.fails = fails
        self.tried = 0
        self.go = threading.Event()
        self.half = threading.Event()

    def pull(self, model: str, *, progress: Callable[[int, int, str], object]) -> Path:
        self.tried += 1
        if self.tried <= self.fails:
            tried = [{"source": "Hugging Face (x)", "problem": "no connection"}]
            raise ModelDownloadFailed(f"{model} could not be fetched", model=model, tried=tried)
        progress(37, 100, f"{model}: from somewhere")
        self.half.set()
        while not self.go.wait(0.01):
            progress(37, 100, f"{model}: from somewhere")
        return Path("file.gguf")


@pytest.fixture
def network(home: Path, monkeypatch: pytest.MonkeyPatch) -> Network:
    made = Network()
    monkeypatch.setattr(models, "pull", made.pull)
    return made


async def test_what_is_missing_is_told_until_it_is_here(
    network: Network, capsys: pytest.CaptureFixture[str]
) -> None:
    async with arriving([NAME, "test"]) as arrivals:
        missing = arrivals.missing()
        assert isinstance(missing, ModelBeingFetched)
        assert missing.message == f"the model {SMALL.name} is being fetched"
        assert (arrivals.missing("test"), network.tried) == (None, 0)
        arrivals.begin()
        assert await asyncio.to_thread(network.half.wait, PATIENCE)
        missing = arrivals.missing(NAME)
        assert missing is not None
        assert missing.message == f"the model {SMALL.name} is being fetched (37 %)"
        assert missing.details["percent"] == 37
        assert 1 <= missing.details["retry_after"] <= 60
        network.go.set()
        await arrivals.wait(NAME)
        assert arrivals.missing() is None
    assert capsys.readouterr().err.splitlines() == [
        f"{SMALL.name}: from somewhere, 0 of 0 MB",
        f"the model {SMALL.name} is here",
    ]


async def test_one_that_cannot_be_had_is_tried_again(
    network: Network, capsys: pytest.CaptureFixture[str]
) -> None:
    network.fails = 3
    network.go.set()
    async with arriving([NAME], AT_ONCE) as arrivals:
        arrivals.begin()
        await arrivals.wait(NAME)
    assert network.tried == 4
    assert capsys.readouterr().err.count("could not be fetched. It is tried again in 0 s") == 3


async def test_why_it_does_not_come_is_told(network: Network) -> None:
    network.fails = 1
    async with arriving([NAME], LATER) as arrivals:
        arrivals.begin()
        while (missing := arrivals.missing()) is None or "problem" not in missing.details:
            await asyncio.to_thread(lambda: None)
        assert re.fullmatch(
            rf"the model {SMALL.name} could not be fetched \(Hugging Face \(x\): no connection\): "
            r"it is tried again in \d+ s",
            missing.message,
        )
        assert missing.details["problem"] == "INFERENCE_MODEL_DOWNLOAD_FAILED"
        assert 25 <= missing.details["retry_after"] <= 30


async def test_an_engine_that_cannot_have_its_model_waits_for_it(network: Network) -> None:
    offline = [ModelDownloadFailed("offline", model=SMALL.name)]

    def pull(progress: object) -> str:
        if offline:
            raise offline.pop()
        return "there"

    async with arriving([NAME]) as arrivals:
        engine = asyncio.create_task(asyncio.to_thread(hearing.heard, pull))
        arrivals.begin()
        assert await asyncio.to_thread(network.half.wait, PATIENCE)
        assert not engine.done()
        network.go.set()
        assert await engine == "there"


async def test_the_end_is_told_to_who_waits(network: Network) -> None:
    def pull(progress: object) -> str:
        raise ModelDownloadFailed("offline", model=SMALL.name)

    async with arriving([NAME]) as arrivals:
        arrivals.begin()
        engine = asyncio.create_task(asyncio.to_thread(hearing.heard, pull))
        await asyncio.sleep(0)
    with pytest.raises(ModelDownloadFailed):
        await engine


async def test_a_model_that_is_none_is_told_at_once(home: Path) -> None:
    for name in ("local:nothing", "nonsense"):
        with pytest.raises(UnknownModel):
            async with arriving([name]):
                pass


async def test_the_default_has_its_name(network: Network) -> None:
    async with arriving(["local"]) as arrivals:
        missing = arrivals.missing("local")
    assert missing is not None
    assert missing.details["model"] == DEFAULT.name


def test_a_first_server_listens_at_once(
    start: Callable[..., subprocess.Popen[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as hub:
        hub.files["/owner/repo/resolve/main/tiny.gguf"] = gguf()
        hub.go.clear()
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        server = start("serve", "-m", "local:hf:owner/repo/tiny.gguf", "--port", "0", "--quiet")
        assert server.stderr is not None
        found = re.search(r"http://\S+?:\d+", server.stderr.readline())
        assert found is not None
        try:
            with httpx.Client(base_url=found[0], timeout=PATIENCE) as client:
                assert client.get("/health").status_code == 200
                ready = client.get("/ready")
                assert ready.status_code == 503
                assert "hf:owner/repo/tiny.gguf is being fetched" in ready.json()["reason"]
                hub.go.set()
                while (ready := client.get("/ready")).status_code != 200:
                    assert "is being fetched" in ready.json()["reason"]
        finally:
            server.terminate()
            _, said = server.communicate(timeout=PATIENCE)
    assert '"message":"the model hf:owner/repo/tiny.gguf is here"' in said
