"""Nothing of the environment has a say, and Google's own machines are not looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyball.engines.vertex_anthropic.engine import PROJECT, REGION


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others = ("ANTHROPIC_VERTEX_BASE_URL", "GOOGLE_APPLICATION_CREDENTIALS", "GCLOUD_PROJECT")
    for name in (*PROJECT, *REGION, *others):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
