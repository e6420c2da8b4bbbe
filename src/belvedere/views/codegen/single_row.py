"""The single-row fast path of maintenance: a generated function from one changed row to a view's
state.

Most writes are commits of one row, so everything about it that does not depend on the row is done
once, here: the codecs of rows, keys and groups, the partners, the conditions and the amounts of
both sides of an update become one straight-line function over bytes, generated for each look-up
chain.

    UPDATE of one row, SELECT g, count(*), sum(v) ... GROUP BY g

    a0_0, a0_1, b0_0, b0_1 = slots of old and new  the columns the view uses; all equal: return
    ag, am3 = (a0_0,), a0_1                        what the old row added, without constant 1s
    bg, bm3 = (b0_0,), b0_1                        what the new one adds
    ag == bg: one addition of bm3 - am3            else both

The result is that of the generic path (`ViewMaintainer.writes` through sums). A partner with the
same key is read once for both sides; a payload is encoded only for a new row of the state; a state
row that contains the key of the changed row is not read at all.
"""

from __future__ import annotations

from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import CompiledView, compiled_table
from belvedere.codec import accumulator
from belvedere.codec.compile import indent
from belvedere.execution.python.expressions.expression_source import ExpressionWriter as Texts
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.plan import access as paths
from belvedere.txn.contracts import SingleRowWrites
from belvedere.views.codegen.lookup_chain import (
    LookupChain,
    LookupStep,
    build_step_expression_writer,
)
from belvedere.views.codegen.state_entry import ONE_TEXT, generate_group_and_amount_texts
from belvedere.views.delta.linear_aggregates import AggregateGrouping
from belvedere.views.delta.sessionless_run import make_run_without_reader


def compile_single_row_function(
    catalog: Catalog, leg: LookupChain, group: AggregateGrouping | None, stored: CompiledView
) -> SingleRowWrites:
    """The function that applies a change of a single row of the chain's table to the state."""
    source = GeneratedFunction()
    columns = {side: [f"{side}0_{i}" for i in range(len(leg.slots))] for side in "ab"}
    went = leg.layout.inline_decode(leg.slots, "old", columns["a"], source.add_constant)
    came = leg.layout.inline_decode(leg.slots, "new", columns["b"], source.add_constant)
    same = " and ".join(f"{a} == {b}" for a, b in zip(columns["a"], columns["b"])) or "True"
    if leg.varying_representation:
        same += f" and repr({tuple_source(columns['a'])}) == repr({tuple_source(columns['b'])})"
    fetched = [i for i, step in enumerate(leg.steps) if step.scan is not None]
    lines = ["ag = bg = None", *[f"ak{i} = av{i} = None" for i in fetched]]
    lines += ["if old is not None:"]
    lines += indent([*went, "if new is not None:"])
    lines += indent([*came, f"if {same}: return"], 2)
    lines += indent(_generate_old_or_new_row_lines(catalog, source, leg, group, "a"))
    lines += ["if new is not None:"]
    if came:
        lines += ["    if old is None:", *indent(came, 2)]
    lines += indent(_generate_old_or_new_row_lines(catalog, source, leg, group, "b"))
    names = _choose_amount_names(source, leg, group, catalog, stored.view.amounts)
    lines += (
        _generate_replacement_lines(source, stored, names)
        if leg.one_to_one
        else _generate_net_addition_lines(source, stored, names)
    )
    body = ["def alone(old, new, get, rows):", *indent(lines), "return alone"]
    function: SingleRowWrites = source.build_function("bind", body)(make_run_without_reader())
    return function


def _generate_old_or_new_row_lines(
    catalog: Catalog,
    source: GeneratedFunction,
    leg: LookupChain,
    group: AggregateGrouping | None,
    side: str,
) -> list[str]:
    """Lines that set the group and the amounts of one side, a (old row) or b (new row); where the
    side adds nothing they stay unset."""
    texts = _build_side_expression_writer(catalog, source, leg, side)
    first = texts.row
    lines: list[str] = []
    for number, step in enumerate(leg.steps):
        if step.scan is not None:
            lines += _generate_partner_fetch_lines(catalog, source, texts, step, number, side)
        rows = [first, *(f"{side}{i}" for i in range(1, number + 1))]
        texts.row = "(" + " + ".join(rows) + ")"
        if step.condition is not None:
            lines += [f"if not {texts.write_truth(step.condition)}: break"]
    kept, amounts = generate_group_and_amount_texts(source, texts, group, leg.columns, leg.not_null)
    entry = [f"{side}g = {kept}", *_generate_amount_assignments(amounts, side)]
    return ["while True:", *indent([*lines, *entry, "break"])] if lines else entry


def _build_side_expression_writer(
    catalog: Catalog, source: GeneratedFunction, leg: LookupChain, side: str
) -> Texts:
    """A writer of expressions over the columns of the changed row, by name, and over the rows of
    the steps."""
    texts = build_step_expression_writer(source, catalog, leg.steps, side)
    columns, of_steps = [f"{side}0_{i}" for i in range(len(leg.slots))], texts.column
    texts.column = lambda index: columns[index] if index < len(columns) else of_steps(index)
    texts.row = tuple_source(columns)
    return texts


def _generate_amount_assignments(amounts: list[str], side: str) -> list[str]:
    """Lines that set the amounts of a side: each by its own name, without the constant ones."""
    if any(text.startswith("*") for text in amounts):
        return [f"{side}a = {tuple_source(amounts)}"]
    return [f"{side}m{i} = {text}" for i, text in enumerate(amounts) if text != ONE_TEXT]


class _AmountNames(NamedTuple):
    """How generated code names the amounts of both sides."""

    unpacked: dict[str, list[str]]  # by side, lines that unpack a tuple, if there is one
    names: dict[str, list[str]]

    def amounts_tuple_text(self, side: str) -> str:
        return "(" + ", ".join(self.names[side]) + ",)"


def _choose_amount_names(
    source: GeneratedFunction,
    leg: LookupChain,
    group: AggregateGrouping | None,
    catalog: Catalog,
    width: int,
) -> _AmountNames:
    texts = _build_side_expression_writer(catalog, GeneratedFunction(), leg, "a")
    _, amounts = generate_group_and_amount_texts(
        GeneratedFunction(), texts, group, leg.columns, leg.not_null
    )
    if any(text.startswith("*") for text in amounts):
        names = {side: [f"{side}m{i}" for i in range(width)] for side in "ab"}
        return _AmountNames({s: [f"{', '.join(names[s])}, = {s}a"] for s in "ab"}, names)
    names = {
        side: [ONE_TEXT if text == ONE_TEXT else f"{side}m{i}" for i, text in enumerate(amounts)]
        for side in "ab"
    }
    return _AmountNames({"a": [], "b": []}, names)


def _generate_partner_fetch_lines(
    catalog: Catalog,
    source: GeneratedFunction,
    texts: Texts,
    step: LookupStep,
    number: int,
    side: str,
) -> list[str]:
    """Lines that get a partner by its key, or reuse the one that the other side found by it."""
    assert step.scan is not None
    table = compiled_table(catalog, step.scan.relation)
    encode = source.add_constant(table.key.encode, "encode")
    project = source.add_constant(table.layout.projector(step.scan.slots), "project")
    names, lines = [], []
    for at, part in enumerate(step.parts):
        assert isinstance(part, paths.EqualityPart)
        names.append(f"{side}p{number}_{at}")
        lines += [
            f"{names[-1]} = {texts.write_value(part.value)}",
            f"if {names[-1]} is None: break",
        ]
    key, value, row = f"{side}k{number}", f"{side}v{number}", f"{side}{number}"
    lines += [f"{key} = {encode}(({', '.join(names)},))"]
    found = [f"{value} = get({key})", f"if {value} is None: break", f"{row} = {project}({value})"]
    if side == "a":
        return lines + found
    known = [f"if av{number} is None: break", f"{row} = a{number}"]
    return [*lines, f"if {key} == ak{number}:", *indent(known), "else:", *indent(found)]


def _generate_replacement_lines(
    source: GeneratedFunction, stored: CompiledView, names: _AmountNames
) -> list[str]:
    """Lines for a state row that belongs to one row of the table: it exists once or not at all, so
    it is written without being read."""
    encode_row = source.add_constant(stored.payload.encode, "encode_row")
    add = source.add_constant(accumulator.get_adder(stored.view.amounts), "add")
    return [
        f"key = None if ag is None else {stored.key.inline_encode('ag', source.add_constant)}",
        "if bg is not None:",
        f"    other = {stored.key.inline_encode('bg', source.add_constant)}",
        "    if other == key: return",
        *indent(names.unpacked["b"]),
        f"    rows[other] = {add}(None, {encode_row}(bg), {names.amounts_tuple_text('b')})",
        "if key is not None: rows[key] = None",
    ]


def _generate_net_addition_lines(
    source: GeneratedFunction, stored: CompiledView, names: _AmountNames
) -> list[str]:
    """Lines that subtract the old row's amounts and add the new row's: to one state row it is one
    addition, so that the state row is not deleted in between."""
    key_went, key_came = (
        stored.key.inline_encode(group, source.add_constant) for group in ("ag", "bg")
    )
    came = _generate_addition_lines(source, stored, "bg", names.amounts_tuple_text("b"))
    minus = "(" + ", ".join(f"-{name}" for name in names.names["a"]) + ",)"
    lines = ["if bg is not None:", *indent(names.unpacked["b"])] if names.unpacked["b"] else []
    lines += ["if ag is None:", "    if bg is None: return"]
    lines += indent([f"key = {key_came}", *came, "return"])
    lines += [f"key = {key_went}", *names.unpacked["a"], "if bg is not None:"]
    lines += indent([f"other = key if ag == bg else {key_came}", "if other == key:"])
    lines += indent([*_generate_difference_lines(source, stored, names), "return"], 2)
    lines += _generate_addition_lines(source, stored, "ag", minus)
    lines += ["if bg is not None:", "    key = other"]
    return [*lines, *indent(came)]


def _generate_difference_lines(
    source: GeneratedFunction, stored: CompiledView, names: _AmountNames
) -> list[str]:
    """Lines for the most frequent case, an update that stays in its group: the difference."""
    pairs = list(zip(names.names["a"], names.names["b"]))
    net = ["0" if a == b == ONE_TEXT else f"d{i}" for i, (a, b) in enumerate(pairs)]
    changed = [name for name in net if name != "0"]
    if not changed:
        return []
    lines = [f"{d} = {b} - {a}" for d, (a, b) in zip(net, pairs) if d != "0"]
    add = source.add_constant(accumulator.get_adder(stored.view.amounts), "add")
    encode_row = source.add_constant(stored.payload.encode, "encode_row")
    payload = f"{encode_row}(ag) if state is None else b''"
    return [
        *lines,
        f"if {' or '.join(changed)}:",
        "    state = rows[key] if key in rows else get(key)",
        *indent(accumulator.inline_add("state", net, "total", source.add_constant)),
        f"    rows[key] = total or {add}(state, {payload}, ({', '.join(net)},))",
    ]


def _generate_addition_lines(
    source: GeneratedFunction, stored: CompiledView, group: str, amounts: str
) -> list[str]:
    """Lines that add amounts to the state under `key`, as `DerivedRows.add` does."""
    add = source.add_constant(accumulator.get_adder(stored.view.amounts), "add")
    encode_row = source.add_constant(stored.payload.encode, "encode_row")
    payload = f"{encode_row}({group}) if state is None else b''"
    return [
        "state = rows[key] if key in rows else get(key)",
        f"rows[key] = {add}(state, {payload}, {amounts})",
    ]
