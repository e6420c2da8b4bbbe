"""One changed row, straight to the rows of a view's state: generated for each leg.

A commit of one row is what most writes are, so everything about it that does not depend on the row
is done once, here: the codecs of rows, keys and groups, the partners, the conditions and the
amounts of both sides of an update become one straight-line function over bytes.

    UPDATE of one row, SELECT g, count(*), sum(v) ... GROUP BY g

    a0, b0 = project(old), project(new)            the columns the view uses; the same: done
    ag, aa = (a0[0],), (1, 1, 1, a0[1])            what the old row added
    bg, ba = (b0[0],), (1, 1, 1, b0[1])            what the new one adds
    ag == bg: one addition of ba - aa              else both

It gives what the generic way gives (`Maintainer.writes` through sums). A partner with the same key
is read once for both sides; a payload is made for a row of the state that is new, and only then; a
row that holds the key of the changed one is not read at all.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation import CompiledView, compiled_table
from belvedere.codec import accumulator
from belvedere.codec.compile import indent
from belvedere.execution.direct.expressions import Writer as Texts
from belvedere.execution.direct.source import Source
from belvedere.plan import access as paths
from belvedere.txn.border import Alone
from belvedere.views.entry import entry_text
from belvedere.views.linear import Group
from belvedere.views.quick import Leg, Step, step_texts
from belvedere.views.source import nothing_run


def single_function(catalog: Catalog, leg: Leg, group: Group | None, stored: CompiledView) -> Alone:
    """What a change of one row of the leg's table, all by itself, does to the stored rows."""
    source = Source()
    project = source.constant(leg.project, "project")
    same = "a0 == b0 and repr(a0) == repr(b0)" if leg.disguised else "a0 == b0"
    fetched = [i for i, step in enumerate(leg.steps) if step.scan is not None]
    lines = ["ag = bg = None", *[f"ak{i} = av{i} = None" for i in fetched]]
    lines += ["if old is not None:"]
    lines += indent([f"a0 = {project}(old)", "if new is not None:"])
    lines += indent([f"b0 = {project}(new)", f"if {same}: return"], 2)
    lines += indent(_side(catalog, source, leg, group, "a"))
    lines += ["if new is not None:", f"    if old is None: b0 = {project}(new)"]
    lines += indent(_side(catalog, source, leg, group, "b"))
    lines += _replaced(source, stored) if leg.sole else _additions(source, stored)
    body = ["def alone(old, new, get, rows):", *indent(lines), "return alone"]
    function: Alone = source.function("bind", body)(nothing_run())
    return function


def _side(catalog: Catalog, source: Source, leg: Leg, group: Group | None, side: str) -> list[str]:
    """Lines that set the group and the amounts of one side, a (went) or b (came); where it adds
    nothing they are left without them."""
    texts = step_texts(source, catalog, leg.steps, side)
    lines: list[str] = []
    for number, step in enumerate(leg.steps):
        if step.scan is not None:
            lines += _fetch(catalog, source, texts, step, number, side)
        texts.row = "(" + " + ".join(f"{side}{i}" for i in range(number + 1)) + ")"
        if step.condition is not None:
            lines += [f"if not {texts.truth(step.condition)}: break"]
    lines += [f"{side}g, {side}a = {entry_text(source, texts, group, leg.columns)}", "break"]
    return ["while True:", *indent(lines)]


def _fetch(
    catalog: Catalog, source: Source, texts: Texts, step: Step, number: int, side: str
) -> list[str]:
    """Lines that get a partner by its key, or take the one that the other side found by it."""
    assert step.scan is not None
    table = compiled_table(catalog, step.scan.relation)
    encode = source.constant(table.key.encode, "encode")
    project = source.constant(table.layout.projector(step.scan.slots), "project")
    names, lines = [], []
    for at, part in enumerate(step.parts):
        assert isinstance(part, paths.OnePart)
        names.append(f"{side}p{number}_{at}")
        lines += [f"{names[-1]} = {texts.value(part.value)}", f"if {names[-1]} is None: break"]
    key, value, row = f"{side}k{number}", f"{side}v{number}", f"{side}{number}"
    lines += [f"{key} = {encode}(({', '.join(names)},))"]
    found = [f"{value} = get({key})", f"if {value} is None: break", f"{row} = {project}({value})"]
    if side == "a":
        return lines + found
    known = [f"if av{number} is None: break", f"{row} = a{number}"]
    return [*lines, f"if {key} == ak{number}:", *indent(known), "else:", *indent(found)]


def _replaced(source: Source, stored: CompiledView) -> list[str]:
    """Lines for a row of the state that one row of the table makes and no other: it is there once
    or not at all, so that it is written without a look at it."""
    encode_key = source.constant(stored.key.encode, "encode_key")
    encode_row = source.constant(stored.payload.encode, "encode_row")
    add = source.constant(accumulator.adder(stored.view.amounts), "add")
    return [
        f"key = None if ag is None else {encode_key}(ag)",
        "if bg is not None:",
        f"    other = {encode_key}(bg)",
        "    if other == key: return",
        f"    rows[other] = {add}(None, {encode_row}(bg), ba)",
        "if key is not None: rows[key] = None",
    ]


def _additions(source: Source, stored: CompiledView) -> list[str]:
    """Lines that add what went and what came: of one row of the state it is one addition, so that
    the row is not gone in between."""
    width = stored.view.amounts
    went, came = ([f"{side}{i}" for i in range(width)] for side in "mn")
    encode_key = source.constant(stored.key.encode, "encode_key")
    given = ", ".join
    unpack_went, unpack_came = f"{given(went)}, = aa", f"{given(came)}, = ba"
    minus = "(" + given(f"-{m}" for m in went) + ",)"
    lines = ["if ag is None:", "    if bg is None: return"]
    lines += indent([f"key = {encode_key}(bg)", *_add(source, stored, "bg", "ba"), "return"])
    lines += [f"key = {encode_key}(ag)", unpack_went, "if bg is not None:"]
    lines += indent([f"other = key if ag == bg else {encode_key}(bg)", "if other == key:"])
    net = [f"{m} = {n} - {m}" for m, n in zip(went, came)]
    both = [unpack_came, *net, f"if {' or '.join(went)}:"]
    both += indent(_add(source, stored, "ag", "(" + given(went) + ",)"))
    lines += indent([*both, "return"], 2)
    lines += _add(source, stored, "ag", minus)
    lines += ["if bg is not None:", "    key = other"]
    return [*lines, *indent(_add(source, stored, "bg", "ba"))]


def _add(source: Source, stored: CompiledView, group: str, amounts: str) -> list[str]:
    """Lines that add amounts to the state under `key`, as `DerivedRows.add` does."""
    add = source.constant(accumulator.adder(stored.view.amounts), "add")
    encode_row = source.constant(stored.payload.encode, "encode_row")
    payload = f"{encode_row}({group}) if state is None else b''"
    return [
        "state = rows[key] if key in rows else get(key)",
        f"rows[key] = {add}(state, {payload}, {amounts})",
    ]
