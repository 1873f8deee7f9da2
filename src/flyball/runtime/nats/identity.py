"""Who a user of NATS is, as the credentials say: so that a worker knows what it may do before it is refused.

Nothing here proves anything: the server checks signatures and permissions. Credentials that `flyball tenants`
made say which tenant and which role they are for, and where answers may come to.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.errors import UserError

INBOX = "_INBOX"
"""What subjects of answers begin with, unless a user's permissions name another beginning."""
API = "$JS.API"
"""What the subjects begin with on which JetStream is asked for something."""
API_ELSEWHERE = "fly.api"
"""What they begin with in the accounts of model and tools workers. There, JetStream's own are answered by the
server at once: that such an account has none."""
_JWT, _TENANT, _ROLE = "BEGIN NATS USER JWT", "tenant:", "role:"
_ANY = ".>"


class Role(StrEnum):
    """What a user of a tenant's account is for. See `accounts.permissions`."""

    API = "api"
    """Asks for loops, follows them and speaks to them: a client, or a server of the HTTP API."""
    LOOP = "loop"
    MODEL = "model"
    TOOLS = "tools"
    DISPATCH = "dispatch"
    """Talks with people on channels."""
    ALL = "all"
    """A worker of all kinds."""


class Identity(Struct, frozen=True):
    """Who somebody is; `tenant` and `role` only with credentials of `flyball tenants`."""

    tenant: str = ""
    role: Role | None = None
    inbox: str = INBOX
    api: str = API

    @property
    def is_set_up_for(self) -> bool:
        """Whether somebody else has made all that this user needs: it may make no streams."""
        return self.role is not None

    @property
    def may_begin_loops(self) -> bool:
        """Whether this user may ask for loops, and read what came of them."""
        return self.may_read_journals

    @property
    def may_read_journals(self) -> bool:
        """Whether this user may see what loops have recorded."""
        return self.role not in (Role.MODEL, Role.TOOLS)

    def __str__(self) -> str:
        if self.role is None:
            return "this user"
        return f"a user of the role {self.role}" + (f" of the tenant {self.tenant!r}" if self.tenant else "")


def is_text(credentials: str) -> bool:
    """Whether these are credentials themselves, and not the path of a file with them."""
    return _JWT in credentials


def identity_of(credentials: str | None) -> Identity:
    """Who has these credentials, by their path or their text; somebody in general without any.

    Raises:
        UserError: the file cannot be read, or holds no credentials.
    """
    if credentials is None:
        return Identity()
    told = "the given text"
    text = credentials
    if not is_text(credentials):
        told = repr(credentials)
        try:
            text = Path(credentials).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"the credentials in {told} cannot be read: {error}") from error
    try:
        return _identity(claims_in(jwt_in(text)))
    except ValueError as error:
        raise UserError(
            f"{told} holds no credentials of NATS: name a file that `flyball tenants creds` has written"
        ) from error


def jwt_in(text: str) -> str:
    """The JWT in the text of credentials; nothing, if there is none."""
    lines = iter(text.splitlines())
    return next((next(lines, "") for line in lines if _JWT in line), "").strip()


def claims_in(jwt: str) -> dict[str, Any]:
    """What a JWT says, whoever has signed it.

    Raises:
        ValueError: it is none.
    """
    try:
        _, body, _ = jwt.split(".")
        said = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=dict[str, Any])
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise ValueError(f"{jwt[:20]!r}… is no JWT") from error
    if not isinstance(said.get("nats"), dict):
        raise ValueError(f"{jwt[:20]!r}… is no JWT of NATS")
    return said


def _identity(said: dict[str, Any]) -> Identity:
    user: dict[str, Any] = said["nats"]
    tags: dict[str, str] = {}
    for tag in user.get("tags") or ():
        name, mark, value = str(tag).partition(":")
        if mark:
            tags[f"{name}:"] = value
    may_hear: dict[str, list[str]] = user.get("sub") or {}
    heard = may_hear.get("allow") or []
    inboxes = [one.removesuffix(_ANY) for one in heard if one.startswith(INBOX) and one.endswith(_ANY)]
    may_say: dict[str, list[str]] = user.get("pub") or {}
    elsewhere = any(one.startswith(f"{API_ELSEWHERE}.") for one in may_say.get("allow") or [])
    role = tags.get(_ROLE, "")
    return Identity(
        tags.get(_TENANT, ""),
        Role(role) if role in set(Role) else None,
        inboxes[0] if inboxes else INBOX,
        API_ELSEWHERE if elsewhere else API,
    )


def tags_of(tenant: str, role: Role | None) -> list[str]:
    """How credentials say what they are for."""
    return [f"{_TENANT}{tenant}", *([] if role is None else [f"{_ROLE}{role}"])]
