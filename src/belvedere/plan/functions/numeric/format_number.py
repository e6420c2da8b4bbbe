"""to_char and to_number for numbers: the digit patterns 9 0 . , D G FM S MI PL SG PR.

Other patterns (V, EEEE, RN, L, TH) raise `Unsupported` by name.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from decimal import Decimal

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan.functions.core.function import UDF, Function, stable
from belvedere.values.decimals import parse_numeric, round_to_scale
from belvedere.values.failures import bad_argument, require_template_length

_TOKEN = re.compile(r'"[^"]*"?|FM|MI|PL|SG|PR|EEEE|RN|TH|[90.,DGSVLB]|.', re.DOTALL | re.IGNORECASE)
_UNSUPPORTED = {"V", "EEEE", "RN", "TH", "L", "B"}


@dataclass(frozen=True, slots=True)
class _NumberTemplate:
    """A digit template: its tokens, and the counts and sign that to_char needs in advance."""

    tokens: tuple[str, ...]
    before: int  # digits before the point
    after: int
    fill: bool
    zero_from: int  # from this digit position on zeros are shown
    fraction_min: int  # digits after the point that FM keeps
    sign: str  # S, MI, PL, SG, PR or empty
    sign_first: bool


@functools.lru_cache(maxsize=256)
def _parse_template(pattern: str) -> _NumberTemplate:
    require_template_length(pattern)
    tokens: list[str] = []
    for token in _TOKEN.findall(pattern):
        upper = token.upper()
        if upper in _UNSUPPORTED:
            raise Unsupported("this number template pattern is not supported", pattern=token)
        known = upper in ("9", "0", ".", ",", "D", "G", "FM", "S", "MI", "PL", "SG", "PR")
        if not known:
            raise Unsupported("literal text in a number template is not supported", pattern=token)
        tokens.append({"D": ".", "G": ","}.get(upper, upper))
    signs = [token for token in tokens if token in ("S", "MI", "PL", "SG", "PR")]
    if len(signs) > 1 or tokens.count(".") > 1:
        raise InvalidInput("invalid number template", sqlstate="42601", pattern=pattern)
    if signs and signs[0] in ("PL", "SG"):
        raise Unsupported("this number template pattern is not supported", pattern=signs[0])
    point = tokens.index(".") if "." in tokens else len(tokens)
    digits_before = [token for token in tokens[:point] if token in "90"]
    digits_after = [token for token in tokens[point:] if token in ("9", "0")]
    zero_from = digits_before.index("0") if "0" in digits_before else len(digits_before)
    kept = max((i + 1 for i, token in enumerate(digits_after) if token == "0"), default=0)
    body = tuple(token for token in tokens if token not in ("FM", "S", "MI", "PR"))
    if signs and signs[0] == "S" and tokens.index("S") not in (0, len(tokens) - 1):
        if not (tokens[0] == "FM" and tokens.index("S") == 1):
            raise Unsupported("a sign inside a number template is not supported", pattern=pattern)
    if signs and signs[0] == "MI" and tokens.index("MI") not in (0, len(tokens) - 1):
        raise Unsupported("a sign inside a number template is not supported", pattern=pattern)
    sign_first = bool(signs) and tokens.index(signs[0]) <= (1 if "FM" in tokens[:1] else 0)
    return _NumberTemplate(
        body, len(digits_before), len(digits_after), "FM" not in tokens, zero_from, kept,
        signs[0] if signs else "", sign_first,
    )  # fmt: skip


def format_number(value: Decimal, pattern: str) -> str:
    template = _parse_template(pattern)
    if not value.is_finite():
        raise Unsupported("to_char of a number that is not finite is not supported")
    shown = round_to_scale(value, template.after)
    return _lay_out_number(shown, shown < 0, template)


def _lay_out_number(value: Decimal, negative: bool, template: _NumberTemplate) -> str:
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    digits = whole.lstrip("0")
    overflow = len(digits) > template.before
    if overflow:
        digits, fraction = "#" * template.before, "#" * template.after
    elif not digits and template.before and not _visible_fraction(fraction, template):
        digits = "0"
    body = _place_digits(digits, fraction, template, overflow)
    return _add_sign(body, negative, template)


def _visible_fraction(fraction: str, template: _NumberTemplate) -> str:
    """The digits shown after the point; FM drops zeros behind the last 0 of the pattern."""
    if template.fill:
        return fraction
    return fraction[: max(len(fraction.rstrip("0")), template.fraction_min)]


def _place_digits(digits: str, fraction: str, template: _NumberTemplate, overflow: bool) -> str:
    out: list[str] = []
    lead = template.before - len(digits)
    place = 0
    shown = False
    shown_fraction = fraction if overflow else _visible_fraction(fraction, template)
    at = 0
    for token in template.tokens:
        if token == ".":
            out.append(".")
            place = template.before
        elif token == ",":
            out.append("," if shown else " ")
        elif place < template.before:
            if place >= lead:
                out.append(digits[place - lead])
                shown = True
            elif place >= template.zero_from:
                out.append("0")
                shown = True
            else:
                out.append(" ")
            place += 1
        else:
            out.append(shown_fraction[at] if at < len(shown_fraction) else "")
            at += 1
    return "".join(out)


def _add_sign(body: str, negative: bool, template: _NumberTemplate) -> str:
    stripped = body.lstrip(" ")
    blanks = body[: len(body) - len(stripped)]
    if template.sign == "PR":
        text = f"<{stripped}>" if negative else f" {stripped} "
        text = blanks + text
    elif template.sign == "S":
        mark = "-" if negative else "+"
        text = blanks + mark + stripped if template.sign_first else body + mark
    elif template.sign == "MI":
        mark = "-" if negative else " "
        text = mark + body if template.sign_first else body + mark
    else:
        text = blanks + ("-" if negative else " ") + stripped
    return text if template.fill else text.replace(" ", "")


def format_int4(value: int, pattern: str) -> str:
    return format_number(Decimal(value), pattern)


def format_float8(value: float, pattern: str) -> str:
    return _format_float(value, pattern, 15)


def format_float4(value: float, pattern: str) -> str:
    return _format_float(value, pattern, 6)


def _format_float(value: float, pattern: str, digits: int) -> str:
    template = _parse_template(pattern)
    if not math.isfinite(value):
        raise Unsupported("to_char of a number that is not finite is not supported")
    whole = len(f"{abs(value):.0f}")
    if whole + template.after > digits:
        raise Unsupported("to_char of a float with more digits than it has is not supported")
    shown = parse_numeric(f"{value:.{template.after}f}")
    # A float keeps the sign of its zero.
    return _lay_out_number(shown, math.copysign(1.0, value) < 0, template)


_NUMBER = re.compile(r"\s*([-+]?)\s*([0-9,]*)(?:\.([0-9]*))?([-+]?)\s*")


def to_number(text: str, pattern: str) -> Decimal:
    """Read a plain number in the layout of the template; any other text is refused."""
    template = _parse_template(pattern)
    match = _NUMBER.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        if not re.search("[0-9]", text):
            raise bad_argument("invalid input syntax for type numeric", "22P02")
        raise _unsupported_text(text)
    sign, whole, fraction, trailing = match.groups(default="")
    digits = whole.replace(",", "")
    if len(digits) > template.before or len(fraction) > template.after:
        raise _unsupported_text(text)
    if (whole != digits and "," not in template.tokens) or (
        trailing and template.sign not in ("S", "MI")
    ):
        raise _unsupported_text(text)
    minus = "-" if "-" in (sign, trailing) else ""
    return parse_numeric(f"{minus}{digits or '0'}" + (f".{fraction}" if fraction else ""))


def _unsupported_text(text: str) -> Unsupported:
    return Unsupported("to_number of this text is not supported", text=text)


FUNCTIONS: tuple[Function, ...] = (
    stable("to_char(int4,text) text", format_int4, UDF),
    stable("to_char(int8,text) text", format_int4, UDF),
    stable("to_char(numeric,text) text", format_number, UDF),
    stable("to_char(float4,text) text", format_float4, UDF),
    stable("to_char(float8,text) text", format_float8, UDF),
    stable("to_number(text,text) numeric", to_number),
)
