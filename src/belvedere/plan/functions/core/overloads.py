"""Overload resolution by PostgreSQL's rules, step by step.

Exact match; else the candidates whose arguments the call's types cast to implicitly; among them the
ones with most exact matches, then most exact or preferred types; then the category vote on unknown
literals; then the assumption that unknowns are of the one known type. None left is 42883, several
left is 42725. A binary operator first assumes that an unknown side has the other side's type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from belvedere.errors import InvalidInput
from belvedere.plan.functions.core.function import Function, Parameter, PseudoType, Types
from belvedere.types import NAMED_OBJECT_KINDS, TEXT, UNKNOWN, Kind, SqlType, array_of

_CATEGORIES = {
    Kind.BOOLEAN: "B",
    Kind.SMALLINT: "N",
    Kind.INTEGER: "N",
    Kind.BIGINT: "N",
    Kind.NUMERIC: "N",
    Kind.REAL: "N",
    Kind.DOUBLE: "N",
    Kind.CHAR: "S",
    Kind.VARCHAR: "S",
    Kind.TEXT: "S",
    Kind.JSON: "U",
    Kind.BYTEA: "U",
    Kind.UUID: "U",
    Kind.DATE: "D",
    Kind.TIME: "D",
    Kind.TIMESTAMP: "D",
    Kind.TIMESTAMPTZ: "D",
    Kind.INTERVAL: "T",
    Kind.ARRAY: "A",
    Kind.OID: "N",
    Kind.REGCLASS: "N",
    Kind.REGTYPE: "N",
    Kind.REGNAMESPACE: "N",
    Kind.REGPROC: "N",
    Kind.RECORD: "P",
    Kind.UNKNOWN: "X",
}
_PREFERRED = {Kind.BOOLEAN, Kind.DOUBLE, Kind.TEXT, Kind.TIMESTAMPTZ, Kind.INTERVAL}

_WIDER = {
    Kind.SMALLINT: {Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE},
    Kind.INTEGER: {Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE},
    Kind.BIGINT: {Kind.NUMERIC, Kind.REAL, Kind.DOUBLE},
    Kind.NUMERIC: {Kind.REAL, Kind.DOUBLE},
    Kind.REAL: {Kind.DOUBLE},
    Kind.CHAR: {Kind.VARCHAR, Kind.TEXT},
    Kind.VARCHAR: {Kind.CHAR, Kind.TEXT},
    Kind.TEXT: {Kind.CHAR, Kind.VARCHAR},
    Kind.DATE: {Kind.TIMESTAMP, Kind.TIMESTAMPTZ},
    Kind.TIMESTAMP: {Kind.TIMESTAMPTZ},
    Kind.TIME: {Kind.INTERVAL},
}
for _kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT):
    _WIDER[_kind] |= {Kind.OID, *NAMED_OBJECT_KINDS}
for _kind in NAMED_OBJECT_KINDS:
    _WIDER[_kind] = {Kind.OID}
_WIDER[Kind.OID] = set(NAMED_OBJECT_KINDS)
for _kind in (Kind.TEXT, Kind.VARCHAR):
    _WIDER[_kind] |= {Kind.REGCLASS}


def without_modifiers(sql_type: SqlType) -> SqlType:
    """The type without its modifiers, which overload resolution does not see."""
    if sql_type.element is not None:
        return array_of(without_modifiers(sql_type.element))
    return SqlType(sql_type.kind)


def casts_implicitly(source: SqlType, target: SqlType) -> bool:
    """Whether PostgreSQL casts `source` to `target` implicitly. Modifiers are ignored."""
    if source.kind is Kind.UNKNOWN:
        return True
    if source.element is not None and target.element is not None:
        return casts_implicitly(source.element, target.element)
    return source.kind is target.kind or target.kind in _WIDER.get(source.kind, ())


def common_type(types: Iterable[SqlType]) -> SqlType | None:
    """The type of CASE, COALESCE, UNION, VALUES, ARRAY[] and anycompatible; None if there is none.

    The first known type wins unless a later one of its category is preferred over it or is
    reached from it implicitly and not the other way round.
    """
    given = list(types)
    if given and all(one == given[0] for one in given) and given[0].kind is not Kind.UNKNOWN:
        return given[0]
    known = [without_modifiers(one) for one in given if one.kind is not Kind.UNKNOWN]
    if not known:
        return TEXT
    best = known[0]
    for one in known[1:]:
        if one == best:
            continue
        if _CATEGORIES[one.kind] != _CATEGORIES[best.kind]:
            return None
        if (
            best.kind not in _PREFERRED
            and casts_implicitly(best, one)
            and not casts_implicitly(one, best)
        ):
            best = one
    return best if all(casts_implicitly(one, best) for one in known) else None


def require_common_type(types: Sequence[SqlType]) -> SqlType:
    """As `common_type`; 42804 for types of different categories, 42846 when there is no cast."""
    found = common_type(types)
    if found is not None:
        return found
    known = [one for one in types if one.kind is not Kind.UNKNOWN]
    mixed = any(_type_category(one) != _type_category(known[0]) for one in known)
    raise InvalidInput(
        "types cannot be matched",
        sqlstate="42804" if mixed else "42846",
        types=", ".join(map(str, types)),
    )


@dataclass(frozen=True, slots=True)
class _OverloadCandidate:
    """An overload that fits: its parameters as declared, and their types in this call."""

    function: Function
    declared: tuple[Parameter, ...]
    concrete: tuple[SqlType | None, ...]


def choose_overload(
    name: str, functions: Sequence[Function], types: Sequence[SqlType]
) -> tuple[Function, Types]:
    """The overload a call means, with its parameter types for these arguments.

    Raises 42883 when no overload fits and 42725 when several fit equally.
    """
    given = [without_modifiers(one) for one in types]
    expanded = [
        (function, parameters)
        for function in functions
        if (parameters := _expand_variadic(function, len(given))) is not None
    ]
    exact = _find_exact(expanded, given)
    if exact is not None:
        return exact
    fitting = [
        _OverloadCandidate(function, parameters, concrete)
        for function, parameters in expanded
        if (concrete := _concrete_parameters(parameters, given)) is not None
    ]
    if len(fitting) > 1:
        fitting = _narrow_candidates(fitting, given)
    if not fitting:
        raise _resolution_error("function does not exist", "42883", name, given)
    if len(fitting) > 1:
        raise _resolution_error("function call is ambiguous", "42725", name, given)
    return fitting[0].function, _require_concrete(fitting[0], name, given)


def _require_concrete(candidate: _OverloadCandidate, name: str, given: list[SqlType]) -> Types:
    settled: list[SqlType] = []
    for one in candidate.concrete:
        if one is None:
            raise _resolution_error("could not determine polymorphic type", "42804", name, given)
        if one.element is not None and one.element.element is not None:
            raise _resolution_error("there are no arrays of arrays", "42704", name, given)
        settled.append(one)
    return tuple(settled)


def choose_operator(
    name: str, functions: Sequence[Function], types: Sequence[SqlType]
) -> tuple[Function, Types]:
    """As `choose_overload`, with the rule that an unknown operand is first taken as the other's
    type."""
    if len(types) == 2 and UNKNOWN in types and types[0] != types[1]:
        known = without_modifiers(types[0] if types[1] == UNKNOWN else types[1])
        exact = _find_exact(
            [(f, f.arguments) for f in functions if len(f.arguments) == 2], [known, known]
        )
        if exact is not None:
            return exact
    return choose_overload(name, functions, types)


def result_type(function: Function, types: Types) -> SqlType:
    """The result's type when the parameters have become `types`."""
    result = function.result
    if isinstance(result, SqlType):
        return result
    found = _polymorphic_result(result, function, types)
    if found.element is not None and found.element.element is not None:
        raise InvalidInput("there are no arrays of arrays", sqlstate="42704", type=str(found))
    return found


def _polymorphic_result(result: PseudoType, function: Function, types: Types) -> SqlType:
    elements, arrays = _pseudo_type_family(result)
    for parameter, given in zip(_expand_variadic(function, len(types)) or (), types):
        if parameter in arrays:
            return given if result in arrays else _element_type(given)
        if parameter in elements:
            return array_of(given) if result in arrays else given
    raise InvalidInput("could not determine polymorphic type", sqlstate="42804")


def _resolution_error(
    message: str, sqlstate: str, name: str, types: Sequence[SqlType]
) -> InvalidInput:
    call = f"{name}({', '.join(str(one) for one in types)})"
    hint = "add explicit type casts to the arguments"
    return InvalidInput(message, sqlstate=sqlstate, hint=hint, call=call)


def _expand_variadic(function: Function, count: int) -> tuple[Parameter, ...] | None:
    parameters = function.arguments
    if len(parameters) == count:
        return parameters
    if not function.variadic or count < len(parameters):
        return None
    return parameters + (parameters[-1],) * (count - len(parameters))


def _find_exact(
    candidates: Sequence[tuple[Function, tuple[Parameter, ...]]], given: list[SqlType]
) -> tuple[Function, Types] | None:
    wanted = tuple(given)
    for function, parameters in candidates:
        if parameters == wanted:
            return function, wanted
    return None


_ELEMENTS = (PseudoType.ANYELEMENT, PseudoType.ANYNONARRAY)
_COMPATIBLE = (PseudoType.ANYCOMPATIBLE, PseudoType.ANYCOMPATIBLENONARRAY)


def _pseudo_type_family(poly: PseudoType) -> tuple[tuple[PseudoType, ...], tuple[PseudoType, ...]]:
    if poly in _ELEMENTS or poly is PseudoType.ANYARRAY:
        return _ELEMENTS, (PseudoType.ANYARRAY,)
    return _COMPATIBLE, (PseudoType.ANYCOMPATIBLEARRAY,)


def _element_type(sql_type: SqlType) -> SqlType:
    assert sql_type.element is not None
    return sql_type.element


def _concrete_parameters(
    parameters: tuple[Parameter, ...], given: list[SqlType]
) -> tuple[SqlType | None, ...] | None:
    """The parameters with pseudo-types resolved (None: undetermined); None if none fits."""
    settled: list[SqlType | None] = []
    element: SqlType | None = None
    compatible: SqlType | None = None
    if any(isinstance(parameter, PseudoType) for parameter in parameters):
        if not _is_consistent(parameters, given):
            return None
        element = _same_element_type(parameters, given)
        compatible = _common_element_type(parameters, given)
    for parameter, one in zip(parameters, given):
        target = _concrete_type(parameter, one, element, compatible)
        if target is not None and not casts_implicitly(one, target):
            return None
        if parameter in (PseudoType.ANYNONARRAY, PseudoType.ANYCOMPATIBLENONARRAY):
            if target is not None and target.element is not None:
                return None
        settled.append(target)
    return tuple(settled)


def _is_consistent(parameters: tuple[Parameter, ...], given: list[SqlType]) -> bool:
    """Whether the known types agree on what each pseudo-type stands for."""
    same: set[SqlType] = set()
    common: list[SqlType] = []
    for parameter, one in zip(parameters, given):
        if one.kind is Kind.UNKNOWN:
            continue
        if parameter in (PseudoType.ANYARRAY, PseudoType.ANYCOMPATIBLEARRAY):
            if one.element is None:
                return False
            (same.add if parameter is PseudoType.ANYARRAY else common.append)(one.element)
        elif parameter in _ELEMENTS:
            same.add(one)
        elif parameter in _COMPATIBLE:
            common.append(one)
    return len(same) < 2 and (not common or common_type(common) is not None)


def _concrete_type(
    parameter: Parameter, given: SqlType, element: SqlType | None, compatible: SqlType | None
) -> SqlType | None:
    if isinstance(parameter, SqlType):
        return parameter
    if parameter is PseudoType.ANY:
        return TEXT if given.kind is Kind.UNKNOWN else given
    chosen = element if parameter in _ELEMENTS or parameter is PseudoType.ANYARRAY else compatible
    if chosen is None:
        return None
    if parameter in (PseudoType.ANYARRAY, PseudoType.ANYCOMPATIBLEARRAY):
        return array_of(chosen)
    return chosen


def _same_element_type(parameters: tuple[Parameter, ...], given: list[SqlType]) -> SqlType | None:
    found: set[SqlType] = set()
    for parameter, one in zip(parameters, given):
        if one.kind is Kind.UNKNOWN:
            continue
        if parameter is PseudoType.ANYARRAY:
            if one.element is None:
                return None
            found.add(one.element)
        elif parameter in _ELEMENTS:
            found.add(one)
    return found.pop() if len(found) == 1 else None


def _common_element_type(parameters: tuple[Parameter, ...], given: list[SqlType]) -> SqlType | None:
    found: list[SqlType] = []
    for parameter, one in zip(parameters, given):
        if parameter is PseudoType.ANYCOMPATIBLEARRAY:
            found.append(one if one.element is None else one.element)
        elif parameter in _COMPATIBLE:
            found.append(one)
    return common_type(found) if found else None


def _type_category(parameter: Parameter) -> str:
    return "P" if isinstance(parameter, PseudoType) else _CATEGORIES[parameter.kind]


def _is_preferred(parameter: Parameter) -> bool:
    return not isinstance(parameter, PseudoType) and parameter.kind in _PREFERRED


def _narrow_candidates(
    candidates: list[_OverloadCandidate], given: list[SqlType]
) -> list[_OverloadCandidate]:
    known = [i for i, one in enumerate(given) if one.kind is not Kind.UNKNOWN]
    candidates = _best_candidates(
        candidates, lambda types: sum(types[i] == given[i] for i in known)
    )
    if len(candidates) == 1:
        return candidates
    candidates = _best_candidates(
        candidates, lambda types: sum(_exact_or_preferred(types[i], given[i]) for i in known)
    )
    if len(candidates) == 1 or len(known) == len(given):
        return candidates
    candidates = _vote_by_category(candidates, [i for i in range(len(given)) if i not in known])
    if len(candidates) == 1 or not known:
        return candidates
    one = given[known[0]]
    if any(given[i] != one for i in known):
        return candidates
    same = [
        c for c in candidates if _concrete_parameters(c.declared, [one] * len(given)) is not None
    ]
    return same if len(same) == 1 else candidates


def _exact_or_preferred(parameter: Parameter, given: SqlType) -> bool:
    if parameter == given:
        return True
    return _is_preferred(parameter) and _type_category(parameter) == _type_category(given)


def _best_candidates(
    candidates: list[_OverloadCandidate], score: Callable[[tuple[Parameter, ...]], int]
) -> list[_OverloadCandidate]:
    scores = [score(candidate.declared) for candidate in candidates]
    top = max(scores)
    return [candidate for candidate, one in zip(candidates, scores) if one == top]


def _vote_by_category(
    candidates: list[_OverloadCandidate], unknown: list[int]
) -> list[_OverloadCandidate]:
    chosen: dict[int, tuple[str, bool]] = {}
    for i in unknown:
        parameters = [candidate.declared[i] for candidate in candidates]
        categories = {_type_category(parameter) for parameter in parameters}
        if len(categories) > 1 and "S" not in categories:
            return candidates
        category = "S" if "S" in categories else categories.pop()
        preferred = any(_is_preferred(p) and _type_category(p) == category for p in parameters)
        chosen[i] = category, preferred
    kept = [
        candidate
        for candidate in candidates
        if all(
            _type_category(candidate.declared[i]) == category
            and (not preferred or _is_preferred(candidate.declared[i]))
            for i, (category, preferred) in chosen.items()
        )
    ]
    return kept or candidates
