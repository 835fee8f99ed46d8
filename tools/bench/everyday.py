# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of every day (kernels/everyday.tir) beside torch, at sizes that a seed draws: sets of
random_sizes.py. They are written as the language page suggests, with one tile or some configurations, so
they show what a first version of a kernel reaches.

The peer is one call of torch where there is one (cuBLAS, cuDNN, a kernel of its own), and Inductor's code,
torch.compile, of those that are marked with `compiled`.
"""

import math
import os

import torch
import torch.nn.functional as F

from compare import Work, normal, size_of
from family import spread

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
BF16 = torch.bfloat16
SIZES = {}  # that a function was compiled for


def compiled(function, *inputs):
    """A call of Inductor's code on the inputs; on the processor a plain call."""
    if not inputs[0].is_cuda:
        return lambda: function(*inputs)
    sizes = [x.shape for x in inputs]
    if SIZES.get(function) != sizes:
        torch.compiler.reset()  # what was compiled for eight sizes is run by torch itself at more
        SIZES[function] = sizes
    made = torch.compile(function, dynamic=False)
    return lambda: made(*inputs)


def into(work, fill=0):
    """Our output is added to, from `fill` on."""
    def check(launch):
        work.out.fill_(fill)
        launch()
        want = work.reference().double()
        return ((work.out.double() - want).norm() / want.norm()).item()
    work.check, work.repeats = check, False
    return work


# ---- element by element


def gate(g, u):
    return F.silu(g) * u


def swiglu(device, n):
    g, u = (normal(device, n, dtype=BF16) for _ in range(2))
    y = torch.empty_like(g)
    return Work(compiled(gate, g, u), (g, u, y), y, lambda: gate(g.float(), u.float()),
                size_of(g, u, y), tolerance=5e-3)


def step_of(p, g, m, v, rate, count):
    g = g.float()
    m = 0.9 * m + 0.1 * g
    v = 0.95 * v + 0.05 * g * g
    return p * (1 - rate * 0.1) - rate * (m / (1 - 0.9**count)) / ((v / (1 - 0.95**count)).sqrt() + 1e-8), m, v


def step_in_place(p, g, m, v):
    new, first, second = step_of(p, g, m, v, 0.01, 3)
    p.copy_(new)
    m.copy_(first)
    v.copy_(second)


def adamw(device, n):
    p, m = (normal(device, n, dtype=torch.float32) for _ in range(2))
    v, g = m.square(), normal(device, n, dtype=BF16)
    mine = [x.clone() for x in (p, m, v)]
    work = Work(compiled(step_in_place, p, g, m, v), (mine[0], g, mine[1], mine[2], 0.01, 3.0), mine[0],
                None, 2 * size_of(p, m, v) + size_of(g))

    def check(launch):
        want = step_of(*(x.double() for x in (mine[0], g, mine[1], mine[2])), 0.01, 3)[0]
        launch()
        return ((mine[0] - want).norm() / want.norm()).item()
    work.check, work.tolerance, work.repeats = check, 1e-5, False
    return work


def rotated(x, c, s):
    a, b = x.float().chunk(2, 2)
    c, s = c[:, None], s[:, None]
    return torch.cat((a * c - b * s, a * s + b * c), 2).to(x.dtype)


def rope(device, tokens, heads):
    x = normal(device, tokens, heads, 128, dtype=BF16)
    c, s = (normal(device, tokens, 64, dtype=torch.float32) for _ in range(2))
    y = torch.empty_like(x)
    return Work(compiled(rotated, x, c, s), (x, c, s, y), y, lambda: rotated(x.float(), c, s),
                size_of(x, c, s, y), tolerance=5e-3)


def heads_first(device, batch, tokens, heads):
    x = normal(device, batch, tokens, heads, 128, dtype=BF16)
    y, theirs = (torch.empty(batch, heads, tokens, 128, device=device, dtype=BF16) for _ in range(2))
    return Work(lambda: theirs.copy_(x.transpose(1, 2)), (x, y), y, lambda: x.transpose(1, 2), size_of(x, y))


def five_points(x):
    y = F.pad(x, (1, 1, 1, 1))
    around = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
    return 0.5 * x + 0.125 * around


def stencil(device, m, n):
    x = normal(device, m, n, dtype=torch.float32)
    y = torch.empty_like(x)
    return Work(compiled(five_points, x), (x, y), y, lambda: five_points(x), size_of(x, y), tolerance=1e-6)


def taps(x, w):
    late = F.pad(x.float(), (0, 0, 3, 0))
    return F.silu(sum(late[:, i:i + x.shape[1]] * w[:, i].float() for i in range(4))).to(x.dtype)


def short_convolution(device, batch, tokens, channels):
    x, w = normal(device, batch, tokens, channels, dtype=BF16), normal(device, channels, 4, dtype=BF16)
    y = torch.empty_like(x)
    return Work(compiled(taps, x, w), (x, w, y), y, lambda: taps(x.float(), w.float()), size_of(x, y),
                tolerance=5e-3)


# ---- rows


def loss_of(x, label):
    return F.cross_entropy(x.float(), label, reduction="none")


def cross_entropy(device, m, v):
    x = normal(device, m, v, dtype=BF16)
    label = torch.randint(0, v, (m,), device=device)
    loss = torch.empty(m, device=device)
    return Work(compiled(loss_of, x, label), (x, label, loss), loss, lambda: loss_of(x, label),
                size_of(x, loss), tolerance=1e-4)


def argmax_rows(device, m, v):
    x = normal(device, m, v, dtype=BF16)
    at = torch.empty(m, device=device, dtype=torch.int64)
    theirs = torch.empty_like(at)
    return Work(lambda: torch.argmax(x, 1, out=theirs), (x, at), at,
                lambda: (x == x.amax(1, keepdim=True)).int().argmax(1), size_of(x, at))


def cumsum_rows(device, m, n):
    x = normal(device, m, n, dtype=torch.float32)
    y, theirs = (torch.empty_like(x) for _ in range(2))
    return Work(lambda: torch.cumsum(x, 1, out=theirs), (x, y), y, lambda: x.double().cumsum(1),
                size_of(x, y), tolerance=1e-5)


def quantised(x, r, w):
    s = (x.float() + r.float()).to(BF16)
    r.copy_(s)
    y = F.rms_norm(s.float(), (x.shape[1],), w.float(), 1e-6)
    scale = y.abs().amax(1).clamp(min=1e-10) / 448
    return (y / scale[:, None]).to(torch.float8_e4m3fn), scale


def norm_quantise(device, m, n):
    x, r = (normal(device, m, n, dtype=BF16) for _ in range(2))
    w, mine = normal(device, n, dtype=BF16), r.clone()
    q, scale = torch.empty(m, n, device=device, dtype=torch.float8_e4m3fn), torch.empty(m, device=device)
    work = Work(compiled(quantised, x, r, w), (x, mine, w, q, scale, 1e-6), q, None,
                size_of(x, r, r, q), tolerance=4e-2)

    def check(launch):
        mine.copy_(r)
        want, by = quantised(x.clone(), r.clone(), w)
        launch()
        got = q.float() * scale[:, None]
        want = want.float() * by[:, None]
        return ((got - want).norm() / want.norm()).item()
    work.check, work.repeats = check, False
    return work


def layernorm_back(dy, x, w):
    mean = x.float().mean(1, keepdim=True)
    centred = x.float() - mean
    r = (centred.square().mean(1, keepdim=True) + 1e-5).rsqrt()
    y, g = centred * r, dy.float() * w.float()
    return (r * (g - g.mean(1, keepdim=True) - y * (g * y).mean(1, keepdim=True))).to(dy.dtype)


def layernorm_gradient(device, m, n):
    dy, x = (normal(device, m, n, dtype=BF16) for _ in range(2))
    w, dx = normal(device, n, dtype=BF16), torch.empty(m, n, device=device, dtype=BF16)
    return Work(compiled(layernorm_back, dy, x, w), (dy, x, w, dx, 1e-5), dx,
                lambda: layernorm_back(dy.float(), x.float(), w.float()), size_of(dy, x, dx), tolerance=5e-3)


def column_sum(device, m, n):
    x = normal(device, m, n, dtype=BF16)
    y, theirs = torch.empty(n, device=device), torch.empty(n, device=device)
    return into(Work(lambda: torch.sum(x, 0, dtype=torch.float32, out=theirs), (x, y), y,
                     lambda: x.double().sum(0), size_of(x), tolerance=1e-4))


def group_norm(device, batch, channels, size):
    x, w = normal(device, batch, channels, size, dtype=BF16), normal(device, channels, dtype=BF16)
    y = torch.empty_like(x)
    return Work(lambda: F.group_norm(x, 32, w), (x, w, y, 32, 1e-5), y,
                lambda: F.group_norm(x.float(), 32, w.float()), size_of(x, y), tolerance=5e-3)


def best(x):
    v, i = x.topk(8, 1)
    return v.softmax(1), i


def route(device, tokens):
    x = normal(device, tokens, 256, dtype=torch.float32)
    w = torch.empty(tokens, 8, device=device)
    i = torch.empty(tokens, 8, device=device, dtype=torch.int32)
    return Work(lambda: best(x), (x, w, i), w, lambda: best(x)[0], size_of(x, w, i), tolerance=1e-5)


# ---- rows by number


def embedding(device, tokens, rows, n):
    w, at = normal(device, rows, n, dtype=BF16), torch.randint(0, rows, (tokens,), device=device)
    y, theirs = (torch.empty(tokens, n, device=device, dtype=BF16) for _ in range(2))
    return Work(lambda: torch.index_select(w, 0, at, out=theirs), (w, at, y), y, lambda: w[at],
                2 * size_of(y))


def embedding_gradient(device, tokens, rows, n):
    dy, at = normal(device, tokens, n, dtype=BF16), torch.randint(0, rows, (tokens,), device=device)
    dw = torch.empty(rows, n, device=device)
    theirs, plain = torch.zeros_like(dw), dy.float()
    return into(Work(lambda: theirs.index_add_(0, at, plain), (dy, at, dw), dw,
                     lambda: torch.zeros_like(dw).index_add_(0, at, plain),
                     size_of(dy) + 2 * tokens * n * 4, tolerance=1e-5))


# ---- products


def matrix_vector(device, m, k):
    a, x = normal(device, m, k, dtype=BF16), normal(device, k, dtype=BF16)
    y, theirs = (torch.empty(m, device=device, dtype=BF16) for _ in range(2))
    return Work(lambda: torch.mv(a, x, out=theirs), (a, x, y), y, lambda: a.float() @ x.float(),
                size_of(a), tolerance=5e-3)


def batched(device, batch, m, n, k):
    a, x = normal(device, batch, m, k, dtype=BF16), normal(device, batch, k, n, dtype=BF16)
    d, theirs = (torch.empty(batch, m, n, device=device, dtype=BF16) for _ in range(2))
    return Work(lambda: torch.bmm(a, x, out=theirs), (a, x, d), d, lambda: a.float() @ x.float(),
                size_of(a, x, d), 2 * batch * m * n * k, 5e-3)


def small_batched(device, batch):
    return batched(device, batch, 64, 64, 64)


def matmul(dtype, tolerance):
    def make(device, m, n, k):
        a, x = normal(device, m, k, dtype=dtype), normal(device, n, k, dtype=dtype)
        d, theirs = (torch.empty(m, n, device=device, dtype=dtype) for _ in range(2))
        return Work(lambda: torch.matmul(a, x.T, out=theirs), (a, x, d), d,
                    lambda: a.double() @ x.double().T, size_of(a, x, d), 2 * m * n * k, tolerance)
    return make


def gated(device, m, n, k):
    a, g, u = (normal(device, r, k, dtype=BF16) for r in (m, n, n))
    g, u = g / math.sqrt(k), u / math.sqrt(k)
    d = torch.empty(m, n, device=device, dtype=BF16)

    def theirs():
        return compiled(gate, a @ g.T, a @ u.T)()
    return Work(theirs, (a, g, u, d), d, lambda: gate(a.float() @ g.float().T, a.float() @ u.float().T),
                size_of(a, g, u, d), 4 * m * n * k, 6e-3)


def low_rank(device, m, n, k):
    a, x, p = (normal(device, r, k, dtype=BF16) for r in (m, n, 16))
    p, q = p / math.sqrt(k), normal(device, n, 16, dtype=BF16)
    d = torch.empty(m, n, device=device, dtype=BF16)
    return Work(lambda: torch.addmm(a @ x.T, a @ p.T, q.T), (a, x, p, q, d), d,
                lambda: a.float() @ x.float().T + (a.float() @ p.float().T).to(BF16).float() @ q.float().T,
                size_of(a, x, d), 2 * m * n * k, 6e-3)


def convolution(device, batch, side, channels, filters):
    x, w = normal(device, batch, side, side, channels, dtype=BF16), normal(device, filters, 3, 3, channels, dtype=BF16)
    y = torch.empty(batch * side * side, filters, device=device, dtype=BF16)
    planes, taps_of = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)  # channels last in memory

    def reference():
        return F.conv2d(planes.float(), taps_of.float(), padding=1).permute(0, 2, 3, 1).reshape(y.shape)
    torch.backends.cudnn.benchmark = True  # cuDNN's fastest, found before anything is timed
    F.conv2d(planes, taps_of, padding=1)
    return Work(lambda: F.conv2d(planes, taps_of, padding=1), (x, w, y), y, reference, size_of(x, w, y),
                18 * batch * side * side * channels * filters, 5e-3)


def products(rng):
    return spread(rng, 256, 8192, 8), spread(rng, 256, 8192, 8), spread(rng, 256, 8192, 8)


TABLE = {  # what makes a set, what draws its size, and a small one for the emulator
    "swiglu": (swiglu, lambda r: (spread(r, 1 << 16, 1 << 27),), (3000,)),
    "adamw": (adamw, lambda r: (spread(r, 1 << 16, 1 << 27),), (3000,)),
    "rope": (rope, lambda r: (spread(r, 64, 32768), r.choice([8, 16, 32, 64])), (5, 16)),
    "heads": (heads_first, lambda r: (spread(r, 1, 16), spread(r, 64, 4096), r.choice([8, 16, 32])), (2, 40, 3)),
    "stencil": (stencil, lambda r: (spread(r, 256, 8192), spread(r, 256, 8192, 4)), (30, 140)),
    "short_convolution": (short_convolution,
                          lambda r: (spread(r, 1, 16), spread(r, 64, 4096), spread(r, 256, 8192, 8)), (2, 40, 136)),
    "cross_entropy": (cross_entropy, lambda r: (spread(r, 64, 8192), r.choice([32000, 50257, 128256])), (3, 5000)),
    "argmax_rows": (argmax_rows, lambda r: (spread(r, 16, 8192), r.choice([32000, 50257, 128256])), (3, 5000)),
    "cumsum_rows": (cumsum_rows, lambda r: (spread(r, 64, 8192), spread(r, 256, 65536)), (3, 5000)),
    "norm_quantise": (norm_quantise, lambda r: (spread(r, 64, 16384), r.choice([4096, 5120, 7168, 8192])), (3, 1000)),
    "layernorm_gradient": (layernorm_gradient,
                           lambda r: (spread(r, 64, 16384), r.choice([2048, 4096, 5120, 8192])), (3, 1000)),
    "column_sum": (column_sum, lambda r: (spread(r, 1024, 65536), spread(r, 512, 16384, 8)), (700, 300)),
    "group_norm": (group_norm, lambda r: (spread(r, 1, 32), r.choice([128, 256, 320, 512]), spread(r, 256, 16384)),
                   (2, 64, 500)),
    "route": (route, lambda r: (spread(r, 256, 65536),), (20,)),
    "embedding": (embedding, lambda r: (spread(r, 256, 65536), 128256, r.choice([2048, 4096, 8192])), (40, 50, 600)),
    "embedding_gradient": (embedding_gradient,
                           lambda r: (spread(r, 256, 65536), 32000, r.choice([2048, 4096])), (40, 50, 300)),
    "matrix_vector": (matrix_vector, lambda r: (spread(r, 1024, 32768), spread(r, 1024, 32768, 8)), (30, 2000)),
    "batched": (batched, lambda r: (spread(r, 4, 64), *(spread(r, 128, 2048, 8) for _ in range(3))), (2, 130, 136, 72)),
    "small_batched": (small_batched, lambda r: (spread(r, 256, 16384),), (3,)),
    "matmul_tf32": (matmul(torch.float32, 1e-3), products, (70, 80, 96)),
    "matmul_f64": (matmul(torch.float64, 1e-12), lambda r: tuple(spread(r, 256, 4096, 8) for _ in range(3)), (70, 80, 40)),
    "gated": (gated, products, (70, 136, 96)),
    "low_rank": (low_rank, products, (70, 136, 96)),
    "convolution": (convolution, lambda r: (spread(r, 1, 64), r.choice([14, 28, 56, 64, 128]),
                                            r.choice([64, 128, 256, 512]), r.choice([64, 128, 256, 512])),
                    (1, 10, 64, 72)),
}
KINDS = {name: ((lambda rng, name=name, size=size: (f"everyday.{name}", size(rng))), make,
                (f"everyday.{name}", tiny)) for name, (make, size, tiny) in TABLE.items()}
