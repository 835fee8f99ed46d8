#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs that are right and odd, on the emulator against the interpreter, bit by bit.

Usage: odd.py TIRC [--seed N] [--count N]

Tiles have sides of 1 to 9, also by metas, of all elements that are computed. Loops have no round, one, or end at the limits of i64; they
count down, leave and go on, in each other and in branches on constants. Functions have parameters of each kind: typed,
untyped, functions, defaults, by name, unused; results of several values; and names that hide others. Modules import each
other. Sizes are 0 to 3 tiles. A program that is refused is a failure, and so is one that takes longer than LIMIT seconds.
Seed 0 is that of the day.
"""

import pathlib
import random
import sys
import time

import seeds

ARCHS = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
LIMIT = 20  # seconds, on a host with other work
INTEGERS = {f"{sign}{bits}": bits for sign in "iu" for bits in (8, 16, 32, 64)}
FLOATS = ["f16", "bf16", "f32", "f64"]
TYPES = [*INTEGERS, *FLOATS, "bool"]


def limits(of):
    bits = INTEGERS[of]
    return (0, 2**bits - 1) if of[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


class Program:
    """`names` are what expressions may use: (text, type, shape), a shape of () for scalars."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.functions = []  # text
        self.module = []  # functions of the other file
        self.signatures = []  # (name, parameters, result)
        self.counter = 0
        self.in_function = False  # where what has no type may be a scalar or a tile

    def fresh(self, letter="v"):
        self.counter += 1
        return f"{letter}{self.counter}_"

    def declare(self, names, letter, of, shape):
        """A name that may hide another one of the same block or of outside."""
        name = self.fresh(letter) if self.rng.random() < 0.5 else f"{letter}{self.rng.randint(1, 3)}_"
        names[:] = [n for n in names if n[0].split("(")[0] != name and n[0] not in (f"i64({name})", f"f32({name})")]
        names.append((name, of, shape))
        return name

    # ---- expressions

    @staticmethod
    def zeros(of, shape):
        return f"zeros({of}, {', '.join(map(str, shape))})"

    @classmethod
    def whole(cls, text, of, shape):
        """Of this shape also where all operands are scalars."""
        return f"({text} {'+' if of in FLOATS else '^'} {cls.zeros(of, shape)})" if shape else text

    def constant(self, of):
        rng = self.rng
        if of == "bool":
            return rng.choice(["true", "false"])
        if of in FLOATS:
            return f"{of}({rng.choice(['0.0', '-0.0', '1.0', 'inf', '-inf', 'nan', '0.5', '-3.0', '1e-7'])})"
        low, high = limits(of)
        return f"{of}({min(rng.choice([0, 1, 2, 3, low, high, high - 1, INTEGERS[of]]), 2**63 - 1)})"

    def leaf(self, of, shape, names):
        rng = self.rng
        fitting = [n for n in names if n[1] == of and n[2] in (shape, ())]
        if fitting and rng.random() < 0.75:
            return rng.choice(fitting[-6:])[0]
        other = [n for n in names if n[1] != of and n[2] in (shape, ())]
        if other and rng.random() < 0.6:
            return self.cast(of, rng.choice(other[-6:]))
        return self.constant(of)

    def cast(self, of, name):
        text, source, _ = name
        return f"({text} != {source}(0))" if of == "bool" else f"{of}({text})"

    def condition(self, shape, names, depth):
        of = self.rng.choice(TYPES[:-1])
        if not shape and not self.in_function and self.rng.random() < 0.15:
            tiles = [n for n in names if n[2] and n[1] != "bool"]
            if tiles:
                text, of, size = self.rng.choice(tiles)
                return f"{self.rng.choice(['any', 'all'])}({text} {self.rng.choice(['<=', '!=', '=='])} {self.value(of, size, names, depth - 1)})"
        return f"({self.value(of, shape, names, depth)} {self.rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.value(of, shape, names, depth)})"

    def call(self, of, shape, names, depth):
        """A call of a function with this result, or None."""
        fitting = [s for s in self.signatures if s[2] == (of, shape)]
        if not fitting:
            return None
        name, parameters, _ = self.rng.choice(fitting)
        arguments = []
        by_name = False
        for parameter, kind, default in parameters:
            if default and self.rng.random() < 0.5:
                by_name = True
                continue
            if kind[0] == "fn":
                value = self.rng.choice(["min", "max", "first_"])
            else:
                value = self.value(kind[0], kind[1], names, depth - 1)
                if kind[2] and kind[0] != "bool":  # untyped: a literal would be of another type
                    value = f"{kind[0]}({value})"
            arguments.append(f"{parameter} = {value}" if by_name else value)
        return f"{name}({', '.join(arguments)})"

    def value(self, of, shape, names, depth):
        rng = self.rng
        how = rng.random()
        if depth <= 0 or how < 0.15:
            return self.leaf(of, shape, names)
        if how < 0.3:
            made = self.call(of, shape, names, depth)
            if made:
                return made
        if of == "bool" and how < 0.7:
            return self.condition(shape, names, depth - 1)
        a, b = self.value(of, shape, names, depth - 1), self.value(of, shape, names, depth - 1)
        if of == "bool":
            return f"({a} {rng.choice(['&&', '||', '^', '==', '!='])} {b})"
        if shape and how < 0.36:
            axis = rng.randint(-len(shape), len(shape) - 1)
            how = rng.choice(["max", "min", *([] if of in FLOATS else ["sum"])])
            if rng.random() < 0.5:
                return self.whole(f"{how}({self.whole(a, of, shape)}, axis = {axis})", of, shape)
            like = f"like_{len(shape)}({self.whole(b, of, shape)})"
            return f"({how}({a} {'+' if of in FLOATS else '^'} {like}, axis = {axis}) {'+' if of in FLOATS else '|'} {like})"
        if how < 0.42:
            return f"where({self.condition(shape, names, depth - 1)}, {a}, {b})"
        if how < 0.45:
            return f"({self.condition((), names, depth - 1)} ? {a} : {b})"
        if how < 0.5:
            return f"(({rng.choice(['1 < 2', 'false', '3 == 4', 'true'])}) ? {a} : {b})"
        if how < 0.6:
            return f"{rng.choice(['min', 'max'])}({a}, {b})"
        if of in FLOATS:
            return rng.choice([f"({a} + {b})", f"({a} - {b})", f"(-{a})", f"abs({a})"])
        if how < 0.7:
            return f"({a} {rng.choice(['<<', '>>'])} {b})"
        if how < 0.75:
            return f"({a} {rng.choice('/%')} ({b} | 1))"
        return f"({a} {rng.choice('+-*&|^')} {b})"

    # ---- functions

    def function(self, shapes):
        rng = self.rng
        name = self.fresh("f")
        of, shape = rng.choice(TYPES), rng.choice(shapes)
        shape = rng.choice([shape, ()])
        parameters, texts, inside = [], [], []
        for i in range(rng.randint(0, 4)):
            parameter = rng.choice([f"x{i}", f"y{i}", f"v{i}_"])
            kind = rng.random()
            if kind < 0.15 and of != "bool":
                parameters.append((parameter, ("fn", 1), None))
                texts.append(f"{parameter}: fn({of}, {of}) -> {of}")
                inside.append((f"{parameter}({self.constant(of)}, {self.constant(of)})", of, ()))
                continue
            p_of, p_shape = rng.choice([of, rng.choice(TYPES)]), rng.choice([shape, ()])
            untyped = kind < 0.4
            text = parameter if untyped else f"{parameter}: {p_of}{'[' + ', '.join(map(str, p_shape)) + ']' if p_shape else ''}"
            parameters.append((parameter, (p_of, p_shape, untyped), None))
            texts.append(text)
            if rng.random() < 0.8:
                inside.append((parameter, p_of, p_shape))
        while rng.random() < 0.2 and len(parameters) < 6:
            parameter, p_of = self.fresh("d"), rng.choice(TYPES)
            default = self.constant(p_of)
            parameters.append((parameter, (p_of, (), False), default))
            texts.append(f"{parameter}: {p_of} = {default}")
            inside.append((parameter, p_of, ()))
        lines = []
        self.in_function = True
        for _ in range(rng.randint(0, 2)):
            self.statement(lines, inside, [shape], 1, [])
        result = self.value(of, shape, inside, 2)
        self.in_function = False
        if shape:
            result = self.whole(result, of, shape)
        elif of != "bool":
            result = f"{of}({result})"
        text = f"fn {name}({', '.join(texts)})\n{{\n" + "\n".join(f"    {line}" for line in lines) + f"\n    return {result};\n}}\n"
        if rng.random() < 0.3 and not any(s[0] in text for s in self.signatures if not s[0].startswith("other.")):
            self.module.append(text.replace("other.f", "f").replace("first_", "main.first_").replace("like_", "main.like_"))
            name = f"other.{name}"
        else:
            self.functions.append(text)
        self.signatures.append((name, parameters, (of, shape)))

    # ---- statements

    def bounds(self, dims):
        """A range and at most how many rounds it has."""
        rng = self.rng
        return rng.choice([
            "range(0)", "range(1)", "range(3)", "range(5, 5)", "range(7, 3)", "range(3, 0, -1)", "range(3, 3, -1)",
            "range(0, 10, 100)", "range(0, 5, 2)", "range(5, -4, -3)", "range(9223372036854775804, 9223372036854775807)",
            "range(-9223372036854775807, -9223372036854775805)", "range(-2, 2)", "range(2, unroll)", "range(0, 4, 3, unroll)",
            "range(3, unroll = 2)", *(f"range(0, {d}, 3)" for d in dims), *(f"range({d} - {d})" for d in dims),
            *(f"range({d}, 0, -4)" for d in dims), *(f"range(min({d}, 2), {d}, 5)" for d in dims), *(f"range(0, 3, {d})" for d in dims),
        ])

    def statement(self, lines, names, shapes, depth, dims, loop=False):
        rng = self.rng
        how = rng.random()
        variables = [n for n in names if n[0].startswith("w")]
        of, shape = rng.choice(TYPES), rng.choice([*shapes, ()])
        if how < 0.25 or (how < 0.5 and not variables):
            is_variable = rng.random() < 0.5
            size = f"[{', '.join(map(str, shape))}]" if shape else ""
            value = self.value(of, shape, names, 2)
            name = self.declare(names, "w" if is_variable else "v", of, shape)
            lines.append(f"{'var' if is_variable else 'let'} {name}: {of}{size} = {value};")
        elif how < 0.3 and not self.in_function:
            a, b = self.value(of, shape, names, 1), self.value(of, shape, names, 1)
            if of != "bool":
                a, b = f"{of}({a})", f"{of}({b})"
            a, b = self.whole(a, of, shape), self.whole(b, of, shape)
            first, second = self.fresh("p"), self.fresh("p")
            lines.append(f"let {first}, {second} = turned_({a}, {b});")
            names += [(first, of, shape), (second, of, shape)]
        elif how < 0.5:
            name, of, shape = rng.choice(variables)
            lines.append(f"{name} = {self.value(of, shape, names, 3)};")
        elif depth <= 0:
            lines.append(f"static_assert({rng.choice(['true', '1 < 2', 'min(3, 4) == 3'])});")
        elif how < 0.75:
            inner = list(names)
            bounds = self.bounds([d for d in dims if d in [n[0] for n in names]])
            i = self.declare(inner, rng.choice("iv"), "i64", ())
            inner[-1:] = [(f"{of}({i})", of, ()) for of in ("i64", "f32")]  # of an unrolled loop it is a constant
            lines.append(f"for {i} in {bounds} {{")
            is_plain = "unroll" not in lines[-1]
            self.block(lines, inner, shapes, depth - 1, dims, is_plain)
            lines.append("}")
        elif how < 0.95:
            condition = rng.choice(["true", "1 > 2", self.condition((), names, 1), self.condition((), names, 1)])
            lines.append(f"if {condition} {{")
            self.block(lines, list(names), shapes, depth - 1, dims, loop)
            if loop and rng.random() < 0.3 and condition not in ("true", "1 > 2"):
                lines.append(rng.choice(["break;", "continue;"]))
            if rng.random() < 0.5:
                lines.append("} else {")
                self.block(lines, list(names), shapes, depth - 1, dims, loop)
            lines.append("}")
        else:
            counter = self.fresh("c")
            lines.append(f"var {counter}: i32 = {rng.choice([0, 1, 5])};")
            lines.append(f"while {counter} < 3 && {self.condition((), names, 1)} {{")
            lines.append(f"{counter} += 1;")
            self.block(lines, [*names, (counter, "i32", ())], shapes, depth - 1, dims, False)
            lines.append("}")

    def block(self, lines, names, shapes, depth, dims, loop):
        for _ in range(self.rng.randint(0, 3)):
            self.statement(lines, names, shapes, depth, dims, loop)

    # ---- the whole

    def text(self):
        rng = self.rng
        rank = rng.randint(1, 3)
        dims = ["L", "M", "N"][-rank:]
        sides = [rng.choice([1, 1, 2, 3, 4, 5, 7, 8, 9]) for _ in dims]
        shape = tuple(sides)
        for _ in range(rng.randint(0, 4)):
            self.function([shape])
        by = []
        metas = []
        for d, side in zip(dims, sides):
            if rng.random() < 0.5:
                metas.append(f"B{d} = {side}")
                by.append(f"B{d}")
            else:
                by.append(str(side))
        if rng.random() < 0.3:
            metas.append("UNUSED = 7")
        inputs = [(f"X{i}", rng.choice(TYPES)) for i in range(rng.randint(0, 3))]
        outputs = [(f"Y{i}", rng.choice(TYPES)) for i in range(rng.randint(1, 3))]
        at = ", ".join(f"{d.lower()}:+{b}" for d, b in zip(dims, by))
        lines, names = [], [(d.lower(), "i64", ()) for d in dims] + [(d, "i64", ()) for d in dims]
        for name, of in inputs:
            lines.append(f"let {name.lower()}_ = {name}[{at}];")
            names.append((f"{name.lower()}_", of, shape))
        for _ in range(rng.randint(1, 5)):
            self.statement(lines, names, [shape], 3, dims)
        for name, of in outputs:
            lines.append(f"{name}[{at}] = {self.whole(self.value(of, shape, names, 3), of, shape)};")
        size = ", ".join(dims)
        tensors = [f"{n}: {of}[{size}]" for n, of in inputs] + [f"{n}: out {of}[{size}]" for n, of in outputs]
        over = ", ".join(f"{d} by {b}" for d, b in zip(dims, by))
        head = f"({', '.join(d.lower() for d in dims)})" if rank > 1 else dims[0].lower()
        body = "\n".join(f"        {line}" for line in lines)
        helpers = "fn first_(x, y) { return x; }\nfn turned_(x, y) { return y, x; }\n"
        for sizes in ["A"], ["A", "B"], ["A", "B", "C"]:
            helpers += f"fn like_{len(sizes)}<T: type>(x: T[{', '.join(sizes)}]) {{ return zeros(T, {', '.join(sizes)}); }}\n"
        kernel = f"kernel k{'<' + ', '.join(metas) + '>' if metas else ''}({', '.join(tensors)})\n{{\n    for {head} in tiles({over}) {{\n{body}\n    }}\n}}\n"
        imports = 'import "other.tir" as other;\n' if self.module else ""
        given = [f"{d}={rng.choice([0, 1, side, side + 1, 2 * side + 1, 3 * side])}" for d, side in zip(dims, sides)]
        return imports + helpers + "".join(self.functions) + kernel, "".join(self.module), given


def draw(seed):
    text, module, given = Program(seed).text()
    return text, module, given, seed


def run(tirc, path, module, given, seed):
    if module:  # the two import each other
        pathlib.Path(path.parent, "other.tir").write_text(f'import "{path.name}" as main;\n{module}')
    begin = time.monotonic()
    why = seeds.failure([tirc, "run", str(path), f"--arch={ARCHS[seed % len(ARCHS)]}", "--device=emu", "--emu-check=full",
                         "--verify", "--check=0", *given])
    taken = time.monotonic() - begin
    return why or (f"{taken:.0f} s" if taken > LIMIT else None)


if __name__ == "__main__":
    sys.exit(seeds.main(__doc__, draw, run))
