"""In place of `__main__.py`: many trivial commands on the edges, each logging in as the program's own commands do."""

import pulumi
from pulumi_command import remote

from components.failure import Explanations
from components.host import make_host
from config.load import load

LOGINS = 32

settings = load()
explanations = Explanations()
hosts = [host for edge in settings.cluster.edges if (host := make_host(settings, edge, {}, explanations)) is not None]
commands = [
    remote.Command(
        f"login-{index}",
        connection=hosts[index % len(hosts)].connection,
        create="hostname",
        add_previous_output_in_env=False,
        logging=remote.Logging.NONE,
    )
    for index in range(LOGINS)
]
pulumi.export("hosts", [command.stdout for command in commands])
