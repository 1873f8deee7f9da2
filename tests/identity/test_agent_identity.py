from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import IdentityInvalid
from flyball.core.forms.semstreams import LoopEntity
from flyball.identity.agent_identity import AgentIdentity
from flyball.identity.credential import CAPABILITY, VerifiableCredential
from flyball.identity.keys import SigningKey
from flyball.identity.subjects import capability_credential, delegation_credential

NOW = 1_700_000_000.0
ROOT, CLERK, OTHER = [SigningKey(bytes([number]) * 32).did for number in range(3)]


def held(name: str, number: int = 1, expires: float | None = None) -> VerifiableCredential:
    return capability_credential(f"urn:{number}", ROOT, CLERK, name, issued=NOW, expires=expires)


def clerk(*credentials: VerifiableCredential) -> AgentIdentity:
    return AgentIdentity(did=CLERK, display_name="clerk", credentials=credentials, created=NOW, updated=NOW)


def test_the_keys_are_semstreams() -> None:
    assert clerk().write() == {
        "did": str(CLERK),
        "display_name": "clerk",
        "created": "2023-11-14T22:13:20Z",
        "updated": "2023-11-14T22:13:20Z",
    }
    whole = AgentIdentity(
        did=CLERK,
        display_name="clerk",
        credentials=(held("x"),),
        internal_role="editor",
        created=NOW,
        updated=NOW,
        metadata={"floor": 2},
    )
    assert list(whole.write()) == [
        "did",
        "display_name",
        "credentials",
        "internal_role",
        "created",
        "updated",
        "metadata",
    ]


NAMES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4)


@given(NAMES, st.text(max_size=5), st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=2))
def test_an_identity_comes_back_also_from_a_loop_of_semstreams(
    names: list[str], role: str, metadata: dict[str, int]
) -> None:
    credentials = tuple([held(name, number) for number, name in enumerate(names)])
    identity = AgentIdentity(
        did=CLERK,
        display_name="c",
        credentials=credentials,
        internal_role=role.encode(errors="replace").decode(),
        metadata=dict(metadata) or None,
    )
    assert AgentIdentity.unmarshal_json(identity.marshal_json()) == identity
    entity = LoopEntity(id="l", identity=identity.write())
    assert AgentIdentity.recorded(LoopEntity.unmarshal_json(entity.marshal_json()).identity) == identity


def test_credentials_are_added_found_and_removed() -> None:
    identity = clerk(held("x")).add_credential(held("y", 2), NOW + 5)
    assert (len(identity.credentials), identity.updated) == (2, NOW + 5)
    assert identity.add_credential(held("z", 2)).capabilities(NOW) == ("x", "z")
    assert identity.get_credential("urn:2") == held("y", 2)
    assert identity.get_credential("urn:3") is None
    assert len(identity.get_credentials_by_type(CAPABILITY)) == 2
    assert identity.remove_credential("urn:2").capabilities(NOW) == ("x",)
    assert identity.remove_credential("urn:3") is identity


def test_only_what_speaks_of_it_and_is_in_its_time_counts() -> None:
    others = capability_credential("urn:9", ROOT, OTHER, "theirs", issued=NOW)
    handed = delegation_credential("urn:8", OTHER, CLERK, ["handed", "x"], issued=NOW)
    identity = clerk(held("x"), held("short", 2, NOW + 10), others, handed)
    assert identity.capabilities(NOW) == ("x", "short", "handed")
    assert identity.capabilities(NOW + 11) == ("x", "handed")
    assert identity.capabilities(NOW - 1) == ()


def test_the_chain_is_kept_in_the_metadata() -> None:
    identity = clerk().with_chain((held("x"),))
    assert AgentIdentity.read(identity.write()).chain == (held("x"),)
    assert identity.capabilities(NOW) == ()
    assert identity.with_chain(()) == clerk()
    with pytest.raises(IdentityInvalid):
        _ = AgentIdentity(did=CLERK, metadata={"delegation_chain": 7}).chain


def test_an_identity_without_a_name_is_not_valid() -> None:
    with pytest.raises(IdentityInvalid, match="display_name"):
        AgentIdentity(did=CLERK).validate()


NONE: list[Any] = [None, [], {}, {"did": "x"}, {"did": str(CLERK), "credentials": [{}]}]


@pytest.mark.parametrize("document", NONE)
def test_what_is_no_identity_is_refused(document: object) -> None:
    with pytest.raises(IdentityInvalid):
        AgentIdentity.read(document)
