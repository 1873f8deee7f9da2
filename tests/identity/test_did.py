from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import IdentityInvalid
from flyball.identity.did import DID
from flyball.identity.document import ASSERTION, DIDDocument, document_of_key
from flyball.identity.keys import SigningKey, key_of, read_public, written

SEGMENTS = st.from_regex(r"[a-z0-9_-]([a-z0-9._-]|%2[0-9]){0,8}[a-z0-9]", fullmatch=True).filter(
    lambda text: "%2f" not in text.lower()
)
HOSTS = st.from_regex(r"[a-z][a-z0-9]{0,5}\.(com|example)(:[1-9][0-9]{0,3})?", fullmatch=True)
DIDS = st.builds(
    DID,
    st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True),
    st.from_regex(r"([A-Za-z0-9._-]|%[0-9A-F]{2}|:){0,10}[A-Za-z0-9]", fullmatch=True),
    st.one_of(st.just(""), st.from_regex(r"[A-Za-z0-9._~!$&/?-]{1,8}", fullmatch=True)),
)


@given(DIDS)
def test_a_did_comes_back_from_its_text(did: DID) -> None:
    assert DID.parse(str(did)) == did
    assert did.with_fragment("x").without_fragment() == did.without_fragment()


@given(st.text(max_size=40) | st.from_regex(r"did:.{0,30}", fullmatch=True))
def test_a_text_is_a_did_to_the_letter_or_none(text: str) -> None:
    try:
        did = DID.parse(text)
    except IdentityInvalid:
        return
    assert str(did) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "did",
        "did:key",
        "did:key:",
        "did::x",
        "DID:key:x",
        "did:Key:x",
        "did:key:x#",
        "did:key:x/path",
        "did:key:x?q=1",
        "did:key:a b",
        "did:key:%zz",
        "did:key:x:",
        "did:key:x#a#b",
        "did:key:x\n",
        f"did:key:{'x' * 3000}",
        None,
        7,
    ],
)
def test_what_is_none_is_refused(text: object) -> None:
    with pytest.raises(IdentityInvalid):
        DID.parse(text)


@given(HOSTS, st.lists(SEGMENTS, max_size=3))
def test_a_did_of_the_web_comes_back_from_its_address(host: str, path: list[str]) -> None:
    did = DID.web(host, *path)
    assert DID.of_url(did.url) == did
    assert DID.parse(str(did)) == did
    assert did.url.startswith(f"https://{host}/")


@pytest.mark.parametrize(
    ("did", "url"),
    [
        ("did:web:w3c-ccg.github.io", "https://w3c-ccg.github.io/.well-known/did.json"),
        ("did:web:w3c-ccg.github.io:user:alice", "https://w3c-ccg.github.io/user/alice/did.json"),
        ("did:web:example.com%3A3000:user:alice", "https://example.com:3000/user/alice/did.json"),
        ("did:web:localhost%3A8080", "http://localhost:8080/.well-known/did.json"),
    ],
)
def test_addresses_of_the_specification(did: str, url: str) -> None:
    assert DID.parse(did).url == url
    assert str(DID.of_url(url)) == did


@pytest.mark.parametrize(
    "did",
    ["did:key:z6Mk", "did:web:a..b", "did:web:a:..:b", "did:web:a:%2e%2e", "did:web:a%2Fb", "did:web:a::b"],
)
def test_what_leads_elsewhere_has_no_address(did: str) -> None:
    with pytest.raises(IdentityInvalid):
        _ = DID.parse(did).url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/.well-known/did.json",
        "https://example.com/",
        "https://example.com/did.json?x",
        "https://me@example.com/did.json",
        "https://example.com//did.json",
        "https://example.com:99999/did.json",
        "ftp://example.com/a/did.json",
    ],
)
def test_no_did_of_the_web_stands_there(url: str) -> None:
    with pytest.raises(IdentityInvalid):
        DID.of_url(url)


@given(st.binary(min_size=32, max_size=32))
def test_a_key_comes_back_from_its_did_and_its_secret(seed: bytes) -> None:
    key = SigningKey(seed)
    assert key_of(key.did) == key.public == read_public(written(key.public))
    assert str(key.did).startswith("did:key:z6Mk")
    assert SigningKey.read(key.secret).public == key.public
    assert key.secret not in repr(key)


def test_the_key_of_the_specification() -> None:
    key = SigningKey.read("z3u2en7t5LR2WtQH5PfFqMqwVHBeXouLzo6haApm8XHqvjxq")
    assert str(key.did) == "did:key:z6MkrJVnaZkeFzdQyMZu1cgjg7k1pZZ6pvBQ7XJPt4swbTQ2"


@pytest.mark.parametrize(
    "did", ["did:web:a", "did:key:z6Mk", "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJw"]
)
def test_what_is_no_key_of_ours_is_refused(did: str) -> None:
    with pytest.raises(IdentityInvalid):
        key_of(DID.parse(did))


def test_a_secret_is_not_told_when_it_is_none() -> None:
    with pytest.raises(IdentityInvalid) as failure:
        SigningKey.read("zsecret-that-is-none")
    assert "secret-that-is-none" not in str(failure.value.details)


def test_a_document_says_which_key_may_do_what() -> None:
    key = SigningKey.new()
    document = document_of_key(key.did)
    again = DIDDocument.read(document.write())
    assert again == document
    method = f"{key.did}#{key.did.id}"
    assert again.key_for(method, ASSERTION) == key.public
    assert again.key_for(method, "keyAgreement") is None
    assert again.key_for(f"{key.did}#other", ASSERTION) is None


def test_a_document_of_others_may_be_written_in_other_ways() -> None:
    key, did = SigningKey.new(), "did:web:example.com"
    inside = {
        "id": "#k",
        "type": "Ed25519VerificationKey2020",
        "controller": did,
        "publicKeyMultibase": written(key.public),
    }
    embedded = DIDDocument.read(
        {"@context": "x", "id": did, "assertionMethod": [inside], "service": [{"id": 1}]}
    )
    assert embedded.key_for(f"{did}#k", ASSERTION) == key.public
    assert embedded.write()["service"] == [{"id": 1}]
    named = DIDDocument.read({"id": did, "verificationMethod": [inside], "assertionMethod": ["#k", "#gone"]})
    assert named.key_for(f"{did}#k", ASSERTION) == key.public
    others = DIDDocument.read({"id": did, "assertionMethod": [{**inside, "controller": "did:web:evil.com"}]})
    assert others.key_for(f"{did}#k", ASSERTION) is None
