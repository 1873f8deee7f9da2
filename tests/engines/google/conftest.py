"""Nothing of this machine's own Google account is used."""

from __future__ import annotations

import pytest

_ACCOUNT = (
    "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE",
    "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_GENAI_API_VERSION",
)  # fmt: skip


@pytest.fixture(autouse=True)
def nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _ACCOUNT:
        monkeypatch.delenv(name, raising=False)
