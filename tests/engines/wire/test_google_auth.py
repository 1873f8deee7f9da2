"""Google's credentials: renewed in a thread, once for all who ask, and told as errors of the taxonomy."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials, Credentials
from google.auth.exceptions import RefreshError

from flyball.core.errors import ConfigurationFailure, EngineError, MissingKey
from flyball.engines.wire.google_auth import GoogleCredentials
from tests.engines.loopback import Answer, Loopback, Received, as_json
from tests.patience import PATIENCE


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


class _Fake(Credentials):
    """Gives tokens t1, t2, …; `before` is called in the thread that renews."""

    def __init__(
        self, lasts: timedelta = timedelta(hours=1), before: Callable[[], object] = lambda: None
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.lasts = lasts
        self.before = before
        self.renewals = 0
        self.threads: list[int] = []

    def refresh(self, request: Any) -> None:
        self.threads.append(threading.get_ident())
        self.before()
        self.renewals += 1
        self.token = f"t{self.renewals}"
        self.expiry = _now() + self.lasts


async def test_a_token_is_fetched_off_the_event_loop_and_kept() -> None:
    fake = _Fake()
    credentials = GoogleCredentials(fake)
    assert await credentials() == {"Authorization": "Bearer t1"}
    assert await credentials() == {"Authorization": "Bearer t1"}
    assert fake.renewals == 1
    assert threading.get_ident() not in fake.threads


async def test_a_token_is_renewed_shortly_before_it_ends() -> None:
    fake = _Fake(timedelta(minutes=3))
    credentials = GoogleCredentials(fake)
    assert await credentials() == {"Authorization": "Bearer t1"}
    assert await credentials() == {"Authorization": "Bearer t2"}
    patient = GoogleCredentials(fake, early=timedelta(minutes=1))
    assert await patient() == {"Authorization": "Bearer t2"}


async def test_however_many_ask_one_renewal_is_under_way() -> None:
    held = threading.Event()
    fake = _Fake(before=lambda: held.wait(PATIENCE))
    credentials = GoogleCredentials(fake)
    waiting = [asyncio.ensure_future(credentials()) for _ in range(64)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0)
    held.set()
    async with asyncio.timeout(PATIENCE):
        told = await asyncio.gather(*waiting[1:])
    assert told == [{"Authorization": "Bearer t1"}] * 63
    assert waiting[0].cancelled()
    assert fake.renewals == 1


def test_one_event_loop_after_another() -> None:
    credentials = GoogleCredentials(_Fake())

    async def ask() -> object:
        return await credentials()

    assert asyncio.run(ask()) == asyncio.run(ask())


async def test_an_event_loop_that_ends_leaves_the_renewal_to_the_next() -> None:
    held = threading.Event()
    fake = _Fake(before=lambda: held.wait(PATIENCE))
    credentials = GoogleCredentials(fake)

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(credentials(), 0.01)

    await asyncio.to_thread(asyncio.run, give_up())
    held.set()
    assert await credentials() == {"Authorization": "Bearer t1"}
    assert fake.renewals == 1


async def test_a_renewal_that_fails_while_the_token_holds_is_no_failure() -> None:
    fake = _Fake(timedelta(minutes=3))
    credentials = GoogleCredentials(fake)
    await credentials()
    fake.before = lambda: _fail(RefreshError("later"))
    assert await credentials() == {"Authorization": "Bearer t1"}
    fake.expiry = _now() - timedelta(seconds=1)
    with pytest.raises(ConfigurationFailure, match=r"refuses the credentials for 'google': later\. If they"):
        await credentials()
    fake.before = lambda: None
    assert await credentials() == {"Authorization": "Bearer t2"}


async def test_a_failure_that_passes_may_be_tried_again() -> None:
    error = RefreshError("busy", retryable=True)  # pyright: ignore[reportUnknownVariableType]
    credentials = GoogleCredentials(_Fake(before=lambda: _fail(error)), provider="vertex")
    told = await asyncio.gather(credentials(), credentials(), return_exceptions=True)
    for failure in told:
        assert isinstance(failure, EngineError)
        assert failure.retryable
        assert "vertex" in failure.message


async def test_who_needs_no_token_sends_none() -> None:
    assert await GoogleCredentials(AnonymousCredentials())() == {}  # pyright: ignore[reportUnknownArgumentType]


async def test_no_default_credentials_is_a_missing_key_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without_defaults(monkeypatch, tmp_path)
    for ask in (GoogleCredentials(provider="vertex"), GoogleCredentials(provider="vertex").project):
        with pytest.raises(MissingKey, match="gcloud auth application-default login") as caught:
            await ask()
        assert caught.value.details["variables"] == ["GOOGLE_APPLICATION_CREDENTIALS"]


async def test_a_service_account_trades_its_key_for_tokens(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def give(got: Received) -> Answer:
        assert got.path == "/token"
        assert b"assertion=" in got.body
        return as_json({"access_token": "abc", "expires_in": 3600, "token_type": "Bearer"})

    _without_defaults(monkeypatch, tmp_path)
    async with Loopback(give) as server:
        path = _key_file(tmp_path, f"{server.url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        credentials = GoogleCredentials()
        assert await credentials.project() == "my-project"
        assert await credentials() == {"Authorization": "Bearer abc"}
        assert await credentials() == {"Authorization": "Bearer abc"}
        assert len(server.received) == 1


async def test_a_service_account_that_google_does_not_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _without_defaults(monkeypatch, tmp_path)
    refusal = as_json({"error": "invalid_grant", "error_description": "Invalid JWT"}, 400)
    async with Loopback(lambda got: refusal) as server:
        path = _key_file(tmp_path, f"{server.url}/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
        with pytest.raises(ConfigurationFailure, match="invalid_grant"):
            await GoogleCredentials()()


async def test_a_token_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_defaults(monkeypatch, tmp_path)
    path = _key_file(tmp_path, "http://127.0.0.1:9/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(EngineError) as caught:
        await GoogleCredentials()()
    assert caught.value.retryable


async def test_a_key_file_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _without_defaults(monkeypatch, tmp_path)
    path = tmp_path / "key.json"
    path.write_text("{no json", "utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    with pytest.raises(ConfigurationFailure, match=r"key\.json"):
        await GoogleCredentials()()


def _fail(error: Exception) -> None:
    raise error


def _without_defaults(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(home))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


_KEYS: list[str] = []


def _key_file(folder: Path, token_uri: str) -> Path:
    if not _KEYS:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        key = rsa.generate_private_key(65537, 2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _KEYS.append(pem.decode("ascii"))
    path = folder / "service-account.json"
    told = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": _KEYS[0],
        "client_email": "robot@my-project.iam.gserviceaccount.com",
        "token_uri": token_uri,
    }
    path.write_text(json.dumps(told), "utf-8")
    return path
