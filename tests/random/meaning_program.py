# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs: variables, buffers, branches and loops, and what they store."""

from meaning import FLOATS, INTEGERS, POSTFIX, Node, arithmetic, extreme, fma, lines, listed, places, strides, zero
from meaning_values import Values

SIZES = [1, 2, 3, 4, 5, 8, 16]
WIDE = [(64, 32), (1024,), (128, 16), (7, 96), (4, 8, 32), (256, 3), (2, 257), (513,), (32, 64)]


class Maker(Values):
    def buffer(self):
        """A declaration, what stands for all of it, and its initial value."""
        rng = self.rng
        of = rng.choice([*INTEGERS, *FLOATS, "i32", "u32", "u64"])
        shape = tuple(rng.choice(SIZES) for _ in range(rng.choice([1, 2, 2, 3])))
        name = self.fresh("w")
        shared = rng.random() < 0.6
        if shared:
            layout = rng.choice(["", "", " in row_major"])
            line = f"shared {name}: {of}[{listed(shape)}]{layout};"
        else:
            line = ""
            self.tensors.append((name, of, shape))
        first = self.value(of, shape, 1) if rng.random() < 0.7 else self.constant(of, ())
        wide = first.spread(shape)
        self.buffers.append((name, of, shape, shared))
        whole = f"{name}[{', '.join(([] if shared else ['b']) + [':'] * len(shape))}]"
        store = self.ordered(f"{whole} = {first.text};")
        return f"{line} {store}", lambda env: env.__setitem__(name, list(wide(env)))

    def part(self, buffer, shape):
        """A slice of a buffer of the given shape: its text, and the places or None of its elements."""
        rng = self.rng
        name, _, size, shared = buffer
        parts, at, limits_of = self.slice(shape)
        steps = strides(size)
        for i, (have, want) in enumerate(zip(size, shape)):
            if have == want and rng.random() < 0.7:
                parts[i], at[i], limits_of[i] = ":", lambda env, j: j, None
        if rng.random() < 0.3:
            i = rng.randrange(len(shape))
            n = shape[i]
            if n & (n - 1) == 0:  # each number once
                odd, add = rng.choice([1, 3, 5]), rng.randint(0, 7)
                parts[i] = f"(iota({n}) * {odd} + {add} & {n - 1})"
                at[i], limits_of[i] = lambda env, j: j * odd + add & (n - 1), None

        def where(env):
            most = [f.ev(env)[0] if f else None for f in limits_of]
            made = []
            for place in places(shape):
                index = [f(env, j) for f, j in zip(at, place)]
                there = all(0 <= i < n for i, n in zip(index, size)) and all(m is None or j < m for m, j in zip(most, place))
                made.append(sum(i * s for i, s in zip(index, steps)) if there else None)
            return made
        return f"{name}[{', '.join(([] if shared else ['b']) + parts)}]", where

    def store(self):
        rng = self.rng
        buffer = rng.choice(self.buffers)
        name, of, size, shared = buffer
        shape = size if rng.random() < 0.5 else tuple(max(1, n + rng.choice([0, 0, -1, 1])) for n in size)
        text, where = self.part(buffer, shape)
        x = self.constant(of, ()) if rng.random() < 0.4 else self.value(of, rng.choice([shape, self.smaller(shape)]), rng.randint(1, 2))
        values = x.spread(shape)
        how = rng.random()
        mask = self.value("bool", shape, 1) if how < 0.3 else None
        word = None
        if of in ("i32", "u32", "i64", "u64") and how > 0.6:
            word = rng.choice(["add", "min", "max", "xor", "or", "and"])
            if shape != x.shape:
                word = None

        def do(env):
            new, inside, buffer = values(env), mask.ev(env) if mask else None, env[name]
            places = where(env)
            for n, i in enumerate(places):
                if i is not None and (not mask or inside[n]):
                    buffer[i] = new[n] if not word else extreme(word, buffer[i], new[n]) if word in ("min", "max") else \
                        arithmetic({"add": "+", "xor": "^", "or": "|", "and": "&"}[word], of, buffer[i], new[n])
        line = f"atomic_{word}({text}, {x.text});" if word else f"store({text}, {x.text}, mask = {mask.text});" if mask else \
            f"{text} = {x.text};"
        return self.ordered(line), do

    def ordered(self, line):
        return f"bar_sync(); {line} bar_sync();" if self.by_hand else line

    def fetch(self, of, shape):
        """From a buffer, whose outside reads as 0."""
        fits = [b for b in self.buffers if b[1] == of and len(b[2]) == len(shape)]
        if not fits:
            return None
        buffer = self.rng.choice(fits)
        text, where = self.part(buffer, shape)
        none = zero(of)
        name = self.fresh("t")  # now, before what is stored next
        self.lets.append(f"let {name} = {text};")

        def ev(env):
            return [none if i is None else env[buffer[0]][i] for i in where(env)]
        return Node(name, POSTFIX, of, shape, ev)

    def block(self, depth, rounds):
        """Statements on the variables of the tile."""
        made = []
        for _ in range(self.rng.randint(1, 3)):
            before, self.lets = self.lets, []
            text, f = self.statement(depth, rounds)
            made.append((" ".join([*self.lets, text]), f))
            self.lets = before

        def do(env):
            for _, f in made:
                word = f(env)
                if word:
                    return word
            return None
        return " ".join(text for text, _ in made), do

    def statement(self, depth, rounds):
        rng = self.rng
        how = rng.random()
        variables = [n for n in self.names if n.text.startswith("m")]
        if self.buffers and rng.random() < 0.4:
            return self.store()
        if depth <= 0 or how < 0.5:
            v = rng.choice(variables)
            op = rng.choice(["=", "=", "+=", "-=", "*="] if v.of != "bool" else ["="])
            x = self.value(v.of, self.smaller(v.shape) if op != "=" or rng.random() < 0.1 else v.shape, rng.randint(1, 3))
            wide = x.spread(v.shape)

            def assign(env):
                new = wide(env)
                if op == "=":
                    env[v.text] = new
                elif v.of in FLOATS and op in ("+=", "-=") and x.factors and x.of == v.of:
                    p, q = (n.spread(v.shape) for n in x.factors)
                    env[v.text] = [fma(v.of, i if op == "+=" else -i, j, k) for i, j, k in zip(p(env), q(env), env[v.text])]
                else:
                    env[v.text] = [arithmetic(op[0], v.of, i, j) for i, j in zip(env[v.text], new)]
            return f"{v.text} {op} {x.text};", assign
        if how < 0.75:
            c = self.value("bool", (), rng.randint(1, 3))
            yes, then = self.block(depth - 1, rounds)
            no, other = self.block(depth - 1, rounds) if rng.random() < 0.5 else (None, lambda env: None)
            leave = rng.choice([None, None, "break", "continue"]) if rounds else None
            text = f"if {c.text} {{ {yes}{f' {leave};' if leave else ''} }}" + (f" else {{ {no} }}" if no is not None else "")

            def branch(env):
                return (then(env) or leave) if c.ev(env)[0] else other(env)
            return text, branch
        i = self.fresh("r")
        begin, end = rng.randint(-3, 3), rng.randint(-3, 4)
        step = rng.choice([1, 1, 2, 3, -1, -2])
        if step < 0 and end > begin:
            begin, end = end, begin
        node = Node(i, POSTFIX, "i64", (), lambda env: env[i])
        self.names.append(node)
        text, do = self.block(depth - 1, True)
        self.names.remove(node)
        shown = f"{begin}, {end}" if begin or step != 1 or rng.random() < 0.5 else f"{end}"
        if step != 1 or rng.random() < 0.1:
            shown = f"{begin}, {end}, {step}"

        def loop(env):
            for x in range(begin, end, step):
                env[i] = [x]
                if do(env) == "break":
                    break
        return f"for {i} in range({shown}) {{ {text} }}", loop

    def shape(self):
        rank = self.rng.choice([1, 1, 2, 2, 3])
        return tuple(self.rng.choice(SIZES) if rank > 1 else self.rng.choice([1, 3, 8, 32, 33, 64]) for _ in range(rank))

    def program(self):
        rng = self.rng
        wide = rng.random() < 0.15
        shapes = [rng.choice(WIDE) if wide else self.shape() for _ in range(2)]
        lines, steps = [], []
        types = [*INTEGERS, *FLOATS]
        for _ in range(rng.randint(1, 3)):
            of, shape = rng.choice(types), rng.choice(shapes)
            x = self.value(of, shape, 2)
            lines += self.lets
            self.lets = []
            name = self.fresh("m")
            lines.append(f"var {name}: {of}[{listed(shape)}] = {x.text};" if rng.random() < 0.5 else f"var {name} = {x.text};")
            steps.append(lambda env, name=name, x=x: env.update({name: x.ev(env)}))
            self.names.append(Node(name, POSTFIX, of, shape, lambda env, name=name: env[name]))
        variables = list(self.names)
        for _ in range(rng.randint(0, 2)):
            text, do = self.buffer()
            lines += [*self.lets, text]
            self.lets = []
            steps.append(do)
        for _ in range(rng.randint(0, 4)):
            text, do = self.statement(2, False)
            lines += [*self.lets, text]
            self.lets = []
            steps.append(do)
        results = []
        for j in range(rng.randint(1, 2)):
            of, shape = rng.choice([*types, "bool"]), rng.choice(shapes)
            x = self.value(of, shape, rng.randint(2, 3) if wide else rng.randint(3, 5))
            results.append((f"Y{j}", of, shape, x))
        for v in variables:
            results.append((f"Z{v.text}", v.of, v.shape, v))
        for name, of, shape in self.tensors:
            results.append((name, of, shape, Node("", POSTFIX, of, shape, lambda env, name=name: env[name])))
        outs = []
        for name, of, shape, x in results:
            outs.append(f"{name}: {'out' if x.text else 'inout'} {of}[B, {listed(shape)}]")
            lines += self.lets if name == results[0][0] else []
            lines += [f"{name}[b, {', '.join(':' for _ in shape)}] = {x.text};"] if x.text else []
        self.compute(steps, results)
        return self.kernel(lines, outs)

    def compute(self, steps, results):
        self.wanted = {name: (of, []) for name, of, *_ in results}
        for b in range(self.B):
            env = {"b": b}
            for do in steps:
                do(env)
            for name, _, _, x in results:
                self.wanted[name][1].extend(x.ev(env))

    def kernel(self, lines, outs):
        if not self.inputs:
            self.sizes.append(f"B={self.B}")
        tensors = [f"{name}: {of}[B, {listed(size)}]" for name, (of, size) in self.inputs.items()]
        tensors += [f"{of}: i64" if of.startswith("s_") else f"s_{of}: {of}" for of in self.scalars]
        around, end, clauses = "for b in tiles(B) {", "\n    }", ""
        if self.by_hand:
            around, end, clauses = "let b = i64(cta_id());", "", f" grid(B) threads({self.rng.choice([32, 64, 128, 256])})"
        body = "\n".join(f"        {line}" for line in lines)
        return f"{''.join(self.functions)}kernel k({', '.join(tensors + outs)}){clauses}\n{{\n    {around}\n{body}{end}\n}}\n"
