"""Engines are what these tests are about: they may be asked. What answers is on this machine."""

from __future__ import annotations

import pytest

from flyball.inference.permission import VARIABLE

_ELSEWHERE = (
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_VERSION",
    "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "OPENROUTER_API_KEY", "OLLAMA_HOST", "VLLM_BASE_URL",
    "LLAMA_CPP_BASE_URL", "LM_STUDIO_BASE_URL", "OPENAI_COMPATIBLE_API_KEY",
)  # fmt: skip


@pytest.fixture(autouse=True)
def models_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this machine's servers only: what would lead elsewhere is taken out of the environment."""
    monkeypatch.setenv(VARIABLE, "1")
    for name in _ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
