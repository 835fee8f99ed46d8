# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Leaves of expressions: numbers, arguments, slices of tensors, gathers."""

import math
import random

from meaning import BAND, FLOATS, INTEGERS, POSTFIX, Node, count, limits, listed, places, rounded, strides, zero


class Leaves:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.given, self.wanted, self.sizes = {}, {}, []
        self.inputs = {}  # name -> (type, shape)
        self.scalars = {}
        self.names = []  # Nodes that are names
        self.buffers, self.tensors = [], []
        self.lets = []  # what stands in front of the statement that is drawn
        self.functions, self.made = [], 0
        self.closed = False  # in a function, which sees its parameters alone
        self.B = self.rng.choice([1, 2, 3])
        self.by_hand = self.rng.random() < 0.4  # a kernel that orders its accesses itself

    def fresh(self, letter):
        self.made += 1
        return f"{letter}{self.made}_"  # no name of a type

    def inside(self, node, level):
        return f"({node.text})" if node.level < level or self.rng.random() < 0.05 else node.text

    def number(self, of):
        rng = self.rng
        if of == "bool":
            return rng.random() < 0.5
        if of in INTEGERS:
            low, high = limits(of)
            return rng.choice([rng.randint(low, high), rng.randint(max(low, -9), 9), rng.choice([low, high, 0, 1, high - 1])])
        kind = rng.random()
        if kind < 0.6:
            return rounded(of, rng.choice([rng.randint(-9, 9), rng.gauss(0, 1), rng.gauss(0, 30)]))
        if kind < 0.95:
            return rounded(of, rng.gauss(0, 1) * 2.0 ** rng.randint(-12, 12))
        return rng.choice([math.inf, -math.inf, math.nan, 0.0, -0.0, rounded(of, 2.0 ** -14 / 3)])

    def literal(self, of):
        """A number whose type the context says, as it stands beside another value."""
        rng = self.rng
        if of == "bool":
            value = rng.random() < 0.5
            return str(value).lower(), value
        if of in INTEGERS:
            low, high = limits(of)
            value = min(max(rng.choice([rng.randint(0, 9), rng.randint(0, 100), high]), low), min(high, 2**63 - 1))
            text = rng.choice([str(value), hex(value), bin(value)])
            if rng.random() < 0.2 and value < 100:
                a = rng.randint(0, value)
                return f"({a} + {value - a})", value
            return text, value
        value = rng.choice([float(rng.randint(0, 16)), rng.randint(0, 64) / 8])
        return (str(int(value)) if value == int(value) and rng.random() < 0.5 else str(value)), value

    def constant(self, of, shape):
        text, value = self.literal(of)
        if shape and self.rng.random() < 0.5:
            return Node(f"full({of}({text}), {of}, {listed(shape)})", POSTFIX, of, shape, lambda env: [value] * count(shape))
        node = Node(f"{of}({text})" if of != "bool" else text, POSTFIX, of, (), lambda env: [value])
        return node if not shape else self.grown(node, shape)

    def grown(self, node, shape):
        """A scalar as a tile."""
        text = f"full({node.text}, {node.of}, {listed(shape)})"
        return Node(text, POSTFIX, node.of, shape, node.spread(shape))

    def tensor(self, of, shape):
        """The name of one that has nearly this shape, behind the number of the tile; None: there are enough."""
        names = [n for n, (o, s) in self.inputs.items() if o == of and len(s) == len(shape)]
        if names and self.rng.random() < 0.7:
            name = self.rng.choice(names)
        elif len(self.inputs) > 12:
            return None
        else:
            name = f"X{len(self.inputs)}"
            size = [max(1, s + self.rng.choice([0, 0, 0, 1, 3, -1])) for s in shape]
            self.inputs[name] = (of, tuple(size))
            total = self.B * count(size)
            self.given[name] = (of, [self.number(of) for _ in range(total)], (self.B, *size))
        return name

    def begin(self):
        """Where a slice begins: a number, or one that is known when the kernel runs."""
        rng = self.rng
        number = rng.choice([0, 0, 1, 2, -1, -2])
        how = rng.random()
        if how < 0.6:
            return str(number), lambda env: number
        if how < 0.8:
            by = rng.choice([1, 2, -1])
            return (f"b * {by} + {number}" if number >= 0 else f"{number} + b * {by}"), lambda env: env["b"] * by + number
        variables = [n for n in self.names if n.text.startswith("r")]
        if variables:
            r = rng.choice(variables)
            return f"{r.text} + {abs(number)}", lambda env: env[r.text][0] + abs(number)
        at = self.argument("s_at", rng.randint(-2, 3))
        return f"s_at + {abs(number)}", lambda env: at + abs(number)

    def argument(self, name, number):
        """A number of the launch, that of the first call."""
        if name not in self.scalars:
            self.scalars[name] = number
            self.sizes.append(f"{name}={number}")
        return self.scalars[name]

    def slice(self, shape, limited=True, starts=True):
        """Indices for dimensions of the given sizes: texts, a list of functions from env to indices, and limits."""
        rng = self.rng
        parts, at, limits_of = [], [], []
        for want in shape:
            text, f = self.begin() if starts else ("0", lambda env: 0)
            known = text.lstrip("-").isdigit()
            step, limit = rng.choice([1, 1, 1, 2, 3]), None
            if step > 1:
                number = int(text) if known else None
                parts.append(f"{text}:+{want}:{step}" if not known or rng.random() < 0.5 or number < 0 else
                             f"{text}:{number + (want - 1) * step + 1}:{step}")
            elif known and rng.random() < 0.3 and int(text) >= 0:
                parts.append(f"{text}:{int(text) + want}")
            elif limited and rng.random() < 0.15:
                size = self.size()
                limit = size
                parts.append(f"{text}:+min({size.text}, {want})")
            else:
                parts.append(f"{text}:+{want}")
            at.append(lambda env, j, f=f, step=step: f(env) + j * step)
            limits_of.append(limit)
        return parts, at, limits_of

    def size(self):
        """A number of elements that is known when the kernel runs."""
        if self.rng.random() < 0.5:
            return Node("b", POSTFIX, "i64", (), lambda env: [env["b"]])
        value = self.argument("s_size", self.rng.randint(0, 9))
        return Node("s_size", POSTFIX, "i64", (), lambda env: [value])

    def load(self, of, shape):
        """A slice of a tensor, whose outside is 0 or what is stated, masked or not."""
        rng = self.rng
        name = self.tensor(of, shape)
        if not name:
            return self.constant(of, shape)
        size = self.inputs[name][1]
        steps, numbers, each = strides(size), self.given[name][1], count(size)
        parts, at, limits_of = self.slice(shape)
        for i, (have, want) in enumerate(zip(size, shape)):
            if have == want and rng.random() < 0.6:
                parts[i], at[i], limits_of[i] = ":", lambda env, j: j, None
        none = zero(of)
        pad = mask = None
        text = f"{name}[{', '.join(['b'] + parts)}]"
        if rng.random() < 0.2:
            more = ""
            if of != "bool" and rng.random() < 0.7:
                pad = self.value(of, (), 1)
                more += f", pad = {pad.text}"
            if rng.random() < 0.7:
                mask = self.value("bool", shape, 1)
                more += f", mask = {mask.text}"
            text = f"load({text}{more})"

        def ev(env):
            outside = pad.ev(env)[0] if pad else none
            inside = mask.ev(env) if mask else None
            most = [f.ev(env)[0] if f else None for f in limits_of]
            made = []
            for n, place in enumerate(places(shape)):
                where = [f(env, j) for f, j in zip(at, place)]
                there = all(0 <= i < s for i, s in zip(where, size)) and (not mask or inside[n]) and \
                    all(m is None or j < m for m, j in zip(most, place))
                made.append(numbers[env["b"] * each + sum(i * s for i, s in zip(where, steps))] if there else outside)
            return made
        return Node(text, POSTFIX, of, shape, ev)

    def gather(self, of, shape, depth):
        """By index tiles along some axes: one for each, or all together where they broadcast to the shape."""
        rng = self.rng
        name = self.tensor(of, shape)
        if not name:
            return self.constant(of, shape)
        size, rank = self.inputs[name][1], len(shape)
        steps, each, numbers = strides(size), count(size), self.given[name][1]
        none = zero(of)
        together = rng.random() < 0.4
        if together:
            tiles = [self.index_tile(shape if rng.random() < 0.4 else tuple(n if i == j or rng.random() < 0.4 else 1 for j, n in enumerate(shape)),
                                     size[i], depth - 1) for i in range(rank)]
            if any(max(t.shape[i] for t in tiles) != n for i, n in enumerate(shape)):
                return self.leaf(of, shape)
            spread = [t.spread(shape) for t in tiles]
            parts = [t.text for t in tiles]

            def indices(env):
                return list(zip(*(f(env) for f in spread)))
        else:
            axis = rng.randrange(rank)
            index = self.index_tile((shape[axis],), size[axis], depth - 1)
            parts, at, _ = self.slice(shape, limited=False)
            parts[axis] = index.text

            def indices(env):
                rows = index.ev(env)
                return [[rows[j] if i == axis else at[i](env, j) for i, j in enumerate(place)] for place in places(shape)]

        def ev(env):
            return [numbers[env["b"] * each + sum(i * s for i, s in zip(where, steps))]
                    if all(0 <= i < s for i, s in zip(where, size)) else none for where in indices(env)]
        return Node(f"{name}[{', '.join(['b'] + parts)}]", POSTFIX, of, shape, ev)

    def index_tile(self, shape, size, depth):
        """Numbers that are mostly from 0 on and below a size."""
        of = self.rng.choice(["i32", "i32", "i64", "u8", "i16", "u32"])
        x = self.value(of, shape, depth)
        mask = min((1 << max(1, (size - 1).bit_length())) - 1, limits(of)[1])
        return Node(f"({self.inside(x, BAND)} & {mask})", POSTFIX, of, shape, lambda env: [i & mask for i in x.ev(env)])

    def leaf(self, of, shape):
        rng = self.rng
        fits = [n for n in self.names if n.of == of and n.shape == shape]
        if fits and rng.random() < 0.6:
            return rng.choice(fits)
        if of == "i32" and shape and rng.random() < 0.2:
            if len(shape) == 1:
                return Node(f"iota({shape[0]})", POSTFIX, of, shape, lambda env: list(range(shape[0])))
            axis = rng.randrange(len(shape))
            if all(n == 1 or i == axis for i, n in enumerate(shape)):
                tile = self.leaf("i8", shape).text
                word = f"index({tile}, {axis})" if len(shape) != 2 or rng.random() < 0.5 else f"{['rows', 'cols'][axis]}({tile})"
                return Node(word, POSTFIX, of, shape, lambda env: [place[axis] for place in places(shape)])
        if shape and rng.random() < 0.3:
            found = self.fetch(of, shape)
            if found:
                return found
        if shape and rng.random() < 0.8:
            return self.load(of, shape)
        if not shape:
            if of == "i64" and rng.random() < 0.3:
                return rng.choice([Node("B", POSTFIX, of, (), lambda env: [self.B]), Node("b", POSTFIX, of, (), lambda env: [env["b"]])])
            if rng.random() < 0.5 and of != "bool":
                return self.scalar(of)
        return self.constant(of, shape)

    def scalar(self, of):
        name = f"s_{of}"
        if of not in self.scalars:
            value = self.number(of)
            while value != value or (of in FLOATS and math.isinf(value)):
                value = self.number(of)
            self.scalars[of] = value
            self.sizes.append(f"{name}={value!r}")
        value = self.scalars[of]
        return Node(name, POSTFIX, of, (), lambda env: [value])

    def smaller(self, shape):
        """A shape that broadcasts to this one."""
        if not shape or self.rng.random() < 0.5:
            return shape
        if self.rng.random() < 0.4:
            return ()
        return tuple(1 if self.rng.random() < 0.5 else n for n in shape)
