# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, scans and products."""

import math

from meaning import BAND, FLOATS, INTEGERS, POSTFIX, Node, count, extreme, lines, wrap
from meaning_moves import Moves


class Sums(Moves):
    def reduction(self, of, shape, depth):
        """Along an axis that keeps size 1, or, of a scalar, over everything."""
        rng = self.rng
        if shape and 1 not in shape:
            return self.prefix(of, shape, depth)
        if shape:
            axis = rng.choice([i for i, n in enumerate(shape) if n == 1])
            inner = (*shape[:axis], rng.choice([1, 2, 3, 4, 5, 8, 16, 32]), *shape[axis + 1:])
            rows = lines(inner, axis)
            how = rng.choice([f"axis = {axis}", f"axis = {axis - len(shape)}"])
        else:
            inner = rng.choice([(4,), (3, 5), (2, 3, 4), (32,), (8, 8)])
            rows, how = [list(range(count(inner)))], None
        words = ["min", "max"]
        source = of
        if of in INTEGERS:
            words += ["sum", "prod"]
        if of == "bool":
            words = ["any", "all"]
        if of == "i32" and shape and rng.random() < 0.4:
            words, source = ["argmax", "argmin"], rng.choice([*INTEGERS, *FLOATS, "bool"])
        elif of == "i32" and rng.random() < 0.2:
            words, source = ["sum"], "bool"
        word = rng.choice(words)
        a = self.value(source, inner, depth - 1)

        def combine(values):
            if word in ("min", "max"):
                x = values[0]
                for y in values[1:]:
                    x = extreme(word, x, y)
                return x
            if word == "sum":
                return wrap(of, sum(values))
            if word == "prod":
                return wrap(of, math.prod(values))
            if word in ("any", "all"):
                return any(values) if word == "any" else all(values)
            nans = [i for i, x in enumerate(values) if x != x]
            return nans[0] if nans else values.index(max(values) if word == "argmax" else min(values))

        def ev(env):
            values = a.ev(env)
            return [combine([values[i] for i in line]) for line in rows]
        pair = f", {how}" if how else ""
        return Node(f"{word}({a.text}{pair})", POSTFIX, of, shape, ev)

    def affine(self, of, shape, depth):
        """a1 * x + b1 after a2 * x + b2 ..., a pair along an axis: associative, and not commutative."""
        rng = self.rng
        name = f"affine_{of}"
        text = f"fn {name}(a1: {of}, b1: {of}, a2: {of}, b2: {of}) {{ return a1 * a2, b1 * a2 + b2; }}\n"
        if text not in self.functions:
            self.functions.append(text)
        axis = rng.randrange(len(shape))
        whole = shape[axis] > 1 or rng.random() < 0.5
        inner = shape if whole else (*shape[:axis], rng.choice([1, 2, 3, 5, 8, 16, 33]), *shape[axis + 1:])
        a, b = self.value(of, inner, depth - 1), self.value(of, inner, depth - 1)
        rows = lines(inner, axis)
        one = rng.random() < 0.5
        v, w = self.fresh("p"), self.fresh("q")
        word = "scan" if whole else "reduce"
        self.lets.append(f"let {v}, {w} = {word}(({a.text}, {b.text}), axis = {axis}, {name});")

        def ev(env):
            x, y = a.ev(env), b.ev(env)
            made = [0] * count(inner)
            for n, line in enumerate(rows):
                p, q = 1, 0
                for i in line:
                    p, q = wrap(of, p * x[i]), wrap(of, q * x[i] + y[i])
                    made[i] = p if one else q
                if not whole:
                    made[n] = p if one else q
            return made[:count(shape)]
        return Node(v if one else w, POSTFIX, of, shape, ev)

    def top(self, of, shape, depth):
        rng = self.rng
        axis = rng.randrange(len(shape))
        k = shape[axis]
        if k > 16:
            return self.leaf(of, shape)
        inner = (*shape[:axis], k + rng.choice([0, 1, 3, 8]), *shape[axis + 1:])
        source = rng.choice(list(INTEGERS)) if of == "i32" else of
        a = self.value(source, inner, depth - 1)
        rows, outer = lines(inner, axis), lines(shape, axis)
        v, w = self.fresh("p"), self.fresh("q")
        self.lets.append(f"let {v}, {w} = top({a.text}, {k}, axis = {axis});")
        numbers = of == "i32" and (source != of or rng.random() < 0.5)

        def ev(env):
            values, made = a.ev(env), [0] * count(shape)
            for line, to in zip(rows, outer):
                best = sorted(range(len(line)), key=lambda i: (-values[line[i]], i))[:k]
                for i, n in zip(to, best):
                    made[i] = n if numbers else values[line[n]]
            return made
        return Node(w if numbers else v, POSTFIX, of, shape, ev)

    def dot(self, of, shape, depth):
        """Of small integers, so that every order of the sums gives the same."""
        rng = self.rng
        if len(shape) not in (2, 3) or of not in ("i32", "f32", "f64"):
            return self.leaf(of, shape)
        k = rng.choice([1, 3, 4, 8, 16, 17, 32])
        source = rng.choice({"i32": ["i8", "u8"], "f32": ["f16", "bf16", "f32"], "f64": ["f64"]}[of])
        a = self.value("i8" if source in FLOATS else source, (*shape[:-1], k), depth - 1)
        b = self.value("i8" if source in FLOATS else source, (*shape[:-2], k, shape[-1]), depth - 1)
        m, n = shape[-2:]

        def as_factor(x):
            return f"{source}({self.inside(x, BAND)} & 7)" if source in FLOATS else x.text
        mask = 7 if source in FLOATS else -1

        def ev(env):
            x, y, made = a.ev(env), b.ev(env), []
            for batch in range(count(shape[:-2])):
                for i in range(m):
                    for j in range(n):
                        made.append(sum((x[(batch * m + i) * k + z] & mask) * (y[(batch * k + z) * n + j] & mask) for z in range(k)))
            return [float(v) for v in made] if of in FLOATS else [wrap(of, v) for v in made]
        return Node(f"dot({as_factor(a)}, {as_factor(b)})", POSTFIX, of, shape, ev)

    def prefix(self, of, shape, depth):
        """Scans and the like, or a product."""
        rng = self.rng
        if rng.random() < 0.2:
            return self.dot(of, shape, depth)
        if of not in INTEGERS:
            return self.leaf(of, shape)
        if rng.random() < 0.4:
            return rng.choice([self.affine, self.top])(of, shape, depth)
        axis = rng.randrange(len(shape))
        rows = lines(shape, axis)
        word = rng.choice(["sum", "max", "min", "sort", "last"])
        if word == "sort" and shape[axis] & (shape[axis] - 1):
            word = "sum"
        a = self.value(of, shape, depth - 1)
        if word == "last" and "fn last" not in "".join(self.functions):
            self.functions.append("fn last(_a, b) { return b; }\n")
        f = {"sum": lambda x, y: wrap(of, x + y), "max": max, "min": min, "last": lambda x, y: y}.get(word)

        def ev(env):
            values, made = a.ev(env), [0] * count(shape)
            for line in rows:
                if word == "sort":
                    for i, x in zip(line, sorted(values[i] for i in line)):
                        made[i] = x
                    continue
                x = values[line[0]]
                made[line[0]] = x
                for i in line[1:]:
                    x = f(x, values[i])
                    made[i] = x
            return made
        text = f"scan({a.text}, axis = {axis}, {word})"
        if word == "sort" or (word == "sum" and rng.random() < 0.5):
            text = f"{'sort' if word == 'sort' else 'cumsum'}({a.text}, axis = {axis})"
        return Node(text, POSTFIX, of, shape, ev)
