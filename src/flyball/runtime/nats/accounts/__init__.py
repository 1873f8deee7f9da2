"""Tenants on NATS: an account each, whose loops, journals, buckets and objects no other account can see.

    keys         the keys of operator, accounts and users
    claims       what is said of them, signed: NATS' JWTs
    permissions  what each role may do in its account, and nothing else
    sharing      what the accounts of a tenant's model and tools workers have of the tenant's
    quota        how much an account may have
    folder       the operator's files: keys, claims, credentials, and what servers include
    system       speaking to all servers of a cluster through their system account
    furnishing   the streams and stores in an account
    tenants      adding, listing, changing and removing them

Rules:
- who has the folder is the operator: keys are in files that only their owner can read, and nowhere else;
- servers hold claims only, and learn of changes while they run;
- a user can do what its role needs: what a tools worker may do shows it no model traffic.
"""

from __future__ import annotations

from flyball.runtime.nats.accounts.folder import Folder
from flyball.runtime.nats.accounts.quota import Quota
from flyball.runtime.nats.accounts.tenants import Tenancy, Use

__all__ = ["Folder", "Quota", "Tenancy", "Use"]
