# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers of all types and what operations on them give, by docs/language.md, and expressions that are computed so."""

import itertools
import math
import struct

INTEGERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
FLOATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
WIDER = {"f16": ["f32", "f64"], "bf16": ["f32", "f64"], "f32": ["f64"]}
for _of, _bits in INTEGERS.items():
    WIDER[_of] = [w for w, b in INTEGERS.items() if b > _bits and (w[0] == _of[0] or w[0] == "i")]
CHOICE, OR, AND, BOR, XOR, BAND, EQUAL, ORDER, SHIFT, SUM, PRODUCT, UNARY, POSTFIX = range(13)
LEVEL = {"*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM, "<<": SHIFT, ">>": SHIFT, "<": ORDER, "<=": ORDER, ">": ORDER,
         ">=": ORDER, "==": EQUAL, "!=": EQUAL, "&": BAND, "^": XOR, "|": BOR, "&&": AND, "||": OR}


def bits_in(of):
    return 8 if of == "bool" else INTEGERS.get(of) or 1 + sum(FLOATS[of])


def limits(of):
    bits = INTEGERS[of]
    return (0, 2**bits - 1) if of[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def wrap(of, x):
    bits = INTEGERS[of]
    x &= 2**bits - 1
    return x - 2**bits if of[0] == "i" and x >> (bits - 1) else x


def exact(x):
    """(n, e) of a finite number n * 2^e."""
    n, d = x.as_integer_ratio()
    return n, 1 - d.bit_length()


def rounded(of, x):
    """The nearest number of a type to a number, or to n * 2^e, ties to even."""
    if isinstance(x, float) and (x == 0 or x - x != 0):
        return x
    n, e = x if isinstance(x, tuple) else exact(x)
    if n == 0:
        return 0.0
    exponents, fraction = FLOATS[of]
    most = (1 << (exponents - 1)) - 1
    size = abs(n)
    unit = max(size.bit_length() + e - 1, 1 - most) - fraction
    lost = unit - e
    if lost > 0:
        half = 1 << (lost - 1)
        kept, rest = size >> lost, size & ((1 << lost) - 1)
        size = kept + (rest > half or (rest == half and kept & 1))
        e = unit
    value = math.inf if size.bit_length() + e > most + 1 else math.ldexp(size, e)
    return -value if n < 0 else value


def times(a, b):
    return a[0] * b[0], a[1] + b[1]


def plus(a, b):
    e = min(a[1], b[1])
    return (a[0] << (a[1] - e)) + (b[0] << (b[1] - e)), e


def bits_of(of, x):
    if of == "bool":
        return int(x)
    if of in INTEGERS:
        return x & (2 ** INTEGERS[of] - 1)
    if of == "bf16":
        return struct.unpack("<I", struct.pack("<f", x))[0] >> 16
    code, shown = {"f16": ("e", "H"), "f32": ("f", "I"), "f64": ("d", "Q")}[of]
    return struct.unpack("<" + shown, struct.pack("<" + code, x))[0]


def number_of(of, bits):
    if of in INTEGERS:
        return wrap(of, bits)
    if of == "bf16":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    code, shown = {"f16": ("e", "H"), "f32": ("f", "I"), "f64": ("d", "Q")}[of]
    return struct.unpack("<" + code, struct.pack("<" + shown, bits))[0]


def cast(to, of, x):
    if of == to:
        return x
    if to == "bool":
        return x != 0
    if to in INTEGERS:
        if of in FLOATS:
            low, high = limits(to)
            return 0 if x != x else low if x <= low else high if x >= high else int(x)
        return wrap(to, int(x))
    return rounded(to, int(x) if of in INTEGERS or of == "bool" else x)


def arithmetic(op, of, a, b):
    if of in INTEGERS:
        if op in "/%":
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            return wrap(of, quotient if op == "/" else a - b * quotient)
        if op == "<<":
            return wrap(of, a << b)
        if op == ">>":
            return a >> b
        return wrap(of, {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}[op])
    if of == "bool":
        return {"&": a and b, "|": a or b, "^": a != b, "&&": a and b, "||": a or b}[op]
    if a != a or b != b:
        return math.nan
    if op == "*":
        if math.isinf(a) or math.isinf(b) or a == 0 or b == 0:
            return a * b
        return rounded(of, times(exact(a), exact(b))) or math.copysign(0.0, a) * math.copysign(1.0, b)
    if math.isinf(a) or math.isinf(b) or (a == 0 and b == 0):
        return a + b if op == "+" else a - b
    return rounded(of, plus(exact(a), exact(b if op == "+" else -b)))


def fma(of, a, b, c):
    if any(x != x or math.isinf(x) for x in (a, b, c)):
        return a * b + c
    return rounded(of, plus(times(exact(a), exact(b)), exact(c)))


def compare(op, a, b):
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[op]


def extreme(word, a, b):
    if a != a or b != b:
        return math.nan
    return min(a, b) if word == "min" else max(a, b)


def places(shape):
    return itertools.product(*map(range, shape))


def strides(shape):
    made, step = [], 1
    for size in reversed(shape):
        made.insert(0, step)
        step *= size
    return made


def count(shape):
    return math.prod(shape)


def listed(shape):
    return ", ".join(map(str, shape))


def lines(shape, axis):
    """The numbers of the elements along an axis, line by line."""
    steps = strides(shape)
    rest = [range(1) if i == axis else range(n) for i, n in enumerate(shape)]
    return [[sum(p * s for p, s in zip(place, steps)) + j * steps[axis] for j in range(shape[axis])] for place in itertools.product(*rest)]


def zero(of):
    return False if of == "bool" else 0 if of in INTEGERS else 0.0


class Node:
    """An expression: its text, the level of its outermost operator, element, shape, and the function from names to its elements."""

    def __init__(self, text, level, of, shape, ev, factors=None):
        self.text, self.level, self.of, self.shape, self.ev, self.factors = text, level, of, tuple(shape), ev, factors

    def spread(self, shape):
        """Its elements, repeated to a shape."""
        shape = tuple(shape)
        if self.shape == shape:
            return self.ev
        if not self.shape:
            return lambda env: self.ev(env) * count(shape)
        steps = [0 if size == 1 else step for size, step in zip(self.shape, strides(self.shape))]
        at = [sum(i * s for i, s in zip(place, steps)) for place in places(shape)]

        def ev(env):
            values = self.ev(env)
            return [values[i] for i in at]
        return ev
