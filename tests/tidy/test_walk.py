"""The walk of a statement: how often it goes from one module to another."""

from __future__ import annotations

from tools.walk import Changes, Walk, count_changes, trace_walks

CREATE_MAX = Changes(modules=1_203, folders=856, parts=495)
"""Before definitions were bound, compiled and planned once: 3,807, 2,103 and 2,010 (folders had no
folders in them then), so that a quarter of the changes of part is left."""


def test_changes_are_counted_between_calls_that_follow_each_other() -> None:
    walk = Walk()
    walk.calls = [
        ("a/b/one", "f"),
        ("a/b/one", "g"),
        ("a/b/two", "f"),
        ("a/c/one", "f"),
        ("d", "f"),
    ]
    assert count_changes(walk) == Changes(modules=3, folders=2, parts=1)


def test_create_view_goes_through_its_stages_once() -> None:
    walks = trace_walks()
    create = walks["CREATE MATERIALIZED VIEW"]
    functions = [function for _, function in create.calls]
    for stage in ("parse_script", "compile_view", "build_delta_terms"):
        assert functions.count(stage) == 1, stage
    for found, most in zip(count_changes(create), CREATE_MAX, strict=True):
        assert found <= most
    assert len(walks["cached INSERT"].calls) < 100
