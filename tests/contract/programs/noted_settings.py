"""Reads the settings as the program does, and notes on each host what it read."""

import pulumi
from pulumi_command import remote

from components.failure import Explanations
from components.host import make_host
from config.load import load

settings = load()
explanations = Explanations()
for entry in settings.cluster.nodes:
    host = make_host(settings, entry, {}, explanations)
    assert host is not None, f"{entry.name} is not logged in to"
    note = f"tee -a {entry.env['JOURNAL']} > /dev/null && echo"
    remote.Command(
        f"{host.name}-note",
        connection=host.connection,
        create=f"{note} up-{host.name}",
        delete=f"echo down-{host.name} >> {entry.env['JOURNAL']}",
        stdin=settings.network_secret.apply(lambda secret: secret + chr(10)),
        logging=remote.Logging.NONE,
        add_previous_output_in_env=False,
    )
pulumi.export("network", settings.cluster.overlay and settings.cluster.overlay.network)
