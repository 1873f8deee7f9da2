"""Where no model is named the default answers, or the small one, and it is said."""

from __future__ import annotations

import pytest

from flyball.core.errors import ModelDownloadFailed, ModelStorageFailed
from flyball.models import HuggingFace, Model, cached, pull_unnamed, standing_in
from tests.models.files import gguf, sha256
from tests.models.hub import Hub

LARGE, LITTLE = gguf(200), gguf(20)


def model(name: str, data: bytes) -> Model:
    source = HuggingFace(f"owner/{name}", "a.gguf")
    return Model(name, source.repo, source.file, size=len(data), sha256=sha256(data), sources=(source,))


DEFAULT, SMALL = model("large", LARGE), model("little", LITTLE)


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standing_in, "DEFAULT", DEFAULT)
    monkeypatch.setattr(standing_in, "SMALL", SMALL)


def serve(hub: Hub, *models: tuple[Model, bytes]) -> None:
    for one, data in models:
        hub.files[f"/{one.repo}/resolve/main/{one.file}"] = data


def test_the_default_answers_and_there_is_nothing_to_say(hub: Hub) -> None:
    serve(hub, (DEFAULT, LARGE), (SMALL, LITTLE))
    had = pull_unnamed()
    assert (had.model, had.missed, had.warning) == (DEFAULT, None, "")
    assert had.path.read_bytes() == LARGE
    assert cached(SMALL) is None
    asked = len(hub.asked)
    assert pull_unnamed() == had
    assert len(hub.asked) == asked, "what is there is not fetched"


def test_the_small_one_takes_its_place_and_it_is_said(hub: Hub) -> None:
    serve(hub, (SMALL, LITTLE))
    told: list[str] = []
    had = pull_unnamed(progress=lambda done, total, what: told.append(what))
    assert (had.model, had.path.read_bytes()) == (SMALL, LITTLE)
    assert isinstance(had.missed, ModelDownloadFailed)
    assert "the default model cannot be had, so little answers" in had.warning
    assert "large is not on this disk" in had.warning
    assert any("large" in what for what in told)
    assert any("little" in what for what in told)
    hub.files.clear()
    assert pull_unnamed().path == had.path, "the small one is there by now"


def test_where_neither_can_be_had_the_default_is_what_is_missed(hub: Hub) -> None:
    assert hub.files == {}
    with pytest.raises(ModelDownloadFailed, match="large is not on this disk"):
        pull_unnamed()


def test_a_full_disk_is_told_and_nothing_takes_the_defaults_place(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msgspec.structs import replace

    serve(hub, (SMALL, LITTLE))
    monkeypatch.setattr(standing_in, "DEFAULT", replace(DEFAULT, size=10**17))
    with pytest.raises(ModelStorageFailed, match="large needs"):
        pull_unnamed()
