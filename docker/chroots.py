"""Run a Dockerfile's steps in chroots, and processes in them: what check.py does without Docker.

Only the instructions that our Dockerfile uses are known; any other is an error.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# In a mount namespace of its own; its processes end with the first of them.
_ENTER = (
    'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && '
    'root=$1 && shift && exec chroot --userspec="$1" "$root" /usr/bin/env -i /bin/sh -c "$2"'
)
_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")


@dataclass(frozen=True)
class Step:
    """One instruction of a Dockerfile: its name and the rest of its line."""

    name: str
    rest: str

    def words(self) -> list[str]:
        """Return the words of a COPY, ENTRYPOINT or CMD."""
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


@dataclass(frozen=True)
class Stage:
    """What is between one FROM and the next."""

    name: str
    base: str
    steps: list[Step]


class Process:
    """A process that was started in a root."""

    def __init__(self, outer: subprocess.Popen[bytes], log: Path) -> None:
        self.outer = outer
        self.log = log

    def stop(self, number: signal.Signals, limit_s: float = 60) -> int:
        """Send it a signal, as `docker stop` does, and return its exit code."""
        children = (
            Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children").read_text().split()
        )
        for child in children:
            os.kill(int(child), number)
        return self.outer.wait(limit_s)

    def kill(self) -> None:
        """End it in any case."""
        self.outer.kill()
        self.outer.wait()


@dataclass
class Root:
    """A folder that is the root of a container, with what its image says of processes in it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        """Return where a path inside lies, seen from outside; relative ones below the workdir."""
        return self.folder / str(Path(self.workdir, inside)).lstrip("/")

    def start(
        self, command: list[str], log: Path, *, user: str | None = None, **more: str
    ) -> Process:
        """Start a command inside, as the first process there; what it prints goes to a file."""
        script = f"exec {shlex.join(command)}"
        with log.open("w") as output:
            return Process(
                subprocess.Popen(
                    self._inside(script, user or self.user, more),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                ),
                log,
            )

    def run(
        self, script: str, *, user: str | None = None, shown: bool = False, **environment: str
    ) -> str:
        """Run a shell command inside; return what it printed, unless it was shown at once.

        Ends everything where it fails.
        """
        done = subprocess.run(
            self._inside(script, user or self.user, environment),
            stdin=subprocess.DEVNULL,
            stdout=None if shown else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = done.stdout or ""
        if done.returncode:
            raise SystemExit(
                f"in {self.folder.name}: {script}\n{printed}ended with {done.returncode}"
            )
        return printed

    def _inside(self, script: str, user: str, environment: dict[str, str]) -> list[str]:
        name = user.partition(":")[0]
        found = re.search(
            rf"^{name}:[^:]*:\d+:\d+:[^:]*:([^:]*):", self.path("/etc/passwd").read_text(), re.M
        )
        given = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": found[1] if found else "/",
            **{name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            **self.environment,
            **environment,
        }
        exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in given.items())
        inside = f"{exports}cd {shlex.quote(self.workdir)}\n{script}"
        # --kill-child: nothing of it is left when whoever started it is gone.
        return [
            "unshare", "--mount", "--pid", "--fork", "--kill-child",
            "sh", "-ec", _ENTER, "sh", str(self.folder), user, inside,
        ]  # fmt: skip


def read_dockerfile(text: str) -> dict[str, Stage]:
    """Return the stages by name."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    stages: dict[str, Stage] = {}
    stage = None
    for line in text.replace("\\\n", " ").splitlines():
        name, _, rest = line.strip().partition(" ")
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            stage = stages[alias] = Stage(alias, base, [])
        elif name:
            if stage is None:
                raise SystemExit(f"the Dockerfile has {name} before FROM")
            stage.steps.append(Step(name, rest.strip()))
    return stages


def copy_root(source: Path, folder: Path) -> None:
    """Copy the root of a container, as cheaply as the disk lets us."""
    subprocess.run(["cp", "--archive", "--reflink=auto", str(source), str(folder)], check=True)


def build(stage: Stage, root: Root, context: Path, stages: dict[str, Root]) -> Root:
    """Carry out the steps of a stage."""
    for step in stage.steps:
        print(f"  {step.name} {step.rest[:100]}", flush=True)
        match step.name:
            case "RUN":
                root.run(f"set -e\n{step.rest}")
            case "COPY":
                _copy(step.words(), root, context, stages)
            case "ENV":
                key, _, value = step.rest.partition("=")
                root.environment[key] = shlex.split(value)[0]
            case "WORKDIR":
                root.path(step.rest).mkdir(parents=True, exist_ok=True)
                root.workdir = step.rest
            case "USER":
                root.user = step.rest
            case "ENTRYPOINT":
                root.entrypoint = step.words()
            case "CMD":
                root.command = step.words()
            case _:
                raise SystemExit(f"check.py knows no {step.name}: teach it, in docker/chroots.py")
    return root


def _copy(words: list[str], root: Root, context: Path, stages: dict[str, Root]) -> None:
    origin = context
    if words[0].startswith("--from="):
        origin = stages[words.pop(0).removeprefix("--from=")].folder
    *sources, target = words
    into = root.path(target)
    for source in sources:
        found = origin / source.lstrip("/")
        if found.is_dir():
            # A folder's content, not the folder.
            shutil.copytree(found, into, symlinks=True, dirs_exist_ok=True, ignore=_caches)
        elif target.endswith("/"):
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, into)
        else:
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, into)


def _caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]
