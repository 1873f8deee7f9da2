"""`flyball identity`: agents' identities, and what they may do."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.exits import BY_CATEGORY
from flyball.adapters.cli.places import data_folder
from flyball.adapters.cli.prompting import STDIN
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err, one_line, out, write_json
from flyball.core.errors import FailureCategory, IdentityInvalid, IdentityNotFound, UserError

if TYPE_CHECKING:
    from flyball.identity import AgentIdentity, LocalProvider, Verdict, VerifiableCredential

FOLDER = "identities"
REFUSED = BY_CATEGORY[FailureCategory.VALIDATION]
"""The exit code where something does not hold."""
_DAY = 86400.0


def create_identity(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    role: str = "",
    capability: tuple[str, ...] = (),
    days: float = 0.0,
    did: str = "",
    folder: Path | None = None,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Make an identity, with a key of its own.

    Args:
        name: What it is called.
        role: What it is there for, such as editor.
        capability: What it may do, such as payments.read; may be said several times.
        days: For how many days the credentials hold; without it, until they are revoked.
        did: A did:web that it has; without it, a did:key is made.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    from flyball.identity import DID

    named, until, provider = DID.parse(did) if did else None, _until(days), _provider(folder)
    same = [one for one in run(provider.identities()) if one.display_name == name]
    made = run(provider.create(name, role=role, capabilities=_several(capability), did=named, expires=until))
    if json:
        write_json(made.write())
        return 0
    out().print(str(made.did), soft_wrap=True)
    err().print(f"for {one_line(name, 100)}: its key is kept in {provider.folder}", style="dim")
    if same:
        others = ", ".join([str(one.did) for one in same])
        err().print(f"so called is {others}, too: name each by its DID", style="yellow", soft_wrap=True)
    return 0


def list_identities(*, folder: Path | None = None, json: bool = False, debug: bool = False) -> int:
    """List the identities that are kept here.

    Args:
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    found, now = run(_provider(folder).identities()), time.time()
    if json:
        write_json([one.write() for one in found])
        return 0
    if not found:
        err().print("there are no identities: flyball identity create NAME makes one", style="dim")
        return 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in ("did", "name", "role", "may", "created"):
        table.add_column(column, overflow="fold")
    for one in found:
        may = ", ".join([one_line(name, 60) for name in one.capabilities(now)]) or "-"
        role = one_line(one.internal_role, 30) or "-"
        table.add_row(str(one.did), one_line(one.display_name, 40), role, may, _day(one.created))
    out().print(table)
    return 0


def show_identity(
    did: Annotated[str, Parameter(name="DID")],
    /,
    *,
    document: bool = False,
    folder: Path | None = None,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Show an identity, and whether its credentials hold.

    Args:
        did: The DID, the beginning of it, or the identity's name.
        document: Print its DID document: what a did:web has to publish.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    return run(_show(_provider(folder), did, document=document, json=json))


async def _show(provider: LocalProvider, name: str, *, document: bool, json: bool) -> int:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    identity = await _found(provider, name)
    if document:
        write_json((await provider.document(identity.did)).write())
        return 0
    if json:
        write_json(identity.write())
        return 0
    head = f"{one_line(identity.display_name, 100)}  {one_line(identity.internal_role, 40)}"
    out().print(Text(head.strip(), style="bold"))
    out().print(Text(f"{identity.did}\nmade on {_day(identity.created)}\n"), soft_wrap=True)
    if not identity.credentials:
        err().print("it holds no credentials: flyball identity issue DID --capability C", style="dim")
        return 0
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in ("credential", "gives", "until", "holds"):
        table.add_column(column, overflow="fold")
    for one in identity.credentials:
        verdict = await provider.verify(one)
        shown = Text("yes", style="green") if verdict else Text(str(verdict.problem), style="red")
        table.add_row(one_line(one.id, 80), _gives(one), _day(one.expires_at), shown)
    out().print(table)
    return 0


def issue_credential(
    did: Annotated[str, Parameter(name="DID")],
    /,
    *,
    capability: tuple[str, ...] = (),
    days: float = 0.0,
    folder: Path | None = None,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Give an identity more capabilities: a credential each.

    Args:
        did: The DID, the beginning of it, or the identity's name.
        capability: What it may do, such as payments.read; may be said several times.
        days: For how many days that holds; without it, until it is revoked.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    names, until = _several(capability), _until(days)
    if not names:
        raise UserError("--capability is missing: say what it may do, such as --capability payments.read")
    issued = run(_issued(_provider(folder), did, names, until))
    if json:
        write_json([one.write() for one in issued])
        return 0
    for one in issued:
        out().print(one.id, soft_wrap=True)
    return 0


async def _issued(
    provider: LocalProvider, name: str, capabilities: list[str], until: float | None
) -> list[VerifiableCredential]:
    from flyball.identity.credential import CAPABILITY

    identity, issued = await _found(provider, name), list[Any]()
    for capability in capabilities:
        claims = {"capability": capability, "confidence": 1.0}
        issued.append(await provider.issue(identity.did, CAPABILITY, claims, expires=until))
        await provider.revise(identity.did, lambda now: now.add_credential(issued[-1]))
    return issued


def verify_file(
    file: Annotated[str, Parameter(name="FILE")],
    /,
    *,
    trust: tuple[str, ...] = (),
    unchecked_status: bool = False,
    private_hosts: bool = False,
    folder: Path | None = None,
    json: bool = False,
    debug: bool = False,
) -> int:
    """Look whether a credential holds, or all that an identity claims; exits with 7 where it does not.

    Args:
        file: A file with a credential or an identity as JSON; a dash stands for stdin.
        trust: The DID of an issuer that counts besides the one of this folder; may be said several times.
        unchecked_status: Let credentials of others count although only their issuer knows whether they were
            revoked.
        private_hosts: Fetch the document of a did:web also from hosts of this machine and this network.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        json: Print one JSON document on stdout.
        debug: Show the traceback of an error.
    """
    del debug
    provider = _provider(folder, trust, unchecked_status=unchecked_status, private_hosts=private_hosts)
    verdicts = run(_verdicts(provider, _read(file)))
    holds = all(verdicts.values())
    if json:
        told = [
            {"what": what, "holds": bool(one), "problem": one.problem, "reason": one.reason}
            for what, one in verdicts.items()
        ]
        write_json({"holds": holds, "verdicts": told})
        return 0 if holds else REFUSED
    from rich.text import Text

    for what, one in verdicts.items():
        mark = Text("✔ ", style="green") if one else Text("✘ ", style="red")
        why = "" if one else f": {one.problem}, {one_line(one.reason, 300)}"
        out().print(mark.append(f"{one_line(what, 200)}{why}", style="default"), soft_wrap=True)
    return 0 if holds else REFUSED


async def _verdicts(provider: LocalProvider, text: bytes) -> dict[str, Verdict]:
    """What is to be said of a document, by what it is said of."""
    import msgspec

    from flyball.identity import AgentIdentity, Problem, Verdict, VerifiableCredential, verify_chain

    try:
        plain: Any = msgspec.json.decode(text)
        if isinstance(plain, dict) and "did" in plain:
            identity = AgentIdentity.unmarshal_json(text)
            chain = await verify_chain(identity, provider)
            granted = {name: chain.on(name) for name in (*chain.granted, *chain.refused)}
            unheld = Verdict(Problem.NOT_HELD, "it claims no capability")
            return granted or {str(identity.did): unheld}
        credential = VerifiableCredential.parse(text)
    except (msgspec.DecodeError, UnicodeError, IdentityInvalid) as error:
        return {"the document": Verdict(Problem.MALFORMED, str(error))}
    return {credential.id: await provider.verify(credential)}


def revoke_credential(
    identifier: Annotated[str, Parameter(name="ID")],
    /,
    *,
    folder: Path | None = None,
    debug: bool = False,
) -> int:
    """Take a credential back, for ever.

    Args:
        identifier: The credential's id, as `flyball identity show` shows it.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        debug: Show the traceback of an error.
    """
    del debug
    run(_provider(folder).revoke(identifier))
    err().print(f"revoked: {one_line(identifier, 200)}")
    return 0


def delete_identity(
    did: Annotated[str, Parameter(name="DID")],
    /,
    *,
    folder: Path | None = None,
    debug: bool = False,
) -> int:
    """Forget an identity and its key, and revoke its credentials.

    Args:
        did: The whole DID, or the identity's name.
        folder: Where identities and keys are kept; without it, identities in the user's data folder.
        debug: Show the traceback of an error.
    """
    del debug
    from flyball.identity import DID

    provider = _provider(folder)
    called = [one.did for one in run(provider.identities()) if one.display_name == did]
    if len(called) > 1:
        raise UserError(f"{len(called)} identities are called {did[:100]!r}: give the whole DID")
    named = called[0] if called else DID.parse(did)
    run(provider.delete(named))
    err().print(f"deleted: {named}")
    return 0


async def _found(provider: LocalProvider, name: str) -> AgentIdentity:
    """The identity that is meant by a DID, the beginning of one, or a name.

    Raises:
        IdentityNotFound: there is none.
        UserError: there are several.
    """
    identities = await provider.identities()
    exact = [one for one in identities if name in (str(one.did), one.display_name)]
    found = exact or [one for one in identities if name and str(one.did).startswith(name)]
    if len(found) > 1:
        raise UserError(f"{len(found)} identities are meant by {name[:100]!r}: give the whole DID")
    if not found:
        raise IdentityNotFound(
            f"there is no identity {name[:100]!r}: `flyball identity list` shows those that there are",
            did=name,
        )
    return found[0]


def _provider(
    folder: Path | None,
    trust: tuple[str, ...] = (),
    *,
    unchecked_status: bool = False,
    private_hosts: bool = False,
) -> LocalProvider:
    from flyball.identity import LocalProvider

    where = data_folder() / FOLDER if folder is None else folder
    return LocalProvider(where, trusted=trust, unchecked_status=unchecked_status, private_hosts=private_hosts)


def _read(file: str) -> bytes:
    if file == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        raise UserError(f"{file[:200]!r} cannot be read: {error.strerror or error}") from error


def _several(given: tuple[str, ...]) -> list[str]:
    return [one.strip() for text in given for one in text.split(",") if one.strip()]


def _until(days: float) -> float | None:
    if not 0 <= days < 100_000:
        raise UserError(f"--days {days:g}: give a number from 0")
    return time.time() + days * _DAY if days else None


def _gives(credential: VerifiableCredential) -> str:
    from flyball.identity.subjects import capabilities_in

    return ", ".join([one_line(name, 60) for name in capabilities_in(credential)]) or "-"


def _day(at: float | None) -> str:
    return "-" if at is None else datetime.fromtimestamp(at).strftime("%Y-%m-%d")
