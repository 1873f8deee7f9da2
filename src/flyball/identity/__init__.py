"""Identity: who an agent is, what it may do, and how others can tell.

- `did`, `document`, `keys`: names that are keys (did:key) or addresses (did:web), and what they resolve to;
  `base58` is how keys and signatures are written.
- `credential`, `subjects`: what an issuer says of an agent; `proof` signs it, `checking` looks whether it
  holds, and `verdict` says why not. `kept` reads and writes all of that without loss.
- `agent_identity`: a DID with its credentials, in SemStreams' form.
- `provider`: who makes identities, issues and revokes; `stored` is one over a `store`: in memory, or in a
  folder. `web` fetches the documents of did:web.
- `delegation`, `chain`: capabilities handed on from agent to agent, and followed back to where they are from.
- `acting`, `capabilities`: what an agent is given of it: `ActsAs` among its features, `RequireCapabilities`
  among its tool filters.

Rules: it imports core and nothing else of flyball. What is data needs no extra; `cryptography`, `rfc8785` and
`aiohttp` are imported where they are used. A secret key is never logged, recorded or shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flyball.identity.acting import ActsAs
    from flyball.identity.agent_identity import AgentIdentity
    from flyball.identity.capabilities import RequireCapabilities
    from flyball.identity.chain import ChainVerdict, verify_chain
    from flyball.identity.credential import CredentialStatus, Proof, VerifiableCredential
    from flyball.identity.delegation import delegate
    from flyball.identity.did import DID
    from flyball.identity.document import DIDDocument
    from flyball.identity.provider import IdentityProvider
    from flyball.identity.stored import LocalProvider, MemoryProvider
    from flyball.identity.subjects import (
        AgentCapabilitySubject,
        AgentDelegationSubject,
        AgentIdentitySubject,
    )
    from flyball.identity.verdict import Problem, Verdict

__all__ = [
    "ActsAs",
    "AgentCapabilitySubject",
    "AgentDelegationSubject",
    "AgentIdentity",
    "AgentIdentitySubject",
    "ChainVerdict",
    "CredentialStatus",
    "DID",
    "DIDDocument",
    "IdentityProvider",
    "LocalProvider",
    "MemoryProvider",
    "Problem",
    "Proof",
    "RequireCapabilities",
    "VerifiableCredential",
    "Verdict",
    "delegate",
    "verify_chain",
]

_HOMES = {
    "ActsAs": "acting",
    "AgentCapabilitySubject": "subjects",
    "AgentDelegationSubject": "subjects",
    "AgentIdentity": "agent_identity",
    "AgentIdentitySubject": "subjects",
    "ChainVerdict": "chain",
    "CredentialStatus": "credential",
    "DID": "did",
    "DIDDocument": "document",
    "IdentityProvider": "provider",
    "LocalProvider": "stored",
    "MemoryProvider": "stored",
    "Problem": "verdict",
    "Proof": "credential",
    "RequireCapabilities": "capabilities",
    "VerifiableCredential": "credential",
    "Verdict": "verdict",
    "delegate": "delegation",
    "verify_chain": "chain",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{home}"), name)
