"""The commands of hosts.json, made by the program's own `Host`."""

import json
import pathlib

import pulumi
import pulumi_command

from components.failure import Explanations
from components.host import Host

explanations = Explanations()
for name, given in json.loads(pathlib.Path("hosts.json").read_text()).items():
    connection = pulumi_command.remote.ConnectionArgs(**given["connection"])
    host = Host(
        name,
        "nobody",
        given["endpoint"],
        given["identity"],
        connection,
        connect_timeout=5,
        explanations=explanations,
        repair="",
        absent=given["lost"],
    )
    for step in given["steps"]:
        note = f"cat > /dev/null; echo {name}-{step}-"
        up, down = (f"{note}{word} >> {given['journal']}" for word in ("up", "down"))
        host._command(step, up, down, pulumi.Output.secret(given["settings"]), pulumi.ResourceOptions())
