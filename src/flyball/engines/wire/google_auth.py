"""Who asks, as Google Cloud wants to know it: access tokens, through google-auth.

google-auth reads key files, asks the metadata server or trades one token for another, and blocks meanwhile.
Here that happens in a thread, and who asks awaits it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from flyball.core.errors import ConfigurationFailure, EngineError, FlyballError, MissingExtra, MissingKey

if TYPE_CHECKING:
    from google.auth.credentials import Credentials as Source

SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
EARLY = timedelta(minutes=4)
"""How long before its end a token is renewed: a call that has begun is not to fail for it."""

_REMEDY = (
    "run `gcloud auth application-default login`, or set the environment variable "
    "GOOGLE_APPLICATION_CREDENTIALS to the path of a service account's key file"
)


class GoogleCredentials:
    """Gives the headers that prove who asks; usable as `flyball.engines.wire.engine.Credentials`.

        GoogleCredentials()               this machine's default ones, looked for at the first call
        GoogleCredentials(credentials)    any of google-auth

    Guarantees: nothing blocks the event loop; a token is kept until shortly before it ends; however many ask,
    from however many event loops, one renewal is under way at a time, and cancelling one who waits disturbs
    no other. A renewal that fails while the token still holds is no failure. What fails is of the taxonomy.
    """

    def __init__(
        self,
        source: Source | None = None,
        *,
        scopes: tuple[str, ...] = SCOPES,
        provider: str = "google",
        early: timedelta = EARLY,
    ) -> None:
        """Make one; nothing is looked for yet.

        Args:
            source: google-auth's credentials; without them, the default ones.
            scopes: what is asked for, where the credentials want to be told.
            provider: what errors say they are about.
            early: how long before its end a token is renewed.
        """
        # Any from here on: google-auth has no types to speak of.
        self._source: Any = source
        self._scopes = scopes
        self._provider = provider
        self._early = early
        self._project: str | None = None
        self._scoped = False
        self._lock = Lock()
        self._renewal: Future[Any] | None = None

    async def __call__(self) -> Mapping[str, str]:
        """The headers as they are now: who asks, and the project that pays where the credentials name one.

        Raises:
            MissingKey: there are no default credentials.
            ConfigurationFailure: Google does not take the credentials.
            EngineError: Google could not be asked; it may be tried again.
            MissingExtra: google-auth is not installed.
        """
        source = self._source
        if source is None or not self._good(source, self._early):
            source = await self._renewed()
        headers: dict[str, str] = {}
        source.apply(headers)
        return {"Authorization" if name == "authorization" else name: told for name, told in headers.items()}

    async def project(self) -> str | None:
        """The project that the credentials are of, where they say so.

        Raises:
            FlyballError: as a call does.
        """
        source = self._source
        if source is None:
            source = await self._renewed()
        return self._project or getattr(source, "project_id", None)

    async def _renewed(self) -> Any:
        with self._lock:
            renewal = self._renewal
            if renewal is None:
                renewal = self._renewal = Future()
                # It runs from now on: who is cancelled while he waits for it cannot take it from the others.
                renewal.set_running_or_notify_cancel()
                Thread(target=self._renew, args=(renewal,), name="flyball-google-auth", daemon=True).start()
        return await asyncio.wrap_future(renewal)

    def _renew(self, renewal: Future[Any]) -> None:
        try:
            self._fetch()
        except BaseException as error:
            self._over()
            renewal.set_exception(error)
        else:
            self._over()
            renewal.set_result(self._source)

    def _over(self) -> None:
        with self._lock:
            self._renewal = None

    def _fetch(self) -> None:
        try:
            import google.auth as google_auth
            from google.auth import credentials, exceptions
            from google.auth.transport.requests import Request
        except ImportError as error:
            raise MissingExtra(
                f"Google's credentials need {error.name}, which is missing: pip install 'flyball[google]'",
                provider=self._provider,
                extra="google",
            ) from error
        auth: Any = google_auth
        scoped: Any = credentials
        asking = Request()
        try:
            if self._source is None:
                self._source, self._project = auth.default(scopes=self._scopes, request=asking)
            elif not self._scoped:
                self._source = scoped.with_scopes_if_required(self._source, self._scopes)
            self._scoped = True
            if not self._good(self._source, self._early):
                self._source.refresh(asking)
        except (exceptions.GoogleAuthError, OSError, ValueError) as error:
            if self._source is None or not self._good(self._source, timedelta(0)):
                raise self._failure(error) from error

    @staticmethod
    def _good(source: Any, early: timedelta) -> bool:
        """Whether a token is there that still holds in so long a time; who has no token at all needs none."""
        if source.token is None:
            return bool(source.valid)
        return source.expiry is None or datetime.now(UTC).replace(tzinfo=None) + early < source.expiry

    def _failure(self, error: Exception) -> FlyballError:
        from google.auth import exceptions

        said = str(error.args[0] if error.args else error)[:500]
        if self._source is None and isinstance(error, exceptions.DefaultCredentialsError):
            return MissingKey(
                f"no credentials for {self._provider!r}: {_REMEDY} ({said})",
                provider=self._provider,
                variables=["GOOGLE_APPLICATION_CREDENTIALS"],
            )
        if getattr(error, "retryable", False) or isinstance(error, exceptions.TransportError):
            return EngineError(
                f"Google gave {self._provider!r} no access token: {said}", provider=self._provider
            )
        return ConfigurationFailure(
            f"Google refuses the credentials for {self._provider!r}: {said}. If they are old, {_REMEDY}",
            provider=self._provider,
        )
