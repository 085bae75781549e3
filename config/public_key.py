"""The public key that instances let in, read beside the settings."""

from __future__ import annotations

from pathlib import Path

from config.faults import Fault, SettingsError, shown
from config.models import AwsDefaults, Cluster
from config.rules.ssh import is_public_key


def read_public_key(cluster: Cluster) -> str | None:
    """The public key that instances let in, from the settings or from the file that they name.

    Raises:
        SettingsError: there is none, or EC2 takes no such key.
    """
    shared = cluster.aws or AwsDefaults()
    if shared.key_name is not None or not any(host.aws is not None and not host.lost for host in cluster.hosts):
        return None
    key, given = "cluster.aws.public_key", shared.public_key
    if given is None and cluster.ssh.key_file is not None:
        given = f"{cluster.ssh.key_file}.pub"
    if given is None:
        rule = "instances let in the key that Pulumi logs in with, and its public half is not known"
        fix = "add it: the path of its .pub file, or its text as `ssh-add -L` prints it"
        raise SettingsError([Fault(key, None, rule, fix)])
    text = given
    if not given.startswith(("ssh-", "ecdsa-", "sk-")):
        try:
            text = Path(given).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            rule = f"must be a public key, or a file with one that is readable here: {reason}"
            raise SettingsError([Fault(key, shown(given), rule, "correct the path, or write the key itself")]) from None
    if not (text.startswith(("ssh-ed25519 ", "ssh-rsa ")) and is_public_key(text)):
        rule = "must be an Ed25519 or RSA public key, which are those that EC2 takes"
        raise SettingsError([Fault(key, shown(given), rule, "ssh-keygen -t ed25519 makes one")])
    return text
