"""What a child says when something goes wrong becomes an error that tells what to do."""

from __future__ import annotations

import pytest

from flyball.core.errors import EngineError, FlyballError, MissingLibrary, ModelFileInvalid
from flyball.engines.llama_cpp.faults import call_failure, gone, load_failure


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "libgomp.so.1: cannot open shared object file: No such file or directory",
            "install libgomp1 on Debian",
        ),
        ("libstdc++.so.6: version `GLIBCXX_3.4.32' not found", r"install libstdc\+\+6"),
        ("libodd.so.2: cannot open shared object file", r"libodd\.so\.2 .*install the package"),
        ("DLL load failed while importing xllamacpp", "a library"),
    ],
)
def test_a_library_that_is_missing_is_told_with_its_package(message: str, said: str) -> None:
    error = load_failure("ImportError", message, "m", [])
    assert isinstance(error, MissingLibrary)
    with pytest.raises(MissingLibrary, match=said):
        raise error


def test_a_model_that_cannot_be_loaded_is_told_by_the_first_that_was_said() -> None:
    error = load_failure(
        "RuntimeError", "Failed to init server", "m", ["0.00.1 E load: error loading model: bad magic"]
    )
    assert isinstance(error, ModelFileInvalid)
    assert error.message == "m cannot be loaded as a model: bad magic"
    assert "Failed to init" in load_failure("RuntimeError", "Failed to init", "m", []).message


@pytest.mark.parametrize(
    ("status", "how"),
    [(-9, "by SIGKILL"), (-64_000, "by signal 64000"), (3, "with status 3"), (None, "for no known reason")],
)
def test_how_a_child_ended_is_told(status: int | None, how: str) -> None:
    error = gone("m", status, ["0.00.1 E the end"], "it was answering")
    assert f"ended {how} while it was answering; it said last: the end" in error.message
    assert error.retryable


def test_what_nobody_foresaw_is_an_engine_error() -> None:
    error: FlyballError = call_failure({"code": 500, "message": "boom"}, "m", [])
    assert type(error) is EngineError
    assert error.retryable
    assert "it gave no reason" in call_failure({}, "m", []).message
