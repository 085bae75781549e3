"""A host that nobody of ours logs in to becomes a node of the cluster, and leaves without a trace."""

from __future__ import annotations

from pathlib import Path

from tests.lab.cluster_fixtures import accounts_on, assert_as_before, files_on, lab_with_stack, ok
from tests.lab.join_fixtures import join_scripts, joining, let_nobody_in, nodes_table, run_as_owner


def test_its_owner_runs_the_script_and_the_gate_then_requires_it(tmp_path: Path) -> None:
    with lab_with_stack(tmp_path, "-script", edges=1) as stack:
        let_nobody_in(stack, 1)
        before = files_on(stack, "edge-1"), accounts_on(stack, "edge-1")
        stack.change(joining({"edge-1": "script"}))
        stack.up()
        assert nodes_table(stack)["edge-1"]["state"] == "pending"
        script = join_scripts(stack)["edge-1"]
        assert run_as_owner(stack, "edge-1", script).returncode == 0
        stack.change(joining({"edge-1": "script"}, joined=True))
        stack.up()
        assert nodes_table(stack)["edge-1"]["state"] == "joined"
        ok(run_as_owner(stack, "edge-1", script, "--down"))
        assert_as_before(stack, "edge-1", before)
