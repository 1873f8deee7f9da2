"""What is deployed: the wheel, the container, the cluster, the units; as far as one can look at them here."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml

from flyball import Agent, LocalRuntime, Service
from flyball.adapters.http.entry import serving_http
from flyball.runtime.nats.accounts import Folder
from flyball.runtime.nats.server.binary import find_binary

ROOT = Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"


def options_of(command: str) -> set[str]:
    """The options that a command has, as its help says."""
    done = subprocess.run(
        [sys.executable, "-m", "flyball", command, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    return set(re.findall(r"--[a-z-]+", done.stdout))


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_wheel_has_the_page_and_nothing_of_the_tests(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(ZipFile(wheel).namelist())
    page = ROOT / "src/flyball/adapters/http/studio/page"
    assert {f"flyball/adapters/http/studio/page/{file.name}" for file in page.iterdir()} <= names
    assert "flyball/py.typed" in names
    assert not [name for name in names if not name.startswith(("flyball/", "flyball-"))]


def test_all_is_all_that_there_is() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"[a-z]+", extras["all"][0].partition("[")[2])
    assert sorted(named) == sorted(set(extras) - {"all", "dev"})


def test_the_container_copies_what_is_there_and_runs_as_nobody_in_particular() -> None:
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            *sources, _ = [word for word in line.split()[1:] if not word.startswith("--")]
            assert all((ROOT / source).exists() for source in sources), line
    assert "USER flyball" in lines
    assert any("libgomp1" in line for line in lines), "the embedded model's engine needs it"
    assert lines[-2:] == ['ENTRYPOINT ["flyball"]', 'CMD ["--help"]']


@pytest.mark.parametrize("service", ["worker", "api"])
def test_the_clusters_commands_are_commands_of_ours(service: str) -> None:
    command, *words = compose()["services"][service]["command"]
    assert {word for word in words if word.startswith("--")} <= options_of(command)


def test_the_cluster_has_three_nodes_that_know_each_other_and_keep_three_copies() -> None:
    services = compose()["services"]
    nodes = [name for name in services if name.startswith("nats-")]
    assert len(nodes) == len({services[name]["environment"]["ZONE"] for name in nodes}) == 3
    for name in nodes:
        assert services[name]["environment"]["NAME"] == name
        assert all(f"//{other}:6222" in services[name]["environment"]["ROUTES"] for other in nodes)
        assert f"{name}:/data" in services[name]["volumes"]
    for name in ("worker", "api"):
        environment = services[name]["environment"]
        assert all(f"@{node}:4222" in environment["FLYBALL_NATS"] for node in nodes)
        assert environment["FLYBALL_NATS_REPLICAS"] == "3"
        assert all(f"http://{node}:8222" in environment["FLYBALL_NATS_MONITORING"] for node in nodes)


def test_what_runs_in_the_cluster_may_do_little_and_fetches_a_model_once() -> None:
    described = compose()
    for name in ("worker", "api"):
        service = described["services"][name]
        assert (service["init"], service["cap_drop"]) == (True, ["ALL"])
        assert "models:/data/models" in service["volumes"]
        assert all(volume.partition(":")[0] in described["volumes"] for volume in service["volumes"])


async def test_the_api_is_looked_after_by_what_it_is_asked() -> None:
    word, *command = compose()["services"]["api"]["healthcheck"]["test"]
    assert (word, command[:2]) == ("CMD", ["python", "-c"])
    async with LocalRuntime() as runtime, serving_http(Service([Agent("test", name="a")], runtime)) as url:
        for address, code in ((url, 0), (f"{url}/nothing", 1)):
            asked = command[2].replace("http://127.0.0.1:8000", address)
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", asked, stderr=asyncio.subprocess.DEVNULL
            )
            assert await process.wait() == code


def test_with_tenants_the_same_services_are_there_and_the_api_serves_them() -> None:
    more = yaml.safe_load((DEPLOY / "compose.tenants.yaml").read_text())["services"]
    assert set(more) == set(compose()["services"])
    command, *words = more["api"]["command"]
    assert {word for word in words if word.startswith("--")} <= options_of(command)
    for name, service in more.items():
        if name.startswith("nats-"):
            assert "./nats-tenants.conf:/etc/nats/nats.conf:ro" in service["volumes"]
        else:
            assert "@" not in service["environment"]["FLYBALL_NATS"], "credentials are in files"


def test_what_looks_after_the_nodes_is_in_their_image() -> None:
    for name, service in compose()["services"].items():
        if "wget" in str(service.get("healthcheck", "")):
            assert service["image"].endswith("-alpine"), name


@pytest.mark.parametrize("name", ["nats.conf", "nats-tenants.conf"])
def test_the_nodes_configuration_is_one(tmp_path: Path, name: str) -> None:
    environment = {
        "NAME": "nats-1",
        "ZONE": '"zone:1"',
        "ROUTES": '["nats://127.0.0.1:1"]',
        "STORE": str(tmp_path),
        "STORE_SIZE": "50GB",
        "ACCOUNTS": str(tmp_path / "accounts"),
        "FLYBALL_NATS_PASSWORD": "secret",
    }
    Folder(tmp_path).make("test")
    shutil.copy(DEPLOY / name, tmp_path)
    command = [str(find_binary()), "-t", "--config", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unit", ["flyball.service", "flyball-worker@.service"])
def test_the_units_start_commands_of_ours(unit: str) -> None:
    text = (DEPLOY / unit).read_text()
    start = re.search(r"^ExecStart=\S+/flyball (\w+) (.*)$", text, re.MULTILINE)
    assert start is not None
    assert set(re.findall(r"--[a-z-]+", start[2])) <= options_of(start[1])
    if (analyze := shutil.which("systemd-analyze")) is not None:
        done = subprocess.run(
            [analyze, "verify", str(DEPLOY / unit)], capture_output=True, text=True, check=False
        )
        wrong = [
            line for line in done.stderr.splitlines() if "/opt/flyball/venv" not in line and unit[:7] in line
        ]
        assert wrong == []
