# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of examples/ beside torch, at sizes that a seed draws: what random_sizes.py times besides
plain products and rows.

Each kind has a function that draws an artifact and a size, and one that makes the inputs and the
peer's call. A check compares a part of the output with torch in float32 and asks that the rest is
no poison. The peers:

  forward, wide   cuDNN's attention (scaled_dot_product_attention); wide has heads of 96 and 256
  backward        cuDNN's, called through autograd without a graph
  deterministic   the same
  head_sizes      cuDNN's where it takes the sizes, else what torch chooses: forward, with heads of 8 to 256
  head_sizes_backward  the same, and backward
  decode, paged   torch's attention over a contiguous cache, whatever backend it takes
  latent          two batched products and a softmax
  attention8      cuDNN's in e4m3 where its front end is at hand (cudnn8.py), else in bf16; O is bf16
  attention8to8   the same; O is e4m3, as cuDNN's is in both
  int8, int4      cuBLAS on weights in bf16; int8packed: in the order that fewer instructions read
  fp8rows         torch._scaled_mm with a scale for each row
  fp8blocks       the same with 1 x 128 and 128 x 128 blocks
  grouped, planned, gradient  torch._grouped_mm; the table of `planned` is made before
  convolution_example  cuDNN's conv2d on channels last: 3 x 3, 1 x 1, and 3 x 3 to half the size
"""

import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import cudnn8
import heads
from compare import Work, normal, size_of
from heads import draw_heads, draw_lengths, spread

BF16 = torch.bfloat16
GROUP = 128  # weights of a scale


class Sampled(Work):
    """Of the output a part is compared, which `sample` gives with its reference."""

    def check(self, launch):
        self.out.fill_(math.nan)
        launch()
        if self.out.isnan().any().item():
            return math.inf
        if self.want is None:
            self.want = self.reference()
        got = self.sample(self.out).double()
        return ((got - self.want.double()).norm() / self.want.double().norm()).item()


def sampled(sample, captured=True, **values):
    work = Sampled(**values)
    work.sample, work.captured = sample, captured
    return work


# ---- attention


def draw_forward(rng):
    size, causal = rng.choice([64, 128]), rng.choice(["full", "causal"])
    heads, groups = draw_heads(rng)
    batch, keys = draw_lengths(rng, 16384, 16384)
    return f"attention.{size}{causal}", (batch, heads, groups, keys, size, causal == "causal", False)


def draw_wide(rng):
    size, causal = rng.choice([96, 256]), rng.choice(["full", "causal"])
    batch, keys = draw_lengths(rng, 16384, 8192)
    return f"forward.{causal}{size}", (batch, 16, 16, keys, size, causal == "causal", True)


def draw_eight(artifact):
    def draw(rng):
        batch, keys = draw_lengths(rng, 16384, 16384)
        return artifact, (batch, 16, 16, keys)
    return draw


def heads_first(x, heads):
    """The first two heads of the first sequence, keys repeated for their queries' heads."""
    return x[:1].repeat_interleave(heads // x.shape[1], 1)[:, :2].float()


def attended(q, k, v, causal):
    """In float32, by its definition."""
    q, k, v = (heads_first(x, q.shape[1]) for x in (q, k, v))
    rows, keys = q.shape[2], k.shape[2]
    out = q.new_empty(*q.shape[:3], v.shape[3])
    for at in range(0, rows, 1024):
        s = q[:, :, at:at + 1024] @ k.mT / math.sqrt(q.shape[3])
        if causal:
            numbers = torch.arange(at, at + s.shape[2], device=q.device)[:, None] + keys - rows
            s.masked_fill_(torch.arange(keys, device=q.device)[None] > numbers, -math.inf)
        out[:, :, at:at + 1024] = s.softmax(3) @ v
    return out


def cudnn(q, k, v, causal):
    def call():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal),
                                                  enable_gqa=q.shape[1] != k.shape[1])
    return call if q.is_cuda else lambda: F.scaled_dot_product_attention(
        q, k, v, is_causal=bool(causal), enable_gqa=True)


def forward(device, batch, heads, groups, keys, size, causal, logarithms):
    q, k, v = (normal(device, batch, h, keys, size, dtype=BF16) for h in (heads, groups, groups))
    out = torch.empty_like(q)
    more = (torch.empty(batch, heads, keys, device=device),) if logarithms else ()
    return sampled(
        lambda o: o[:1, :2], theirs=cudnn(q, k, v, causal),
        ours=(q, k, v, out, *more, 1 / math.sqrt(size)), out=out,
        reference=lambda: attended(q, k, v, causal), bytes_moved=size_of(q, k, v, out),
        flops=4 * batch * heads * keys * keys * size // (2 if causal else 1), tolerance=6e-3)


def eight(narrow):
    """narrow: O is e4m3, as cuDNN's is, with elements of about 1; else bf16."""
    def make(device, batch, heads, groups, keys):
        size, scale = 128, math.sqrt(keys) if narrow else 1.0
        q, k, v = (normal(device, batch, h, keys, size, dtype=BF16) for h in (heads, groups, groups))
        few = [x.to(torch.float8_e4m3fn) for x in (q, k, v)]
        out = torch.empty_like(few[0] if narrow else q)
        return sampled(
            lambda o: o[:1, :2], theirs=cudnn8.attention(*few) or cudnn(q, k, v, False),
            ours=(*few, out, 1 / math.sqrt(size), scale), out=out,
            reference=lambda: attended(*few, False) * scale, bytes_moved=size_of(*few, out),
            flops=4 * batch * heads * keys * keys * size, tolerance=6e-2 if narrow else 4e-2)
    return make


def draw_backward(kernel):
    def draw(rng):
        size, causal = rng.choice([64, 128]), rng.choice([True, False])
        batch, keys = draw_lengths(rng, 16384, 16384)
        return f"{kernel}.{'causal' if causal else 'full'}{size}", (batch, 16, keys, size, causal)
    return draw


def log_sums(q, k, causal, scale):
    """The logarithms of the sums of weights that the forward pass leaves."""
    logs = torch.empty(q.shape[:3], device=q.device)
    numbers = torch.arange(k.shape[2], device=q.device)
    for b in range(len(q)):
        every = k[b].repeat_interleave(q.shape[1] // k.shape[1], 0).float()
        for at in range(0, q.shape[2], 1024):
            s = q[b, :, at:at + 1024].float() @ every.mT * scale
            if causal:
                s.masked_fill_(numbers[None] > numbers[at:at + 1024, None], -math.inf)
            logs[b, :, at:at + 1024] = s.logsumexp(2)
    return logs


def backward(device, batch, heads, keys, size, causal):
    return gradients(device, batch, heads, heads, keys, size, causal, cudnn)


def gradients(device, batch, heads, groups, keys, size, causal, peer):
    """The peer runs through autograd, which cannot be captured."""
    q, k, v = (normal(device, batch, h, keys, size, dtype=BF16).requires_grad_()
               for h in (heads, groups, groups))
    g = normal(device, batch, heads, keys, size, dtype=BF16)
    o = peer(q, k, v, causal)()
    scale, each = 1 / math.sqrt(size), heads // groups
    plain = [x.detach() for x in (q, k, v, o)]
    logs = log_sums(*plain[:2], causal, scale)
    grads = torch.empty(sum(x.numel() for x in plain[:3]), device=device, dtype=BF16)
    parts = [part.view(x.shape) for x, part in zip(plain, grads.split([x.numel() for x in plain[:3]]))]
    one = [x[:1, :n].float().requires_grad_() for x, n in zip(plain, (each, 1, 1))]

    def reference():  # of the heads that share the first head of keys
        out = F.scaled_dot_product_attention(one[0], *(x.expand(1, each, keys, size) for x in one[1:]),
                                             is_causal=causal)
        return torch.cat([x[:, :1] for x in torch.autograd.grad(out, one, g[:1, :each].float())])
    return sampled(
        lambda _: torch.cat([x[:1, :1] for x in parts]), captured=False,
        theirs=lambda: torch.autograd.grad(o, (q, k, v), g, retain_graph=True),
        ours=(*plain, logs, g, *parts, scale), out=grads, reference=reference,
        bytes_moved=size_of(q, k, v, o, g, grads),
        flops=10 * batch * heads * keys * keys * size // (2 if causal else 1), tolerance=1.5e-2)


def any_peer(q, k, v, causal):
    """cuDNN's attention, or what torch chooses where cuDNN refuses the sizes or their gradients."""
    try:
        out = cudnn(q, k, v, causal)()
        if q.requires_grad:
            torch.autograd.grad(out, q, out.detach())
        return cudnn(q, k, v, causal)
    except RuntimeError:
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal,
                                                      enable_gqa=q.shape[1] != k.shape[1])


def head_sizes(device, batch, heads_of, groups, keys, size, values, causal):
    q, k, v = (normal(device, batch, h, keys, n, dtype=BF16)
               for h, n in ((heads_of, size), (groups, size), (groups, values)))
    out = torch.empty(batch, heads_of, keys, values, device=device, dtype=BF16)
    logs = torch.empty(batch, heads_of, keys, device=device)
    return sampled(
        lambda o: o[:1, :2], theirs=any_peer(q, k, v, causal),
        ours=(q, k, v, out, logs, 1 / math.sqrt(size)), out=out,
        reference=lambda: attended(q, k, v, causal), bytes_moved=size_of(q, k, v, out),
        flops=2 * batch * heads_of * keys * keys * (size + values) // (2 if causal else 1), tolerance=6e-3)


def head_sizes_backward(device, batch, heads_of, groups, keys, size, _values, causal):
    return gradients(device, batch, heads_of, groups, keys, size, causal, any_peer)


# ---- decode


def draw_decode(rng):
    rows = rng.choice([4, 8])
    batch = spread(rng, 1, 128)
    keys = min(spread(rng, 512, 65536), (1 << 22) // batch)
    return "decode", (batch, 8, rows, keys, rng.choice([1, 1, 1, 2, 8]))


def draw_paged(rng):
    _, size = draw_decode(rng)
    return "paged", (*size, rng.choice([1, 16, 64, 256]))


def decode(device, batch, groups, heads, keys, fresh, page=0):
    """`heads` heads of queries share keys, each with `fresh` queries."""
    size = 128
    q = normal(device, batch, groups, heads * fresh, size, dtype=BF16)
    k, v = (normal(device, batch, groups, keys, size, dtype=BF16) for _ in range(2))
    lengths = torch.full((batch,), keys, device=device, dtype=torch.int32)
    out = torch.empty_like(q)
    mine = (k, v, lengths)
    if page:
        pages = -(-keys // page)
        order = torch.randperm(batch * pages, device=device)
        table = order.reshape(batch, pages).int()
        cache = []
        for x in (k, v):
            x = F.pad(x, (0, 0, 0, pages * page - keys))
            x = x.reshape(batch, groups, pages, page, size).permute(0, 2, 3, 1, 4)
            cache.append(torch.empty_like(x.reshape(-1, page, groups, size)))
            cache[-1][order] = x.reshape(-1, page, groups, size)
        mine = (*cache, lengths, table)
    flat = q.reshape(batch, groups * heads, fresh, size)
    mask = None
    if fresh > 1:
        mask = torch.arange(keys, device=device)[None] <= \
            torch.arange(fresh, device=device)[:, None] + keys - fresh
    return sampled(
        lambda o: o[:1].reshape(1, groups * heads, fresh, size)[:, :2], theirs=lambda:
        F.scaled_dot_product_attention(flat, k, v, attn_mask=mask, enable_gqa=True),
        ours=(q, *mine, out, fresh, 1 / math.sqrt(size)), out=out,
        reference=lambda: attended(flat, k, v, True), bytes_moved=size_of(q, k, v, out),
        flops=4 * batch * groups * heads * fresh * keys * size, tolerance=6e-3)


def draw_latent(rng):
    batch = spread(rng, 1, 128)
    return "latent", (batch, rng.choice([128, 256]), min(spread(rng, 512, 16384), (1 << 20) // batch))


def latent(device, batch, rows, keys):
    """128 heads of one or two queries."""
    fresh, wide, narrow = rows // 128, 512, 64
    q, qr = (normal(device, batch, rows, n, dtype=BF16) for n in (wide, narrow))
    c, cr = (normal(device, batch, keys, n, dtype=BF16) for n in (wide, narrow))
    lengths = torch.full((batch,), keys, device=device, dtype=torch.int32)
    out, logs = torch.empty_like(q), torch.empty(batch, rows, device=device)
    scale = 1 / math.sqrt(192)
    both, all_of = torch.cat((q, qr), 2), torch.cat((c, cr), 2)

    def reference():
        s = both[:1].float() @ all_of[:1].float().mT * scale
        numbers = torch.arange(rows, device=device)[:, None] % fresh + keys - fresh
        s.masked_fill_(torch.arange(keys, device=device)[None] > numbers, -math.inf)
        return s.softmax(2) @ c[:1].float()
    return sampled(
        lambda o: o[:1], theirs=lambda: (both @ all_of.mT * scale).softmax(2) @ c,
        ours=(q, qr, c, cr, lengths, out, logs, fresh, scale), out=out, reference=reference,
        bytes_moved=size_of(q, qr, c, cr, out), flops=2 * batch * rows * keys * (2 * wide + narrow),
        tolerance=6e-3)


# ---- products with scales, and of groups

WEIGHTS = [(4096, 4096), (28672, 4096), (4096, 14336), (10240, 8192), (8192, 8192), (8192, 28672),
           (4608, 3584), (5120, 5120), (24576, 1536), (4096, 7168), (4096, 8192), (2880, 4096)]


def draw_rows(rng):
    return rng.choice([1, 1, 16, 32, 64, 128, 512, 2048, 4096, spread(rng, 1, 4096)])


def draw_weights(name):
    def draw(rng):
        n, k = rng.choice(WEIGHTS)
        return name, (draw_rows(rng), n, k)
    return draw


def weights(bits, is_packed=False):
    def make(device, m, n, k):
        k = k // GROUP * GROUP
        x, plain = (normal(device, r, k, dtype=BF16) for r in (m, n))
        scales = (torch.rand(n, k // GROUP, device=device) + 0.5).to(BF16) / 64
        most = 1 << (bits - 1)
        integers = torch.randint(-most, most, (n, k), device=device, dtype=torch.int32)
        if bits == 8:
            columns = integers.reshape(n, -1, 8, 2, 4, 2).permute(0, 1, 4, 2, 5, 3)
            packed = (columns.reshape(n, k) if is_packed else integers).to(torch.int8).contiguous()
        else:  # the first half of a group in the low bits, each half packed
            low, high = (integers + 8).reshape(n, -1, 2, 4, 2, 4, 2).unbind(2)
            packed = (low | high << 4).permute(0, 1, 4, 2, 5, 3).reshape(n, k // 2)
            packed = packed.to(torch.uint8).contiguous()
        out, theirs = (torch.empty(m, n, device=device, dtype=BF16) for _ in range(2))

        def reference():
            exact = (integers.float().reshape(n, -1, GROUP) * scales.float()[:, :, None]).to(BF16)
            return x.float() @ exact.reshape(n, k).float().T
        return Work(lambda: torch.matmul(x, plain.T, out=theirs), (x, packed, scales, out), out,
                    reference, size_of(x, packed, scales, out), 2 * m * n * k, 6e-3)
    return make


def fp8(blocks):
    def make(device, m, n, k):
        k = k // 128 * 128
        a, b = (normal(device, r, k, dtype=torch.float8_e4m3fn) for r in (m, n))
        out = torch.empty(m, n, device=device, dtype=BF16)
        if blocks:
            sa = torch.rand(k // 128, m, device=device).T + 0.5
            sb = torch.rand(-(-n // 128), k // 128, device=device) + 0.5
            mine = (sa.contiguous(), sb)
            pair = (sa, sb.T)
        else:
            sa, sb = torch.rand(m, device=device) + 0.5, torch.rand(n, device=device) + 0.5
            mine, pair = (sa, sb), (sa[:, None], sb[None])

        def reference():
            if not blocks:
                return (a.float() @ b.float().T) * sa[:, None] * sb[None]
            left = a.float() * mine[0].repeat_interleave(128, 1)
            return left @ (b.float() * sb.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)).T
        return Work(lambda: torch._scaled_mm(a, b.T, *pair, out_dtype=BF16), (a, b, *mine, out),
                    out, reference, size_of(a, b, *mine, out), 2 * m * n * k, 6e-3)
    return make


def draw_experts(name):
    def draw(rng):
        n, k = rng.choice([(2048, 7168), (7168, 2048), (14336, 4096), (4096, 14336), (2880, 2880)])
        experts = rng.choice([8, 16, 32, 64, 128])
        return name, (spread(rng, 256, 16384), n, k, experts)
    return draw


def experts(name):
    def make(device, m, n, k, count):
        cuts = torch.randint(0, m + 1, (count - 1,)).sort().values
        offsets = torch.cat((torch.zeros(1), cuts, torch.full((1,), m))).int()
        ends, bounds = offsets[1:].to(device), offsets.tolist()
        offsets = offsets.to(device)
        a = normal(device, m, k, dtype=BF16)
        flops = 2 * m * n * k
        if name == "gradient":
            b = normal(device, m, n, dtype=BF16)
            out = torch.empty(count, k, n, device=device, dtype=BF16)
            few = range(0, count, -(-count // 4))  # float32 of all would not fit

            def gradients():
                return torch.stack([a[x:y].float().T @ b[x:y].float()
                                    for x, y in ((bounds[e], bounds[e + 1]) for e in few)])
            return sampled(lambda d: d[::few.step], theirs=lambda:
                           torch._grouped_mm(a.T, b, offs=ends, out_dtype=BF16),
                           ours=(a, b, offsets, out), out=out, reference=gradients,
                           bytes_moved=size_of(a, b, out), flops=flops, tolerance=6e-3)
        b = normal(device, count, n, k, dtype=BF16)
        out = torch.empty(m, n, device=device, dtype=BF16)
        table = []
        if name == "planned":
            table = [(e, row) for e, (x, y) in enumerate(zip(bounds, bounds[1:]))
                     for row in range(x, y, 128)]
            table += [(-1, 0)] * (-(-m // 128) + count - len(table))
            table = [torch.tensor(table, device=device, dtype=torch.int32)]
        return Work(lambda: torch._grouped_mm(a, b.mT, offs=ends, out_dtype=BF16),
                    (a, b, offsets, *table, out), out, lambda: torch.cat(
                        [a[x:y].float() @ b[e].float().T
                         for e, (x, y) in enumerate(zip(bounds, bounds[1:]))]),
                    size_of(a, b, out), flops, 6e-3)
    return make


# ---- convolutions: pixels of images with their channels last

TAPS = {"3x3": (3, 1), "1x1": (1, 1), "half": (3, 2)}  # sides of the filter, and stride


def draw_convolution(rng):
    name = rng.choice(list(TAPS))
    return f"convolution.{name}", (spread(rng, 1, 64), spread(rng, 7, 112), spread(rng, 64, 512, 8),
                                   spread(rng, 64, 512, 8), *TAPS[name])


def convolution_example(device, batch, side, channels, filters, taps, stride):
    x = normal(device, batch, side, side, channels, dtype=BF16)
    w = normal(device, filters, taps, taps, channels, dtype=BF16)
    planes, kernel = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)  # channels last in memory
    pad = taps // 2
    many = (side + 2 * pad - taps) // stride + 1
    y = torch.empty(batch * many * many, filters, device=device, dtype=BF16)

    def theirs():
        return F.conv2d(planes, kernel, padding=pad, stride=stride)

    def reference():
        return F.conv2d(planes.float(), kernel.float(), padding=pad,
                        stride=stride).permute(0, 2, 3, 1).reshape(y.shape)
    torch.backends.cudnn.benchmark = True  # cuDNN's fastest, found before anything is timed
    theirs()
    return Work(theirs, (x, w, y), y, reference, size_of(x, w, y),
                2 * len(y) * filters * channels * taps * taps, 5e-3)


# Kind: what draws the artifact and the size, what makes a set, and a small one for the emulator.
KINDS = {
    "forward": (draw_forward, forward, ("attention.64causal", (1, 4, 2, 150, 64, True, False))),
    "wide": (draw_wide, forward, ("forward.full96", (1, 2, 2, 130, 96, False, True))),
    "attention8": (draw_eight("attention8"), eight(False), ("attention8", (1, 2, 1, 140))),
    "attention8to8": (draw_eight("attention8to8"), eight(True), ("attention8to8", (1, 2, 1, 140))),
    "backward": (draw_backward("backward"), backward, ("backward.causal64", (1, 2, 130, 64, True))),
    "deterministic": (draw_backward("deterministic"), backward,
                      ("deterministic.full64", (1, 2, 130, 64, False))),
    heads.FORWARD: (heads.draw(heads.FORWARD), head_sizes,
                    ("forward.causal72x40", (1, 4, 2, 150, 72, 40, True))),
    heads.BACKWARD: (heads.draw(heads.BACKWARD), head_sizes_backward,
                     ("backward.full72", (1, 4, 2, 130, 72, 72, False))),
    "decode": (draw_decode, decode, ("decode", (2, 2, 4, 600, 2))),
    "paged": (draw_paged, decode, ("paged", (2, 2, 4, 600, 1, 16))),
    "latent": (draw_latent, latent, ("latent", (1, 128, 150))),
    "int8": (draw_weights("int8_weights"), weights(8), ("int8_weights", (17, 130, 256))),
    "int8packed": (draw_weights("int8_packed"), weights(8, True), ("int8_packed", (17, 130, 256))),
    "int4": (draw_weights("int4_weights"), weights(4), ("int4_weights", (17, 130, 256))),
    "fp8rows": (draw_weights("row_scales"), fp8(False), ("row_scales", (40, 130, 256))),
    "fp8blocks": (draw_weights("block_scales"), fp8(True), ("block_scales", (40, 144, 256))),
    "grouped": (draw_experts("grouped"), experts("grouped"), ("grouped", (150, 136, 72, 3))),
    "planned": (draw_experts("planned"), experts("planned"), ("planned", (150, 136, 72, 3))),
    "gradient": (draw_experts("gradient"), experts("gradient"), ("gradient", (150, 136, 72, 3))),
    "convolution_example": (draw_convolution, convolution_example,
                            ("convolution.3x3", (2, 9, 64, 72, 3, 1))),
}
