"""What docker/ says hangs together: images, services, secrets, and what the check understands."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

REPOSITORY = Path(__file__).parent.parent.parent
DOCKER = REPOSITORY / "docker"


@pytest.fixture(scope="module")
def chroots() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCKER)
        yield importlib.import_module("chroots")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    return dict(yaml.safe_load((DOCKER / "compose.yaml").read_text())["services"])


def test_what_is_copied_is_there_and_not_ignored(chroots: ModuleType) -> None:
    stages = chroots.read_dockerfile((DOCKER / "Dockerfile").read_text())
    let_in = [
        line[1:]
        for line in (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = []
    for stage in stages.values():
        for step in stage.steps:
            if step.name == "COPY" and not step.rest.startswith("--from"):
                copied += step.words()[:-1]
    assert len(copied) > 10
    for source in copied:
        assert (REPOSITORY / source).exists(), source
        assert any(source == path or source.startswith(f"{path}/") for path in let_in), source


def test_the_services_are_stages_of_the_dockerfile(
    chroots: ModuleType, services: dict[str, Any]
) -> None:
    stages = chroots.read_dockerfile((DOCKER / "Dockerfile").read_text())
    assert {service["build"]["target"] for service in services.values()} <= set(stages)
    for service in services.values():
        assert service["build"]["dockerfile"] == "docker/Dockerfile"
        assert service["healthcheck"]["test"][0] == "CMD"


def test_passwords_come_by_file(services: dict[str, Any]) -> None:
    compose = yaml.safe_load((DOCKER / "compose.yaml").read_text())
    given = {name for service in services.values() for name in service["secrets"]}
    assert given == set(compose["secrets"])
    for service in services.values():
        for name, value in service["environment"].items():
            if "PASSWORD" in name:
                assert name.endswith("_FILE")
                assert value.removeprefix("/run/secrets/") in service["secrets"]
            assert "password=" not in value
    read = set(re.findall(r"/run/secrets/(\w+)", (DOCKER / "initdb/10-coret.sql").read_text()))
    assert read <= set(services["database"]["secrets"])
    assert (DOCKER / "secrets/.gitignore").read_text().splitlines()[1:] == ["*", "!.gitignore"]


def test_a_step_the_check_does_not_know_ends_it(chroots: ModuleType, tmp_path: Path) -> None:
    stages = chroots.read_dockerfile(
        "# a comment\nFROM here AS one\nRUN a \\\n    # and why\n    && b\nVOLUME /data\n"
    )
    assert stages["one"].base == "here"
    assert [step.name for step in stages["one"].steps] == ["RUN", "VOLUME"]
    assert stages["one"].steps[0].rest.split() == ["a", "&&", "b"]
    with pytest.raises(SystemExit, match="VOLUME"):
        chroots.build(
            chroots.Stage("one", "here", stages["one"].steps[1:]),
            chroots.Root(tmp_path),
            tmp_path,
            {},
        )
