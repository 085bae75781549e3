"""Which Pulumi and which plugins are used. Nothing here is downloaded, built or really installed."""

from __future__ import annotations

import tarfile
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lab import aws_plugin
from lab.command_plugin import SUBSTITUTE
from lab.paths import Cache
from lab.toolchain import Toolchain, golang, provider_plugin, pulumi_cli
from lab.toolchain.download import available, download

PLUGIN = f"resource-command-v{SUBSTITUTE.version}"


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


class TestPulumiOnPath:
    """A Pulumi that is on the machine is used when it is complete and recent enough."""

    def test_a_recent_one_is_used_and_is_no_substitute(self, tmp_path: Path, cache: Cache) -> None:
        folder = _commands(tmp_path / "bin", "v3.200.0")
        found = pulumi_cli.find_on_path({"PATH": str(folder)}, cache)
        assert found is not None
        assert found.bin_dirs == [folder]
        assert found.substitutes == []
        assert "v3.200.0" in found.found

    def test_an_old_one_is_passed_over_and_says_so(
        self, tmp_path: Path, cache: Cache, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = _commands(tmp_path / "bin", "v3.99.1")
        assert pulumi_cli.find_on_path({"PATH": str(folder)}, cache) is None
        assert "v3.99.1, below 3.100.0" in capsys.readouterr().err

    def test_one_without_the_language_host_is_passed_over(self, tmp_path: Path, cache: Cache) -> None:
        folder = _commands(tmp_path / "bin", "v3.200.0")
        (folder / "pulumi-language-python").unlink()
        assert pulumi_cli.find_on_path({"PATH": str(folder)}, cache) is None

    def test_a_language_host_elsewhere_on_path_is_found(self, tmp_path: Path, cache: Cache) -> None:
        cli, host = _commands(tmp_path / "a", "v3.200.0"), _commands(tmp_path / "b", "v3.200.0")
        (cli / "pulumi-language-python").unlink()
        found = pulumi_cli.find_on_path({"PATH": f"{cli}:{host}"}, cache)
        assert found is not None
        assert found.bin_dirs == [cli, host]

    def test_what_the_lab_itself_put_on_path_is_not_the_machines(self, cache: Cache) -> None:
        wrappers = _commands(cache.labs / "demo" / "bin", "v3.200.0")
        assert pulumi_cli.find_on_path({"PATH": str(wrappers)}, cache) is None

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("v3.274.1\n", (3, 274, 1)),
            ("3.100.0-alpha.1", (3, 100, 0)),
            ("", None),
            ("not a version", None),
        ],
    )
    def test_versions_are_read(self, text: str, version: tuple[int, int, int] | None) -> None:
        assert pulumi_cli.parse_version(text) == version


class TestOfficialDownload:
    """A download that can't be had is found out, not waited for; one that broke off is an error."""

    def test_an_address_that_refuses_is_not_available(self, server: str) -> None:
        assert not available("http://127.0.0.1:1/pulumi.tar.gz")
        assert not available(f"{server}/missing")

    def test_what_is_there_is_downloaded(self, server: str, tmp_path: Path) -> None:
        assert available(f"{server}/whole")
        download(f"{server}/whole", tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"content"

    def test_what_broke_off_is_refused(self, server: str, tmp_path: Path) -> None:
        with pytest.raises(OSError, match=r"/broken (broke off|failed)"):
            download(f"{server}/broken", tmp_path / "file")

    def test_a_release_archive_gives_all_commands_that_belong_together(self, tmp_path: Path) -> None:
        _commands(tmp_path / "pulumi", "v3.200.0")
        archive = tmp_path / "release.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(tmp_path / "pulumi", "pulumi")
        (tmp_path / "made").mkdir()
        pulumi_cli.unpack_release(archive, tmp_path / "made" / "bin")
        names = sorted(path.name for path in (tmp_path / "made" / "bin").iterdir())
        assert names == ["pulumi", "pulumi-language-python"]

    def test_an_archive_of_something_else_is_refused(self, tmp_path: Path) -> None:
        archive = tmp_path / "other.tar.gz"
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(__file__, "README")
        with pytest.raises(FileNotFoundError, match="holds no `pulumi`"):
            pulumi_cli.unpack_release(archive, tmp_path / "bin")


class TestGo:
    """The compiler is judged by its own version."""

    @pytest.mark.parametrize(
        ("text", "version"),
        [
            ("go version go1.26.8 linux/amd64", (1, 26, 8)),
            ("go version go1.27 linux/arm64", (1, 27)),
            ("", None),
        ],
    )
    def test_versions_are_read(self, text: str, version: tuple[int, ...] | None) -> None:
        assert golang.parse_version(text) == version


class TestPlugin:
    """A plugin is installed into the lab's own home, and again only when it is another one."""

    def test_a_folder_without_the_executable_is_refused_by_name(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"COMMAND_PLUGIN=.* holds no executable pulumi-resource-command"):
            provider_plugin.given({"COMMAND_PLUGIN": str(tmp_path)}, SUBSTITUTE)
        with pytest.raises(ValueError, match=r"AWS_PLUGIN=.* holds no executable pulumi-resource-aws"):
            provider_plugin.given({"AWS_PLUGIN": str(tmp_path)}, aws_plugin.SUBSTITUTE)

    def test_one_in_the_users_own_home_is_the_official_one(self, tmp_path: Path, cache: Cache) -> None:
        _plugin(tmp_path / ".pulumi" / "plugins" / PLUGIN)
        found = provider_plugin.in_pulumi_home({"HOME": str(tmp_path)}, cache, SUBSTITUTE)
        assert found is not None
        assert found.folder == tmp_path / ".pulumi" / "plugins" / PLUGIN
        assert found.sentence == ""

    def test_the_labs_own_home_is_not_the_users(self, cache: Cache) -> None:
        _plugin(cache.pulumi_home / "plugins" / PLUGIN)
        assert provider_plugin.in_pulumi_home({"PULUMI_HOME": str(cache.pulumi_home)}, cache, SUBSTITUTE) is None

    def test_it_is_installed_once_and_again_when_it_changes(
        self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked_for = _plugin(tmp_path / "asked-for")
        monkeypatch.setenv("COMMAND_PLUGIN", str(asked_for))
        log = tmp_path / "installed"
        pulumi = _installing_pulumi(tmp_path / "pulumi", log)

        sentence = provider_plugin.ensure(cache, pulumi, SUBSTITUTE)
        provider_plugin.ensure(cache, pulumi, SUBSTITUTE)
        assert str(asked_for) in sentence
        assert len(log.read_text().splitlines()) == 1

        (asked_for / "more").write_text("newer")
        provider_plugin.ensure(cache, pulumi, SUBSTITUTE)
        assert len(log.read_text().splitlines()) == 2

    def test_one_that_was_deleted_is_installed_again(
        self, tmp_path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COMMAND_PLUGIN", str(_plugin(tmp_path / "asked-for")))
        log = tmp_path / "installed"
        pulumi = _installing_pulumi(tmp_path / "pulumi", log)
        provider_plugin.ensure(cache, pulumi, SUBSTITUTE)
        (cache.pulumi_home / "plugins" / PLUGIN / "pulumi-resource-command").unlink()
        provider_plugin.ensure(cache, pulumi, SUBSTITUTE)
        assert len(log.read_text().splitlines()) == 2


class TestEnvironment:
    """A pulumi command of this project gets its own environment and home."""

    def test_the_projects_python_comes_before_pulumi_and_all_else(self, tmp_path: Path) -> None:
        toolchain = Toolchain([tmp_path / "bin"], tmp_path / "home", [], "")
        environment = toolchain.environment({"PATH": "/usr/bin", "PULUMI_HOME": "/mine", "LANG": "C"})
        first, second, rest = environment["PATH"].split(":")
        assert first.endswith("/.venv/bin")
        assert (second, rest) == (str(tmp_path / "bin"), "/usr/bin")
        assert environment["PULUMI_HOME"] == str(tmp_path / "home")
        assert environment["LANG"] == "C"


@pytest.fixture
def server() -> Generator[str, None, None]:
    with HTTPServer(("127.0.0.1", 0), _Downloads) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            http.shutdown()
            thread.join()


class _Downloads(BaseHTTPRequestHandler):
    """Serves /whole, and /broken, which ends before its promised length."""

    def do_HEAD(self) -> None:
        self._head()

    def do_GET(self) -> None:
        self._head()
        self.wfile.write(b"content")

    def _head(self) -> None:
        length = {"/whole": 7, "/broken": 700}.get(self.path)
        self.send_response(404 if length is None else 200)
        self.send_header("Content-Length", str(length or 0))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the name of the base class)
        """Says nothing."""


def _commands(folder: Path, version: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("pulumi", "pulumi-language-python"):
        _executable(folder / name, f"#!/bin/sh\necho {version}\n")
    return folder


def _plugin(folder: Path) -> Path:
    folder.mkdir(parents=True)
    _executable(folder / "pulumi-resource-command", "#!/bin/sh\n")
    return folder


def _installing_pulumi(path: Path, log: Path) -> Path:
    """A `pulumi` that notes each `plugin install … --file FOLDER` and does it."""
    target = f'"$PULUMI_HOME/plugins/{PLUGIN}"'
    _executable(
        path,
        f'#!/bin/sh\nset -e\necho "$*" >>{log}\nfor last; do :; done\nmkdir -p {target}\ncp -R "$last/." {target}\n',
    )
    return path


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
