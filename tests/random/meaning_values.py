# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Expressions of operators, choices, casts and calls."""

import math

from meaning import BAND, CHOICE, FLOATS, INTEGERS, LEVEL, OR, ORDER, POSTFIX, UNARY, WIDER, Node, arithmetic, cast, compare, count, extreme, fma, limits, listed, wrap
from meaning_sums import Sums


class Values(Sums):
    def operands(self, of, shape, depth):
        """Two nodes that together have the shape and type; one may be a literal."""
        rng = self.rng
        a = self.value(of, shape, depth - 1)
        if rng.random() < 0.25:
            text, value = self.literal(of)
            b = Node(text, POSTFIX, of, (), lambda env: [value])
        else:
            narrow = rng.choice([n for n in WIDER if of in WIDER[n]] or [of]) if rng.random() < 0.15 and of in WIDER else of
            inner = self.value(narrow, self.smaller(shape), depth - 1)
            b = inner
            if narrow != of:
                b = Node(inner.text, inner.level, of, inner.shape, lambda env: [cast(of, narrow, x) for x in inner.ev(env)])
        return (a, b) if rng.random() < 0.5 else (b, a)

    def binary(self, of, shape, depth):
        rng = self.rng
        ops = "&|^" if of == "bool" else "+-*" if of in FLOATS else ["+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"]
        op = rng.choice([*ops, "&&", "||"] if of == "bool" and not shape else list(ops))
        level = LEVEL[op]
        if op in ("<<", ">>", "/", "%"):
            a, inner = self.value(of, shape, depth - 1), self.value(of, self.smaller(shape), depth - 1)
            more, f = (" & 7", lambda x: x & 7) if op in ("<<", ">>") else (" | 1", lambda x: x | 1)
            low = limits(of)[0]
            if op in "/%" and of[0] == "i":  # not the smallest by -1
                more, f = " & 7 | 1", lambda x: x & 7 | 1
            b = Node(f"({self.inside(inner, BAND)}{more})", POSTFIX, of, inner.shape, lambda env: [f(x) for x in inner.ev(env)])
        else:
            a, b = self.operands(of, shape, depth)
        text = f"{self.inside(a, level)} {op} {self.inside(b, level + 1)}"
        x, y = a.spread(shape), b.spread(shape)
        if of in FLOATS and op in "+-":
            if a.factors and a.of == of:
                p, q = (n.spread(shape) for n in a.factors)
                return Node(text, level, of, shape, lambda env: [fma(of, i, j, k if op == "+" else -k) for i, j, k in zip(p(env), q(env), y(env))])
            if b.factors and b.of == of:
                p, q = (n.spread(shape) for n in b.factors)
                return Node(text, level, of, shape, lambda env: [fma(of, i if op == "+" else -i, j, k) for i, j, k in zip(p(env), q(env), x(env))])
        factors = (a, b) if op == "*" and of in FLOATS else None
        return Node(text, level, of, shape, lambda env: [arithmetic(op, of, i, j) for i, j in zip(x(env), y(env))], factors)

    def comparison(self, shape, depth):
        rng = self.rng
        of = rng.choice([*INTEGERS, *FLOATS])
        op = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        a, b = self.operands(of, shape, depth)
        x, y = a.spread(shape), b.spread(shape)
        level = LEVEL[op]
        return Node(f"{self.inside(a, level + 1)} {op} {self.inside(b, level + 1)}", level, "bool", shape,
                    lambda env: [compare(op, i, j) for i, j in zip(x(env), y(env))])

    def unary(self, of, shape, depth):
        rng = self.rng
        a = self.value(of, shape, depth - 1)
        if of == "bool":
            return Node(f"!{self.inside(a, UNARY)}", UNARY, of, shape, lambda env: [not x for x in a.ev(env)])
        if of in INTEGERS:
            bits = INTEGERS[of]
            mask = 2**bits - 1
            word, f = rng.choice([("-", lambda x: wrap(of, -x)), ("~", lambda x: wrap(of, ~x)),
                                  ("abs", lambda x: wrap(of, abs(x))), ("popcount", lambda x: bin(x & mask).count("1")),
                                  ("leading_zeros", lambda x: bits - (x & mask).bit_length()),
                                  ("trailing_zeros", lambda x: bits if not x else (x & -x).bit_length() - 1)])
        else:
            def whole(g):
                return lambda x: x if x != x or math.isinf(x) else math.copysign(float(g(x)), x)
            word, f = rng.choice([("-", lambda x: -x), ("abs", abs), ("floor", lambda x: x if x != x or math.isinf(x) else float(math.floor(x))),
                                  ("ceil", whole(math.ceil)), ("trunc", whole(math.trunc)), ("round", whole(round))])
        if word in "-~":
            inside = self.inside(a, UNARY)
            return Node(f"{word}{inside}", UNARY, of, shape, lambda env: [f(x) for x in a.ev(env)])
        return Node(f"{word}({a.text})", POSTFIX, of, shape, lambda env: [f(x) for x in a.ev(env)])

    def choice(self, of, shape, depth):
        rng = self.rng
        a, b = self.operands(of, shape, depth)
        x, y = a.spread(shape), b.spread(shape)
        if rng.random() < 0.5:
            c = self.value("bool", self.smaller(shape), depth - 1)
            d = c.spread(shape)
            return Node(f"where({c.text}, {a.text}, {b.text})", POSTFIX, of, shape,
                        lambda env: [i if k else j for i, j, k in zip(x(env), y(env), d(env))])
        c = self.condition(depth - 1)
        return Node(f"{self.inside(c, OR)} ? {self.inside(a, OR)} : {self.inside(b, CHOICE)}", CHOICE, of, shape,
                    lambda env: x(env) if c.ev(env)[0] else y(env))

    def condition(self, depth):
        """One that is not known at compile time: of those, only what is chosen counts."""
        if not self.closed:
            c = self.value("bool", (), depth)
            if any(mark in c.text for mark in ("[", "s_", "(m")):
                return c
        a = self.names[0] if self.closed else self.scalar(self.rng.choice(["i32", "f64", "u8"]))
        if a.shape:
            return Node(f"any({a.text} == {a.text})", POSTFIX, "bool", (), lambda env: [any(x == x for x in a.ev(env))])
        text, value = self.literal(a.of)
        return Node(f"{a.text} < {text}", ORDER, "bool", (), lambda env: [a.ev(env)[0] < value])

    def extremes(self, of, shape, depth):
        if of == "bool":
            return self.comparison(shape, depth)
        a, b = self.operands(of, shape, depth)
        x, y = a.spread(shape), b.spread(shape)
        word = self.rng.choice(["min", "max"])
        return Node(f"{word}({a.text}, {b.text})", POSTFIX, of, shape, lambda env: [extreme(word, i, j) for i, j in zip(x(env), y(env))])

    def cast(self, of, shape, depth):
        source = self.rng.choice([*INTEGERS, *FLOATS, "bool"])
        if source == of or (of == "bool"):
            return self.leaf(of, shape)
        a = self.value(source, shape, depth - 1)
        return Node(f"{of}({a.text})", POSTFIX, of, shape, lambda env: [cast(of, source, x) for x in a.ev(env)])

    def call(self, of, shape, depth):
        """A function of elements, whose body is drawn with scalars, on tiles; or of tiles."""
        rng = self.rng
        name = self.fresh("f")
        of_elements = rng.random() < 0.5
        kinds = [rng.choice([of, of, *INTEGERS, *FLOATS]) for _ in range(rng.randint(1, 3))]
        outer, self.names = self.names, []
        inner = () if of_elements else shape
        params = []
        for i, kind in enumerate(kinds):
            key = f"{name}_p{i}"
            self.names.append(Node(key, POSTFIX, kind, inner, lambda env, key=key: env[key]))
            sizes = f"[{listed(shape)}]" if inner else ""
            params.append(f"{key}: {kind}{sizes}")
        self.closed = True
        body = self.value(of, inner, min(depth, 3))
        self.closed, self.names = False, outer
        args = [self.value(kind, shape, depth - 1) for kind in kinds]
        self.functions.append(f"fn {name}({', '.join(params)}) {{ return {body.text}; }}\n")
        order = list(range(len(kinds)))
        shown = [a.text for a in args]
        if rng.random() < 0.3:
            rng.shuffle(order)
            shown = [f"{name}_p{i} = {args[i].text}" for i in order]

        def ev(env):
            values = [a.ev(env) for a in args]
            if not of_elements:
                return body.ev({**env, **{f"{name}_p{i}": v for i, v in enumerate(values)}})
            return [body.ev({**env, **{f"{name}_p{i}": [v[n]] for i, v in enumerate(values)}})[0] for n in range(count(shape))]
        return Node(f"{name}({', '.join(shown)})", POSTFIX, of, shape, ev)

    def of_parameters(self, of, shape, depth):
        """In the body of a function."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            fits = [n for n in self.names if n.of == of and n.shape == shape]
            others = [n for n in self.names if n.shape == shape and n.of != of and of != "bool"]
            if fits or not others:
                return rng.choice(fits) if fits else self.constant(of, shape)
            a = rng.choice(others)
            return Node(f"{of}({a.text})", POSTFIX, of, shape, lambda env: [cast(of, a.of, x) for x in a.ev(env)])
        how = rng.random()
        if of == "bool":
            return self.comparison(shape, depth) if how < 0.7 else self.binary(of, shape, depth)
        way = self.binary if how < 0.55 else self.unary if how < 0.7 else self.choice if how < 0.85 else self.extremes
        return way(of, shape, depth)

    def value(self, of, shape, depth):
        rng = self.rng
        if self.closed:
            return self.of_parameters(of, shape, depth)
        if depth <= 0 or rng.random() < 0.05:
            return self.leaf(of, shape)
        how = rng.random()
        if of == "bool" and how < 0.5:
            return self.comparison(shape, depth)
        ways = [(0.3, self.binary), (0.38, self.unary), (0.46, self.choice), (0.52, self.extremes), (0.6, self.cast),
                (0.76, self.movement if shape else self.reduction), (0.9, self.reduction)]
        if shape:
            ways += [(0.95, self.gather)]
        if shape and depth >= 2 and of != "bool":
            ways += [(1, self.call)]
        way = next((way for most, way in ways if how < most), None)
        return way(of, shape, depth) if way else self.leaf(of, shape)
