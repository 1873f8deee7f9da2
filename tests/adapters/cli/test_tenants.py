"""`flyball tenants` by command, on a real server in operator mode."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flyball.adapters.cli.cluster import Cluster
from flyball.adapters.cli.tenants import bar
from tests.adapters.cli.conftest import ROOT, Flyball, Said
from tests.runtime.nats.accounts import conftest
from tests.runtime.nats.accounts.conftest import Operated

operator = conftest.operator
Tenants = Callable[..., Said]


@pytest.fixture
def tenants(flyball: Flyball, operator: Operated) -> Iterator[Tenants]:
    """Run a command about the tenants of a server."""

    def call(*argv: str) -> Said:
        where = () if argv[0] == "creds" else ("--nats", *operator.options.servers)
        return flyball("tenants", *argv, "--folder", str(operator.folder.path), *where)

    yield call
    for tenant in operator.folder.tenants():
        assert call("remove", tenant, "--yes").code == 0


def test_a_tenant_is_made_listed_changed_and_removed(tenants: Tenants, operator: Operated) -> None:
    assert tenants("list").err == "there are no tenants: flyball tenants add NAME makes one\n"
    made = tenants("add", "acme", "--disk", "1GiB", "--connections", "9")
    roles = ("api", "loop", "model", "tools", "dispatch", "all")
    assert made.out.split() == [
        str(operator.folder.path / "tenants/acme" / f"{role}.creds") for role in roles
    ]
    assert made.err.startswith("acme is there. Workers: flyball worker AGENTS --creds ")
    other = tenants("add", "globex", "--json").json
    assert (other["tenant"], other["quota"]["disk"], sorted(other["creds"])) == (
        "globex",
        None,
        sorted(roles),
    )
    listed = tenants("list").out
    assert re.search(r"acme +\S+ K?i?B of 1\.0 GiB +░{20} +0% +18 +0 +0/27 \(3 accounts\)", listed), listed
    assert re.search(r"globex +\S+ K?i?B +no limit +18", listed), listed
    (first, _) = tenants("list", "--json").json
    assert (first["tenant"], first["quota"]["connections"], first["used"]["streams"]) == ("acme", 9, 18)
    assert (first["accounts"], first["connections"]) == (3, 27)
    changed = tenants("quota", "acme", "--disk", "2GiB")
    assert changed.err == "acme may have 2.0 GiB on disk, 9 connections: known to flyball\n"
    assert tenants("quota", "acme", "--disk", "none", "--json").json["quota"]["disk"] is None
    refused = tenants("remove", "globex")
    assert (refused.code, "all of it would be lost, for ever; --yes does that" in refused.err) == (2, True)
    assert tenants("remove", "globex", "--yes", "--json").json["removed"] is True
    assert [one["tenant"] for one in tenants("list", "--json").json] == ["acme"]


def test_a_tenant_of_an_earlier_release_is_furnished(tenants: Tenants, operator: Operated) -> None:
    assert tenants("add", "acme").code == 0
    assert tenants("furnish", "acme").err == "acme: all is there\n"
    folder = operator.folder.path / "tenants/acme"
    for role in ("model", "tools"):
        (folder / f"{role}.nk").unlink()
        (folder / f"{role}.jwt").unlink()
    done = tenants("furnish", "acme")
    assert done.out.split() == [str(folder / f"{role}.creds") for role in ("model", "tools")]
    assert done.err.startswith(
        "acme: its accounts are those of this release now; new credentials for model, "
    )
    assert tenants("furnish", "acme", "--json").json == {
        "tenant": "acme",
        "accounts": False,
        "streams": [],
        "creds": {},
    }


def test_credentials_are_made_and_revoked(tenants: Tenants) -> None:
    tenants("add", "acme")
    file = Path(tenants("creds", "acme", "tools", "--days", "3").out.strip())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tenants("revoke", "acme", "tools", "--old").err == (
        "revoked: 1 credentials of the role tools of acme\n"
    )
    assert len(tenants("revoke", "acme", "tools", "--json").json["revoked"]) == 1
    assert tenants("creds", "acme", "tools", "--json").json["creds"] == str(file)


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["add", "Acme"], "a tenant's name has 1 to 63 small letters"),
        (["add", "acme", "--disk", "lots"], "'lots' is no size: write it like 10GiB"),
        (["add", "acme", "--streams", "3"], "flyball needs 18 in an account"),
        (["quota", "nobody", "--disk", "1GiB"], "there is no tenant 'nobody'"),
        (["creds", "nobody", "api"], "there is no tenant 'nobody'"),
        (
            ["creds", "acme", "cook"],
            "there is no role 'cook'; there are api, loop, model, tools, dispatch, all",
        ),
        (["creds", "acme", "api", "--days", "-1"], "--days -1: give a number from 0"),
    ],
)
def test_what_cannot_be_is_told(tenants: Tenants, argv: list[str], told: str) -> None:
    said = tenants(*argv)
    assert (said.code in (2, 3), told in said.err, said.out) == (True, True, ""), said


def test_an_operator_is_made_once(flyball: Flyball, tmp_path: Path) -> None:
    folder = tmp_path / "operator"
    made = flyball("tenants", "init", str(folder), "--json").json
    assert made == {"folder": str(folder), "resolver": str(folder / "resolver.conf")}
    there = str(tmp_path / "there")
    assert f"flyball tenants add NAME --folder {there}" in flyball("tenants", "init", there).err
    again = flyball("tenants", "init", str(folder))
    assert (again.code, "has an operator" in again.err) == (2, True)
    missing = flyball("tenants", "list", "--folder", str(tmp_path / "no"), "--nats", "nats://127.0.0.1:1")
    assert (missing.code, "flyball tenants init" in missing.err) == (2, True)


def test_credentials_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLYBALL_HOME", str(tmp_path))
    monkeypatch.setenv("FLYBALL_NATS_CREDS", "a.creds")
    assert Cluster(nats="nats://x:1").options().credentials == "a.creds"
    assert Cluster(nats="nats://x:1", creds=Path("b.creds")).options().credentials == "b.creds"


def test_bars() -> None:
    assert str(bar(0, 0)) == "no limit"
    assert str(bar(5, 10, width=4)) == "██░░  50%"
    assert str(bar(30, 10, width=4)) == "████ 300%"


def test_the_page_about_tenants_has_commands_of_ours(flyball: Flyball) -> None:
    page = (ROOT / "docs/tenants.md").read_text()
    lines = re.findall(r"^\$ flyball (.*?)(?:\s+#.*)?$", page, re.MULTILINE)
    assert len(lines) >= 12
    for line in lines:
        words = line.split()
        command = words[:2] if words[0] == "tenants" else words[:1]
        shown = flyball(*command, "--help")
        assert shown.code == 0, line
        assert set(re.findall(r"--[a-z]+", line)) <= set(re.findall(r"--[a-z]+", shown.out)), line
