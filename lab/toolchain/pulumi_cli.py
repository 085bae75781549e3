"""The Pulumi CLI and its Python language host: official where they can be had, else built from Go modules.

What is built here is Pulumi's own source, unchanged, compiled on this machine; it is a substitute only in
where it came from. The language host is older than the CLI: it has no `virtualenv` option, so the project's
environment has to be first on PATH.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lab.paths import Cache
from lab.progress import note, step
from lab.toolchain import golang
from lab.toolchain.atomic import made_from, make_once
from lab.toolchain.download import available, download
from lab.toolchain.versions import LANGUAGE_HOST, PULUMI, PULUMI_MINIMUM

_CLI_MODULE = "github.com/pulumi/pulumi/pkg/v3"
_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
_VERSION_VARIABLE = f"{_SDK_MODULE}/go/common/version.Version"
_BUILD_ORIGIN = f"pulumi {PULUMI}, language host {LANGUAGE_HOST}, recipe 1"
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}


@dataclass(frozen=True)
class PulumiCli:
    """Where the Pulumi commands are.

    Attributes:
        bin_dirs: folders for PATH, the CLI's first.
        substitutes: a sentence for each part that is not the official one: what it is, and why.
        found: a sentence that says which one is used.
    """

    bin_dirs: list[Path]
    substitutes: list[str]
    found: str


def ensure(cache: Cache) -> PulumiCli:
    """Finds, downloads or builds the Pulumi CLI and the Python language host.

    Raises:
        subprocess.CalledProcessError: the build failed.
        OSError: an official download began and broke.
    """
    on_path = find_on_path(os.environ, cache)
    if on_path is not None:
        return on_path
    official = cache.toolchain / f"official-{PULUMI}"
    built = cache.toolchain / f"built-{PULUMI}"
    if made_from(built) != _BUILD_ORIGIN and (made_from(official) == PULUMI or available(_release_url())):
        make_once(cache, official, PULUMI, _download)
        return PulumiCli([official / "bin"], [], f"Pulumi {PULUMI}, the official release")
    make_once(cache, built, _BUILD_ORIGIN, lambda folder: _build(folder, cache.uv))
    sentence = (
        f"Pulumi {PULUMI} and its Python language host {LANGUAGE_HOST} are built on this machine from Go "
        "modules: no official `pulumi` is on PATH, and the official download can't be reached."
    )
    return PulumiCli([built / "bin"], [sentence], f"Pulumi {PULUMI}, built here")


def find_on_path(environment: Mapping[str, str], cache: Cache) -> PulumiCli | None:
    """The Pulumi that is installed on this machine, if it is recent enough and has its Python language host.

    Args:
        environment: whose PATH is searched.
        cache: what lies in it is not "installed on this machine" and is passed over.
    """
    folders = [
        folder
        for folder in environment.get("PATH", "").split(os.pathsep)
        if folder and not Path(folder).resolve().is_relative_to(cache.root.resolve())
    ]
    path = os.pathsep.join(folders)
    cli = shutil.which("pulumi", path=path)
    host = shutil.which("pulumi-language-python", path=path)
    if cli is None or host is None:
        return None
    answer = subprocess.run([cli, "version"], capture_output=True, text=True, check=False)
    version = parse_version(answer.stdout)
    if answer.returncode != 0 or version is None or version < PULUMI_MINIMUM:
        wanted = ".".join(str(part) for part in PULUMI_MINIMUM)
        note(f"{cli} is passed over: its version is {answer.stdout.strip() or 'not told'}, below {wanted}")
        return None
    folders_used = list(dict.fromkeys([Path(cli).parent, Path(host).parent]))
    return PulumiCli(folders_used, [], f"Pulumi {answer.stdout.strip()}, found as {cli}")


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The version in what `pulumi version` prints: `v3.274.1` is (3, 274, 1)."""
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)", text.strip())
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _release_url() -> str:
    machine = platform.machine()
    architecture = _ARCHITECTURES.get(machine, machine)
    return f"https://get.pulumi.com/releases/sdk/pulumi-v{PULUMI}-linux-{architecture}.tar.gz"


def _download(folder: Path) -> None:
    with (
        step(f"Downloading the official Pulumi {PULUMI}"),
        tempfile.TemporaryDirectory(dir=folder) as scratch,
    ):
        archive = Path(scratch) / "pulumi.tar.gz"
        download(_release_url(), archive)
        unpack_release(archive, folder / "bin")


def unpack_release(archive: Path, destination: Path) -> None:
    """Unpacks the commands of an official release archive into one folder.

    Args:
        archive: a `.tar.gz` that holds one folder with `pulumi` and all that belongs beside it.
        destination: the folder to make.

    Raises:
        FileNotFoundError: there is no `pulumi` in the archive.
    """
    with tarfile.open(archive) as tar:
        files = [member for member in tar if member.isfile()]
        tops = [PurePosixPath(member.name).parent for member in files if PurePosixPath(member.name).name == "pulumi"]
        if not tops:
            raise FileNotFoundError(f"{archive} holds no `pulumi`; is it a release archive?")
        destination.mkdir()
        for member in files:
            name = PurePosixPath(member.name)
            content = tar.extractfile(member)
            if name.parent == tops[0] and content is not None:
                with content, (destination / name.name).open("wb") as out:
                    shutil.copyfileobj(content, out)
                (destination / name.name).chmod(0o755)


def _build(folder: Path, uv: Path) -> None:
    note(f"No official Pulumi is on PATH or can be downloaded: building {PULUMI} from its Go modules.")
    commands = folder / "bin"
    with tempfile.TemporaryDirectory(dir=folder) as scratch_name:  # 2 GB: not in /tmp, which may be memory
        scratch = Path(scratch_name)
        go = golang.find_or_fetch(scratch / "compiler", uv)
        build = _GoBuild(go, scratch, commands)
        with step(f"Building the Pulumi CLI {PULUMI} (about 4 minutes)"):
            build.install(f"{_CLI_MODULE}/cmd/pulumi", PULUMI)
        with step(f"Building the Python language host {LANGUAGE_HOST} (about 40 seconds)"):
            build.install(f"{_SDK_MODULE}/python/cmd/pulumi-language-python", LANGUAGE_HOST)
        sdk = build.module_folder(_SDK_MODULE, PULUMI)
        for script in ("cmd/pulumi-language-python-exec", "dist/pulumi-resource-pulumi-python"):
            copy = commands / Path(script).name
            shutil.copyfile(sdk / "python" / script, copy)
            copy.chmod(0o755)


@dataclass(frozen=True)
class _GoBuild:
    """Builds commands of Go modules that `go install module@version` refuses, because they replace modules.

    All that it downloads and compiles stays below `scratch`; `GOFLAGS=-modcacherw` lets that be removed.
    """

    go: Path
    scratch: Path
    commands: Path

    def _run(self, *arguments: str, folder: Path) -> None:
        log = self.scratch / "go.log"
        with log.open("wb") as out:
            result = subprocess.run(
                [self.go, *arguments],
                cwd=folder,
                env={**os.environ, **self._environment()},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if result.returncode != 0:
            note(log.read_text(errors="replace")[-4000:])
            raise subprocess.CalledProcessError(result.returncode, ["go", *arguments])

    def _environment(self) -> dict[str, str]:
        return {
            "GOPATH": str(self.scratch / "path"),
            "GOCACHE": str(self.scratch / "cache"),
            "GOMODCACHE": str(self.scratch / "path" / "pkg" / "mod"),
            "GOBIN": str(self.commands),
            "GOFLAGS": "-modcacherw",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            "CGO_ENABLED": "0",
        }

    def install(self, package: str, version: str) -> None:
        """Compiles one command into `commands`, in a throw-away module that requires its module."""
        module = self.scratch / f"module-{Path(package).name}"
        module.mkdir()
        self._run("mod", "init", "throwaway", folder=module)
        self._run("get", f"{package}@v{version}", folder=module)
        flags = f"-s -w -X {_VERSION_VARIABLE}=v{version}"
        self._run("install", "-trimpath", "-ldflags", flags, package, folder=module)

    def module_folder(self, module: str, version: str) -> Path:
        """Where the sources of a module that a build needed lie."""
        return self.scratch / "path" / "pkg" / "mod" / f"{module}@v{version}"
