# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements that change places."""

from meaning import POSTFIX, Node, count, listed, places, strides, zero
from meaning_leaves import Leaves


class Moves(Leaves):
    def moved(self, text, a, of, shape, at):
        """A tile whose elements are those of `a` with the given numbers."""
        def ev(env):
            values = a.ev(env)
            return [values[i] for i in at]
        return Node(text, POSTFIX, of, shape, ev)

    def indexed(self, a, parts, of, shape, at):
        return self.moved(f"{self.inside(a, POSTFIX)}[{', '.join(parts)}]", a, of, shape, at)

    def permuted(self, of, shape, depth):
        order = list(range(len(shape)))
        swapped = len(shape) > 1 and self.rng.random() < 0.5
        if swapped:
            order[-2:] = order[-1], order[-2]
        else:
            self.rng.shuffle(order)
        inner = [shape[order.index(i)] for i in range(len(shape))]
        a = self.value(of, tuple(inner), depth - 1)
        steps = strides(inner)
        at = [sum(p * steps[order[i]] for i, p in enumerate(place)) for place in places(shape)]
        text = f"{self.inside(a, POSTFIX)}.T" if swapped else f"permute({a.text}, permutation = [{listed(order)}])"
        return self.moved(text, a, of, shape, at)

    def reshaped(self, of, shape, depth):
        total = count(shape)
        first = self.rng.choice([d for d in range(1, total + 1) if total % d == 0])
        inner = self.rng.choice([(total,), (first, total // first), (1, *shape), (first, 1, total // first)])
        a = self.value(of, inner, depth - 1)
        return self.moved(f"reshape({a.text}, {listed(shape)})", a, of, shape, range(total))

    def flipped(self, of, shape, depth):
        axis = self.rng.randrange(len(shape))
        a = self.value(of, shape, depth - 1)
        steps = strides(shape)
        at = [sum((shape[i] - 1 - p if i == axis else p) * steps[i] for i, p in enumerate(place)) for place in places(shape)]
        return self.moved(f"flip({a.text}, {self.rng.choice(['axis = ', ''])}{axis - self.rng.choice([0, len(shape)])})", a, of, shape, at)

    def sliced(self, of, shape, depth):
        """A part of a larger tile, with a stride or without."""
        rng, axis = self.rng, self.rng.randrange(len(shape))
        step, begin, after = rng.choice([1, 1, 2, 3]), rng.choice([0, 1, 2]), rng.choice([0, 0, 1])
        size = (shape[axis] - 1) * step + 1
        inner = (*shape[:axis], begin + size + after, *shape[axis + 1:])
        a = self.value(of, inner, depth - 1)
        steps = strides(inner)
        at = [sum((begin + p * step if i == axis else p) * steps[i] for i, p in enumerate(place)) for place in places(shape)]
        parts = [":"] * len(shape)
        parts[axis] = rng.choice([f"{begin}:{begin + size}", f"{begin}:+{shape[axis]}"]) + (f":{step}" if step > 1 else "")
        return self.indexed(a, parts, of, shape, at)

    def added(self, of, shape, depth):
        """A dimension more, of size 1."""
        if 1 not in shape or len(shape) == 1:
            return self.leaf(of, shape)
        axis = self.rng.choice([i for i, n in enumerate(shape) if n == 1])
        a = self.value(of, (*shape[:axis], *shape[axis + 1:]), depth - 1)
        parts = [":"] * len(shape)
        parts[axis] = "None"
        return self.indexed(a, parts, of, shape, range(count(shape)))

    def dropped(self, of, shape, depth):
        """A dimension less."""
        axis, size = self.rng.randrange(len(shape) + 1), self.rng.choice([1, 2, 3])
        number = self.rng.randrange(size)
        inner = (*shape[:axis], size, *shape[axis:])
        a = self.value(of, inner, depth - 1)
        steps = strides(inner)
        at = [sum(p * steps[i if i < axis else i + 1] for i, p in enumerate(place)) + number * steps[axis] for place in places(shape)]
        parts = [":"] * len(inner)
        parts[axis] = str(number)
        return self.indexed(a, parts, of, shape, at)

    def joined(self, of, shape, depth):
        axis, parts = self.rng.randrange(len(shape)), self.rng.choice([2, 2, 3, 4])
        if shape[axis] % parts:
            return self.leaf(of, shape)
        word = self.rng.choice(["concat", "interleave"])
        inner = (*shape[:axis], shape[axis] // parts, *shape[axis + 1:])
        tiles = [self.value(of, inner, depth - 1) for _ in range(parts)]
        steps = strides(inner)
        at = []
        for place in places(shape):
            p = place[axis]
            which, row = divmod(p, inner[axis]) if word == "concat" else (p % parts, p // parts)
            at.append((which, sum((row if i == axis else q) * steps[i] for i, q in enumerate(place))))

        def ev(env):
            values = [t.ev(env) for t in tiles]
            return [values[which][i] for which, i in at]
        return Node(f"{word}({', '.join(t.text for t in tiles)}, axis = {axis})", POSTFIX, of, shape, ev)

    def taken(self, of, shape, depth):
        """By an index for each row, or for each element."""
        axis, size = self.rng.randrange(len(shape)), self.rng.choice([1, 2, 3, 4, 8])
        word = self.rng.choice(["take", "take_along"])
        inner = (*shape[:axis], size, *shape[axis + 1:])
        a = self.value(of, inner, depth - 1)
        index = self.index_tile((shape[axis],) if word == "take" else shape, size, depth - 1)
        steps, none = strides(inner), zero(of)

        def ev(env):
            values, rows, made = a.ev(env), index.ev(env), []
            for n, place in enumerate(places(shape)):
                row = rows[place[axis] if word == "take" else n]
                made.append(values[sum((row if i == axis else q) * steps[i] for i, q in enumerate(place))] if 0 <= row < size else none)
            return made
        return Node(f"{word}({a.text}, {index.text}, axis = {axis})", POSTFIX, of, shape, ev)

    def parts(self, of, shape, depth):
        """One of the equal parts of a tile."""
        rng = self.rng
        axis, n = rng.randrange(len(shape)), rng.choice([2, 2, 3, 4])
        inner = (*shape[:axis], n * shape[axis], *shape[axis + 1:])
        a = self.value(of, inner, depth - 1)
        which = rng.randrange(n)
        names = [self.fresh("p") for _ in range(n)]
        more = f", parts = {n}" if n != 2 or rng.random() < 0.3 else ""
        self.lets.append(f"let {', '.join(names)} = split({a.text}, axis = {axis}{more});")
        steps = strides(inner)
        at = [sum((p + which * shape[axis] if i == axis else p) * steps[i] for i, p in enumerate(place)) for place in places(shape)]
        return self.moved(names[which], a, of, shape, at)

    def movement(self, of, shape, depth):
        ways = [self.permuted, self.reshaped, self.flipped, self.sliced, self.added, self.joined, self.taken]
        if len(shape) < 3:
            ways.append(self.dropped)
        if not self.closed:
            ways.append(self.parts)
        return self.rng.choice(ways)(of, shape, depth)
