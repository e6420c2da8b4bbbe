"""The value of linear view state: a payload that is set once, and integers that only ever add up.

- u8 form: 0 = amounts of 8 bytes, 1 = amounts of any length
- u16 number of amounts, u32 length of the payload
- form 0: the amounts, i64 each; form 1: u32 length of each amount, then the amounts themselves,
  two's complement
- payload

All little-endian. The shorter form is always taken, so equal states are equal bytes.

The first amount is the number of rows behind the state. It decides emptiness: at zero the state is
gone, and then every other amount must be zero too. Amounts are integers because only they add up to
the same total in any order; `float_to_fixed` makes a float one without losing a bit.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from belvedere.codec.compile import compile_function
from belvedere.errors import Corruption, InvalidInput

_HEAD_BYTES = 7
_head = struct.Struct("<BHI")
_FIXED_BITS = 1074
_FIXED_ONE = 1 << _FIXED_BITS


def encode(payload: bytes, amounts: tuple[int, ...]) -> bytes:
    """The state's bytes."""
    try:
        return short_form(len(amounts)).pack(0, len(amounts), len(payload), *amounts) + payload
    except struct.error:
        return _encode_long(payload, amounts)


def decode(state: bytes) -> tuple[bytes, tuple[int, ...]]:
    """Payload and amounts. Corruption when the bytes are no state."""
    try:
        form, count, length = _head.unpack_from(state)
        if form == 0:
            start = _HEAD_BYTES + 8 * count
            amounts = short_form(count).unpack_from(state)[3:]
        elif form == 1:
            amounts, start = _decode_long(state, count)
        else:
            raise ValueError
        if len(state) != start + length:
            raise ValueError
    except (struct.error, ValueError) as error:
        raise Corruption("view state cannot be decoded", state=state[:64].hex()) from error
    return state[start:], amounts


def add(state: bytes | None, payload: bytes, amounts: tuple[int, ...]) -> bytes | None:
    """The state after adding; None when no row is left. The payload of an existing state stays."""
    known = _adders.get(len(amounts))
    if known is None:
        known = get_adder(len(amounts))
    return known(state, payload, amounts)


Adder = Callable[[bytes | None, bytes, tuple[int, ...]], bytes | None]
_adders: dict[int, Adder] = {}


def get_adder(count: int) -> Adder:
    """`add` for this many amounts."""
    if count not in _adders:
        _adders[count] = _compile_adder(count)
    return _adders[count]


def inline_add(state: str, given: list[str], result: str, name: Callable[[Any], str]) -> list[str]:
    """Lines of generated code that add to a state: they set `result` to the sum, or to None when
    the caller has to use `add` instead. An amount given as "0" stays unchanged. `name` returns the
    variable by which the generated lines refer to an object."""
    count = len(given)
    form, stored = short_form(count), [f"s{i}" for i in range(count)]
    sums = ", ".join(b if a == "0" else f"{b} + {a}" for b, a in zip(stored, given))
    packed = f"{name(form.pack)}(0, {count}, length, {sums}) + {state}[{form.size}:]"
    return [
        f"{result} = None",
        f"if {state} is not None and len({state}) >= {form.size}:",
        f"    form, count, length, {', '.join(stored)} = {name(form.unpack_from)}({state})",
        f"    if not form and count == {count} and s0 + {given[0]} > 0:",
        f"        if len({state}) == {form.size} + length:",
        f"            try: {result} = {packed}",
        f"            except {name(struct.error)}: pass  # too large for eight bytes",
    ]


def _compile_adder(count: int) -> Adder:
    """`add` for this many amounts: straight-line code for what every ordinary addition is, amounts
    of eight bytes and rows left; `_add_general` handles everything else."""
    form = short_form(count)
    stored, given = ([f"{letter}{i}" for i in range(count)] for letter in "ba")
    sums = ", ".join(f"{b} + {a}" for b, a in zip(stored, given))
    body = [
        "try:",
        "    if state is None:",
        "        if amounts[0] > 0:",
        f"            return pack(0, {count}, len(payload), *amounts) + payload",
        f"    elif len(state) >= {form.size}:",
        f"        form, count, length, {', '.join(stored)} = unpack_from(state)",
        f"        {', '.join(given)}, = amounts",
        f"        if not form and count == {count} and b0 + a0 > 0:",
        f"            if len(state) == {form.size} + length:",
        f"                return pack(0, {count}, length, {sums}) + state[{form.size}:]",
        "except struct_error:",
        "    pass  # an amount too large for eight bytes",
        "return slow(state, payload, amounts)",
    ]
    space = {"pack": form.pack, "unpack_from": form.unpack_from}
    return compile_function(
        "add",
        "state, payload, amounts",
        body,
        space | {"struct_error": struct.error, "slow": _add_general},
    )


def _add_general(state: bytes | None, payload: bytes, amounts: tuple[int, ...]) -> bytes | None:
    if state is not None:
        payload, before = decode(state)
        if len(before) != len(amounts):
            raise Corruption(
                "view state has another number of amounts",
                expected=len(amounts),
                found=len(before),
            )
        amounts = tuple(map(int.__add__, before, amounts))
    count = amounts[0]
    if count > 0:
        return encode(payload, amounts)
    if count < 0:
        raise Corruption("view state counts fewer than zero rows", found=count)
    if any(amounts):
        raise Corruption("view state without rows has amounts left", found=amounts)
    return None


def float_to_fixed(value: float) -> int:
    """The float as a whole number of 2**-1074, the smallest step of any float: exact.

    NaN and the infinities have none; they are counted apart.
    """
    try:
        numerator, denominator = value.as_integer_ratio()
    except (ValueError, OverflowError) as error:
        raise InvalidInput("not a finite number", sqlstate="22003", found=value) from error
    return numerator << _FIXED_BITS + 1 - denominator.bit_length()


def fixed_to_float(fixed: int) -> float:
    """The float nearest to the exact total (ties to even)."""
    try:
        return fixed / _FIXED_ONE
    except OverflowError as error:
        raise InvalidInput("value out of range: overflow", sqlstate="22003") from error


@lru_cache(maxsize=256)
def short_form(count: int) -> struct.Struct:
    return struct.Struct(f"<BHI{count}q")


def _encode_long(payload: bytes, amounts: tuple[int, ...]) -> bytes:
    try:
        parts = [
            amount.to_bytes(amount.bit_length() // 8 + 1, "little", signed=True)
            for amount in amounts
        ]
        lengths = struct.pack(f"<{len(parts)}I", *map(len, parts))
        head = _head.pack(1, len(amounts), len(payload))
    except (struct.error, AttributeError) as error:
        raise InvalidInput("view state cannot be encoded", detail=str(error)) from error
    return b"".join((head, lengths, *parts, payload))


def _decode_long(state: bytes, count: int) -> tuple[tuple[int, ...], int]:
    lengths = struct.unpack_from(f"<{count}I", state, _HEAD_BYTES)
    start = _HEAD_BYTES + 4 * count
    amounts = []
    for length in lengths:
        if len(state) < start + length:
            raise ValueError
        amounts.append(int.from_bytes(state[start : start + length], "little", signed=True))
        start += length
    return tuple(amounts), start
