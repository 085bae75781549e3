"""A cluster whose hosts have their public addresses in IPv6, and all programs in a folder of their own.

Three hosts on the public segment serve all tests, in the order they stand. Nothing is downloaded: the settings name
files on the hosts only.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from lab import ipv6
from lab.stack import Stack
from lab.toolchain.atomic import digest_of_file
from lab.toolchain.mirror import LOCKS
from tests.lab.cluster_fixtures import failed, lab_with_stack, ok

pytestmark = pytest.mark.long  # a cluster of its own

HOSTS = ("bootstrap", "cloud-1", "cloud-2")
FOLDER = "/srv/mirror"
LOCK = LOCKS / "ray.txt"

# Fills the folder as an operator would: from a mirror, once.
FILL = r"""
import re, sys, urllib.request as r
from pathlib import Path
folder, *urls = sys.argv[1:]
Path(folder, "wheels").mkdir(parents=True)
page = r.urlopen(urls[-1]).read().decode()
wheels = [urls[-1] + name for name in re.findall(r'href="([^"]+\.whl)"', page)]
for url in [*urls[:-1], *wheels]:
    name = r.unquote(url.rpartition("/")[2])
    target = Path(folder, "wheels", name) if name.endswith(".whl") else Path(folder, name)
    target.write_bytes(r.urlopen(url).read())
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-ipv6", edges=0, clouds=2) as stack:
        addresses = ipv6.enable(stack.lab.lab)
        cluster = stack.lab.inventory()["cluster"]
        releases = [cluster["overlay"]["easytier"], cluster["ray"]["uv"]]
        urls = [each["url"].replace("{version}", each["version"]).replace("{arch}", "x86_64") for each in releases]
        for host in HOSTS:
            filled = [*(urls if host != "bootstrap" else urls[:1]), cluster["ray"]["find_links"]]
            ok(stack.lab.exec(host, "python3", "-c", FILL, FOLDER, *filled, limit=300))

            ok(stack.lab.exec(host, "tee", f"{FOLDER}/ray.txt", stdin=LOCK.read_text()))

        def edit(cluster: dict[str, Any]) -> None:
            cluster["ssh"]["connect_timeout"] = 10
            cluster["bootstrap"]["ssh"]["address"] = addresses["bootstrap"]
            for node in cluster["cloud"]:
                node["ssh"]["address"] = node["public_address"] = addresses[node["name"]]
            # Host keys are pinned, but for one.
            del cluster["cloud"][1]["ssh"]["host_key"]
            cluster["overlay"]["easytier"]["url"] = f"file://{FOLDER}/easytier-linux-{{arch}}-v{{version}}.zip"
            cluster["ray"]["uv"]["url"] = f"file://{FOLDER}/uv-{{arch}}-unknown-linux-musl.tar.gz"
            cluster["ray"]["find_links"] = f"{FOLDER}/wheels"
            cluster["ray"]["lock"] = {"url": f"file://{FOLDER}/ray.txt", "sha256": digest_of_file(LOCK)}

        stack.change(edit)
        yield stack


class TestFiles:
    """What is not in the folder, or is another file, is named with the host."""

    def test_a_file_that_is_missing(self, stack: Stack) -> None:
        file = ok(stack.lab.exec("cloud-2", "sh", "-c", f"ls {FOLDER}/easytier-*.zip")).strip()
        ok(stack.lab.exec("cloud-2", "mv", file, f"{file}.away"))
        told = failed(stack, "up", "--yes", "--skip-preview")
        ok(stack.lab.exec("cloud-2", "mv", f"{file}.away", file))
        assert f"cloud-2: EasyTier 2.6.4 can't be copied from {file}; put the file there on this host" in told
        assert stack.lab.exec("cloud-2", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
        # The others' work is done and stays; the next `up` goes on from there.
        ok(stack.lab.exec("bootstrap", "test", "-x", "/opt/rlinf-cloud-edge/libexec/overlay.sh"))

    def test_a_wheel_that_is_not_the_locked_one(self, stack: Stack) -> None:
        wheel = ok(stack.lab.exec("cloud-2", "sh", "-c", f"ls {FOLDER}/wheels/attrs-*.whl")).strip()
        ok(stack.lab.exec("cloud-2", "cp", "-p", wheel, f"{wheel}.away"))
        script = "import sys, zipfile; zipfile.ZipFile(sys.argv[1], 'a').comment = b'another'"
        ok(stack.lab.exec("cloud-2", "python3", "-c", script, wheel))
        told = failed(stack, "up", "--yes", "--skip-preview")
        ok(stack.lab.exec("cloud-2", "mv", f"{wheel}.away", wheel))
        assert "cloud-2: Ray 2.60.0 can't be installed; check cluster.ray.index_url, find_links or lock" in told
        assert "Hash mismatch for `attrs==" in told
        assert stack.lab.exec("cloud-2", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1

    def test_the_host_without_a_pinned_key_is_warned_of_with_a_command_that_prints_it(self, stack: Stack) -> None:
        told = stack.pulumi("preview")
        command = "ssh-keyscan -t ed25519 2001:db8::11"
        assert "cloud-2: no ssh.host_key, so another machine could pose as [2001:db8::11]:22." in told
        assert command in told
        printed = ok(stack.lab.run(*command.split()))
        second = stack.lab.inventory()["cluster"]["cloud"][1]
        assert printed.strip() == f"2001:db8::11 {second['ssh']['host_key']}"


class TestTheCluster:
    """The gate opens, over IPv6 and without a download."""

    def test_up_passes_the_gate(self, stack: Stack) -> None:
        stack.up()
        assert stack.outputs()["overlay_ips"] == {
            "bootstrap": "10.10.0.1", "cloud-1": "10.10.0.10", "cloud-2": "10.10.0.202",
        }  # fmt: skip

    def test_easytier_connects_over_ipv6(self, stack: Stack) -> None:
        assert 'uri = "tcp://[2001:db8::5]:11010"' in ok(
            stack.lab.exec("cloud-1", "cat", "/etc/rlinf-cloud-edge/easytier.toml")
        )
        connections = ok(stack.lab.exec("bootstrap", "ss", "-Htn", "state", "established", "sport", "=", ":11010"))
        assert "[2001:db8::10]:" in connections
        assert "203.0.113." not in connections

    def test_nothing_was_asked_of_the_mirror(self, stack: Stack) -> None:
        log = stack.lab.lab.files.mirror_log
        before = log.read_text()
        stack.pulumi("destroy", "--yes", "--skip-preview")
        stack.up()
        assert log.read_text() == before

    def test_the_ssh_config_reaches_hosts_at_ipv6_addresses(self, stack: Stack, tmp_path: Any) -> None:
        file = tmp_path / "ssh_config"
        file.write_text(stack.pulumi("stack", "output", "ssh_config"))
        done = stack.lab.run("/usr/bin/ssh", "-F", str(file), "-o", "BatchMode=yes", "cloud-1", "hostname")
        assert ok(done) == "cloud-1\n"

    def test_destroy_leaves_nothing(self, stack: Stack) -> None:
        stack.pulumi("destroy", "--yes", "--skip-preview")
        for host in HOSTS:
            assert stack.lab.exec(host, "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
