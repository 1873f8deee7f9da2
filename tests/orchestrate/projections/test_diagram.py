"""A flow as it is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from flyball.core.flow import FlowNode
from flyball.orchestrate.projections.diagram import DiagramNode, diagram
from tests.orchestrate.test_flow_machine import World, leaf, trees
from tests.orchestrate.test_flow_machine import flow as flow_of


def leaves(node: DiagramNode) -> list[DiagramNode]:
    return [one for step in node.steps for one in leaves(step)] if node.steps else [node]


@given(trees, st.data())
def test_each_step_stands_as_the_flow_says(flow: FlowNode, data: DataObject) -> None:
    world = World(flow)
    while True:
        drawn, state = diagram(world.state), world.state
        by_path = {one.path: one for one in leaves(drawn)}
        assert len(by_path) == len(leaves(drawn))
        running = {path for path, one in by_path.items() if one.standing == "running"}
        assert running == (set(state.ready) if state.at != "done" else set())
        for path, ended in state.ended.items():
            if path in by_path and path not in state.ready:
                assert by_path[path].standing == ("done" if ended.error is None else "failed")
        if state.at == "done":
            assert drawn.standing != "running"
            return
        if state.at == "end":
            world.end()
        else:
            world.offer(world.answer(data.draw(st.sampled_from(world.steps()))))


def test_a_step_that_is_under_way_has_the_loops_that_were_begun_for_it() -> None:
    world = World(flow_of(leaf("next"), leaf("next")))
    drawn = diagram(world.state)
    assert [one.standing for one in leaves(drawn)] == ["running", "later"]
    assert drawn.standing == "running"
    (step,) = world.steps()
    world.offer(world.answer(step))
    first, second = leaves(diagram(world.state))
    assert (first.standing, first.output, first.took) == ("done", "4", 0.0)
    assert second.standing == "running"
