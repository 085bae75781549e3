"""One cloud-edge cluster for RLinf: the table of contents of `pulumi up`."""

import gc

import pulumi

from components.bootstrap_vm import BootstrapVm
from components.checks import equip
from components.cloud_node import CloudNode
from components.cluster import arrived_nodes, open_gate
from components.easytier import join_overlay
from components.edge_host import EdgeHost
from components.failure import Explanations, say_nothing_after_the_engine
from components.join import join_scripts
from components.machines import create_machines, when_there
from components.member import MemberArgs
from components.outputs import Outputs, outputs
from components.plan import make_plan
from components.ray_node import start_ray
from config.load import load

say_nothing_after_the_engine()
# The program lives for one update and leaves hardly any cycles. Looking for them was half of a large preview.
gc.disable()

# Settings: validated before anything is created.
settings = load()
cluster = settings.cluster
plan = make_plan(cluster)

# Hosts: machines that exist, or EC2 instances; from here on nobody cares which.
machines = create_machines(settings)
there = when_there(cluster, machines)
later = there.apply(make_plan)
explanations = Explanations()
args = {
    host.name: MemberArgs(settings, plan, host, plan.member(host.name), machines, later, explanations)
    for host in cluster.hosts
}
bootstraps = [BootstrapVm(args[bootstrap.name]) for bootstrap in cluster.bootstraps]
cloud = [CloudNode(args[node.name]) for node in cluster.cloud]
edges = [EdgeHost(args[edge.name]) for edge in cluster.edges]
nodes = [*cloud, *edges]

# Checks: all hosts, side by side; once every one has passed, each gets its programs.
equip([*bootstraps, *nodes])

# Overlay: EasyTier on the bootstrap, then on every other host in parallel.
overlay = join_overlay([*bootstraps, *nodes])

# Ray: the head, then every other node in parallel.
ray = start_ray(nodes, overlay)

# Gate: the head sees N of N nodes, each with its own rank and overlay IP.
gate = open_gate(nodes, ray)

# Outputs: known only once the gate has opened, so that they are never those of a cluster that does not work.
told = pulumi.Output.all(there, later, gate.stdout).apply(
    lambda known: dict(outputs(known[0], known[1], settings.base_config, arrived_nodes(known[2])))
)
for name in Outputs.__annotations__:
    pulumi.export(name, told[name])
pulumi.export("join_scripts", join_scripts(nodes))
