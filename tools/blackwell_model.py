# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicts bounds of kernels on a B200 from published numbers of the machine.

    python3 blackwell_model.py [numbers|guesses|products|ladder|attention]   a table of docs/blackwell.md

Nothing here was measured by this project. A prediction is the time in which the busiest resource of
a multiprocessor does its part, so a kernel cannot be faster than it if the numbers are right, and may
well be slower. Each number has its source or is called a guess. Clocks are those of a multiprocessor.
"""

import collections
import math
import sys

Number = collections.namedtuple("Number", "name value unit kind source")

FA4 = "FlashAttention-4, arXiv:2603.05451, section 2.2"
TILESIGHT = "TileSight, arXiv:2607.22432, table 3"
TRITON = "facebookexperimental/triton db4666f, ModuloScheduling/"
LATENCY = TRITON + "NVLatencyModel.cpp, "

# kind: "published", or "guess" with its reason as the source.
NUMBERS = [
    Number("sms", 148, "multiprocessors", "published", TILESIGHT),
    Number("peak", 2.25e15, "FLOP/s, bf16, dense", "published",
           "FlashAttention-4, arXiv:2603.05451, section 1"),
    Number("tensor", 8192, "FLOP/clk/SM, bf16", "published",
           FA4 + "; the same in " + LATENCY + "kTCMacsPerCycleFp16"),
    Number("shared", 128, "B/clk/SM", "published", FA4),
    Number("exp2", 16, "/clk/SM", "published", FA4),
    Number("exp2_b300", 32, "/clk/SM, sm_103a", "published", FA4),
    Number("issue", 128, "f32 operations/clk/SM", "published",
           "CUDA C++ Programming Guide, \"Arithmetic Instructions\""),
    Number("l2", 20.5e12, "B/s", "published", TILESIGHT + ", measured"),
    Number("dram", 8.0e12, "B/s", "published", TILESIGHT + ", specification"),
    Number("shared_cta", 232448, "B a CTA", "published",
           "CUDA C++ Programming Guide, \"Technical specifications per compute capability\""),
    Number("shared_sm", 233472, "B/SM", "published",
           "CUDA C++ Programming Guide, \"Technical specifications per compute capability\""),
    Number("columns", 512, "columns of 128 lanes", "published", "PTX ISA 9.7.16.1"),
    Number("mma_k64", 559, "clk, tcgen05.mma 128x128x64", "published",
           LATENCY + "kMMALatency128x128x64"),
    Number("mma_k128", 900, "clk, tcgen05.mma 128x128x128", "published",
           LATENCY + "kMMALatency128x128x128"),
    Number("tma_load", 460, "clk, tensor copy", "published", LATENCY + "getTMALoadLatency"),
    Number("tma_load_kb", 6, "clk/KB of a tensor copy", "published", LATENCY + "getTMALoadLatency"),
    Number("tma_store", 130, "clk, tensor store", "published", LATENCY + "getTMAStoreLatency"),
    Number("tma_store_kb", 52, "clk/KB of a tensor store", "published",
           LATENCY + "getTMAStoreLatency"),
    Number("tmem_load", 532, "clk, tcgen05.ld of 128x128 f32", "published",
           LATENCY + "getCUDALatency"),
    Number("tmem_load_rate", 256, "B/clk/SM", "published",
           LATENCY + "getCUDASelfLat: 256 clk for 128x128 f32"),
    Number("mbarrier", 92, "clk, from an arrival to the waiter", "published",
           TRITON + "ModuloSchedulePass.cpp, kCrossWGRoundTripLatency"),
    Number("barrier", 30, "clk, named barrier", "published",
           TRITON + "ModuloSchedulePass.cpp, kNamedBarrierIssueCost"),
    Number("emulated", 0.25, "of the exponentials, FlashAttention 4", "published",
           "FlashAttention-4, arXiv:2603.05451, section 3.1.3: 10 to 25 %"),
    Number("tmem_store_rate", 256, "B/clk/SM", "guess",
           "as a load; the 48 clk for 128x128 f32 of getCUDASelfLat would be 1365 B/clk"),
    Number("global_load", 460, "clk", "guess",
           "a load by threads waits as long as the fixed part of a tensor copy"),
    Number("emulation", 6, "issue slots for an exp2 on FMA units", "guess",
           "a count of the steps in section 3.1.3, those in pairs at half"),
    Number("score_slots", 4.5, "issue slots for a score", "guess",
           "its part of the largest, scale, exp2, conversion of two at once, and sum"),
    Number("half_rows", 128, "rows that a product of 64 rows costs", "guess",
           "it uses half of the lanes (PTX ISA 9.7.16.10, layout F)"),
]
VALUE = {n.name: n.value for n in NUMBERS}
LANES = 128
ELEMENT = 2  # bytes of bf16


def clock():
    """Clocks a second at which the published peak is that of the published rate."""
    return VALUE["peak"] / VALUE["sms"] / VALUE["tensor"]


def tensor(m, n, k):
    return 2 * m * n * k / VALUE["tensor"]


def shared(size):
    return size / VALUE["shared"]


def latency(busy):
    """Of a product that keeps the tensor core for `busy` clocks: what 128x128x64 needs beyond its rate
    comes on top. For 128x128x128 it is less than the published figure; a bound takes the smaller one."""
    return VALUE["mma_k64"] - tensor(128, 128, 64) + busy


def l2(size):
    """At the share of a multiprocessor when all load."""
    return size / (VALUE["l2"] / VALUE["sms"] / clock())


def largest(parts):
    """The largest of named parts, and the names of all that are as large."""
    most = max(parts.values())
    return most, " and ".join(name for name, part in parts.items() if math.isclose(part, most))


class Product:
    """A kernel D = A . B^T in bf16 by its tile.

    rows        of sums in a CTA
    columns     of sums in a CTA
    held        rows of B in a CTA's shared memory: half of the columns in a pair of CTAs
    stages      slots of the ring of operands; 1: a step waits for the step before it
    copies      "tma", or "threads" that load and wait
    buffers     accumulators
    persistent  whether a CTA stays for several tiles, and stores one while it computes the next
    alone       whether there is one CTA
    """

    def __init__(self, rows=128, columns=128, held=None, stages=1, copies="tma", buffers=1,
                 persistent=False, alone=False, k=64):
        self.rows, self.columns, self.k = rows, columns, k
        self.held, self.stages, self.copies = held or columns, stages, copies
        self.buffers, self.persistent, self.alone = buffers, persistent, alone
        self.ctas = 2 if self.held < columns else 1  # of a product

    def step_bytes(self):
        return (self.rows + self.held) * self.k * ELEMENT

    def resident(self):
        """CTAs that a multiprocessor has room for; one that stays is alone."""
        if self.persistent or self.alone:
            return 1
        columns = 2 ** math.ceil(math.log2(self.buffers * self.rows // LANES * self.columns))
        return max(1, min(VALUE["columns"] // columns,
                          int(VALUE["shared_sm"] // (self.stages * self.step_bytes() + 1024))))

    def chain(self):
        """Clocks from the request of a step's operands until their slot may be written again."""
        halves = max(self.rows, self.held) * self.k * ELEMENT / 1024
        busy = tensor(self.rows, self.columns, self.k)
        if self.copies == "tma":
            load = VALUE["tma_load"] + VALUE["tma_load_kb"] * halves + VALUE["mbarrier"]
        else:
            load = VALUE["global_load"] + shared(self.step_bytes()) + VALUE["barrier"]
        return load + latency(busy) + VALUE["mbarrier"]

    def resources(self, writes=False):
        """Clocks of each resource for a step of one CTA. A product of 128 rows reads A and B once.
        `writes`: what is copied to shared memory passes the same 128 B a clock."""
        reads = self.rows // LANES * (LANES + self.held) * self.k * ELEMENT
        return {"tensor core": tensor(self.rows, self.columns, self.k),
                "shared memory": shared(reads + (self.step_bytes() if writes else 0)),
                "L2": l2(self.step_bytes())}

    def step(self, writes=False):
        """Clocks of a step at least, and what takes them."""
        return largest({**self.resources(writes),
                        "latency": self.chain() / self.stages / self.resident()})

    def drain(self):
        """Clocks to load the sums of a tile, by columns of 128."""
        parts = self.rows * self.columns / (128 * 128)
        return VALUE["tmem_load"] + (parts - 1) * 128 * 128 * 4 / VALUE["tmem_load_rate"]

    def epilogue(self):
        """Clocks from the last product to the end of the tile's store."""
        size = self.rows * self.columns * ELEMENT
        return (self.drain() + shared(size) + VALUE["tma_store"]
                + VALUE["tma_store_kb"] * size / 1024)

    def time(self, m, n, k, writes=False):
        """Seconds of a product of this size at least, and what takes them."""
        sms, steps = VALUE["sms"], math.ceil(k / self.k)
        tiles = math.ceil(m / (self.rows * self.ctas)) * math.ceil(n / self.columns)
        groups = sms // self.ctas
        each = math.ceil(tiles / groups)  # tiles of the multiprocessor that has the most
        busy = {name: each * steps * used for name, used in self.resources(writes).items()}
        if self.persistent and self.buffers == 1:  # the next tile's sums have no other place
            busy["tensor core"] += (each - 1) * self.drain()
        clocks, what = largest(busy)
        rounds = math.ceil(tiles / (groups * self.resident()))
        waits = rounds * steps * self.chain() / self.stages
        waits += self.epilogue() * (1 if self.persistent else rounds)
        if waits > clocks:
            clocks, what = waits, "latency"
        dram = ELEMENT * (m * k + n * k + m * n) / VALUE["dram"]
        return (dram, "memory") if dram > clocks / clock() else (clocks / clock(), what)


# Steps of the book (mlc-ai/modern-gpu-programming-for-mlsys 0fdad07), and the file of examples/blackwell_ladder that has the technique, if there is one.
# `book` is its own time for 4096 x 4096 x 4096 in ms (chapter_gemm_advanced, "End-to-End Results"), of
# step 3 for another kernel of the same kind; `theirs` is its kernel where its ring has another depth. No file: the kernel is the book's.
Step = collections.namedtuple("Step", "number technique file product theirs book")
RING = {"stages": 4, "buffers": 2, "persistent": True}
LADDER = [
    Step(1, "one tile", "1_single_tile", Product(copies="threads", alone=True), None, None),
    Step(2, "a loop over K", "2_k_loop", Product(copies="threads", alone=True), None, None),
    Step(3, "a grid of tiles", "3_spatial", Product(copies="threads"), None, 53.6),
    Step(4, "tensor copies", "4_tma", Product(), None, 0.49),
    Step(5, "a ring of slots", "5_pipeline", Product(stages=4), None, None),
    Step(6, "CTAs that stay, by CLC", "7_clc", Product(**RING), Product(stages=2, persistent=True), None),
    Step(7, "roles", "6_specialized", Product(**RING), Product(stages=2, persistent=True), 0.23),
    Step(8, "pairs of CTAs, 256x256", "8_pair", Product(columns=256, held=128, **{**RING, "stages": 6}),
         Product(columns=256, held=128, **RING), 0.104),
    Step(9, "two consumers, 512x256", "9_two_consumers",
         Product(rows=256, columns=256, held=128, stages=4, persistent=True), None, 0.094),
]
ONE_TILE = {1: (128, 128, 64), 2: (128, 128, 4096)}

# What the passes make of the best variant of kernels in examples/03_gemm, and of one for pairs of CTAs, with PAIR.
PAIR = {"BM": 128, "BN": 256, "CM": 2}
TILES = {"gemm": Product(**{**RING, "stages": 3}), "matmul": Product(columns=256, **RING),
         "matmul.pair": Product(columns=256, held=128, **{**RING, "stages": 6})}


class Attention:
    """A round of attention forward, for the queries of one CTA and 128 keys.

    blocks     of rows, with products of their own
    rows       in a block
    size       of a head
    p_shared   whether the weights go through shared memory, not tensor memory
    rescaled   whether each round loads and stores the output's sums
    emulated   share of the exponentials on FMA units
    emulation  issue slots of one
    exp2       a clock
    queries_read   how often a round reads each query
    """

    def __init__(self, name, blocks=1, rows=128, size=128, p_shared=False, rescaled=True,
                 emulated=0.0, emulation=VALUE["emulation"], exp2=VALUE["exp2"], queries_read=1):
        self.name, self.blocks, self.rows, self.size = name, blocks, rows, size
        self.p_shared, self.rescaled, self.emulated, self.exp2 = p_shared, rescaled, emulated, exp2
        self.emulation, self.queries_read, self.keys = emulation, queries_read, 128

    def scores(self):
        return self.blocks * self.rows * self.keys

    def outputs(self):
        """That a round changes."""
        return self.rescaled * self.blocks * self.rows * self.size

    def work(self):
        """FLOP that count."""
        return 4 * self.scores() * self.size

    def loaded(self):
        """Bytes that threads load from tensor memory."""
        return 4 * (self.scores() + self.outputs())

    def stored(self):
        """Clocks in which threads store to tensor memory."""
        weights = 0 if self.p_shared else ELEMENT * self.scores()
        return (weights + 4 * self.outputs()) / VALUE["tmem_store_rate"]

    def product(self):
        """Clocks of the tensor core for one of the two products of a block."""
        rows = VALUE["half_rows"] if self.rows == 64 else self.rows
        return tensor(rows, self.keys, self.size)

    def resources(self):
        """Clocks of each resource for a round. Q, K and V are read by each product, as in section 3.1.1
        of the paper."""
        elements = self.blocks * (self.queries_read * self.rows + 2 * self.keys) * self.size
        elements += 2 * self.scores() if self.p_shared else 0  # written once, read once
        slots = self.scores() * (VALUE["score_slots"] + self.emulated * (self.emulation - 1))
        return {"tensor core": 2 * self.blocks * self.product(),
                "shared memory": shared(ELEMENT * elements),
                "exponential": self.scores() * (1 - self.emulated) / self.exp2,
                "issue": (slots + self.outputs()) / VALUE["issue"],
                "tensor memory": self.loaded() / VALUE["tmem_load_rate"] + self.stored()}

    def round(self):
        return largest(self.resources())

    def in_order(self):
        """Clocks of a round of the one warpgroup that computes, if it does one thing at a time. That is no
        bound: a warp may begin the next thing before the last one has ended. The product of the weights
        runs beside what comes before it in the next round, which takes longer."""
        used = self.resources()
        loads = self.loaded() / (128 * 128 * 4) * VALUE["tmem_load"]
        after = (self.outputs() + self.scores()) / VALUE["issue"] + loads / 2 + self.stored()
        return max(loads + self.stored() + used["issue"] + used["exponential"],
                   latency(self.product()) + 2 * VALUE["mbarrier"] + after)

    def rate(self, clocks):
        """FLOP/s of the whole machine."""
        return self.work() / clocks * VALUE["sms"] * clock()


ATTENTION = [
    Attention("`forward.tir`, D = 128"),
    Attention("the same with sm_103a's exp2", exp2=VALUE["exp2_b300"]),
    Attention("`forward.tir`, D = 64", blocks=3, rows=64, size=64, p_shared=True),
    # 10: the steps of exp2_fma, none in pairs
    Attention("`blackwell_attention`, D = 128", blocks=2, rescaled=False, emulated=0.25, emulation=10,
              queries_read=2),
    Attention("FlashAttention 4, D = 128", blocks=2, rescaled=False, emulated=VALUE["emulated"]),
]
FA4_RATE = 1613e12  # FLOP/s, the most that FlashAttention 4 reached on a B200: its abstract


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def number_table():
    value = lambda v: f"{v:.3g}" if v >= 1e9 else f"{v:g}"
    return table(["number", "value", "unit", "source"],
                 [(n.name, value(n.value), n.unit, ("**guess**: " if n.kind == "guess" else "") + n.source)
                  for n in NUMBERS])


def guesses():
    return [n.name for n in NUMBERS if n.kind == "guess"]


def guess_table():
    return "".join(f"- `{name}`\n" for name in guesses())


def label_of(name):
    """Of one of TILES."""
    return f"`{name.removesuffix('.pair')}.tir`" + (", pairs of CTAs" if name.endswith(".pair") else "")


def product_table():
    """A step along K of a CTA."""
    rows = []
    for p, label in [*((s.product, f"{s.number}, {s.technique}") for s in LADDER),
                     *((p, label_of(name)) for name, p in TILES.items())]:
        used, (clocks, what) = p.resources(), p.step()
        worse, _ = p.step(writes=True)
        rows.append((label, f"{p.rows}x{p.columns}", p.stages, p.resident(),
                     *(round(used[x]) for x in ("tensor core", "shared memory", "L2")),
                     round(p.chain()), round(clocks), what,
                     f"{100 * used['tensor core'] / clocks:.0f} %",
                     f"{100 * used['tensor core'] / worse:.0f} %"))
    return table(["kernel", "sums of a CTA", "stages", "CTAs/SM", "tensor", "shared", "L2", "chain",
                  "a step", "what binds", "of the peak", "with writes"], rows)


def ladder_table(size=4096):
    """Times of whole products, and the book's."""
    rows = []
    for s in LADDER:
        shape = ONE_TILE.get(s.number, (size,) * 3)
        seconds, what = s.product.time(*shape)
        theirs, _ = (s.theirs or s.product).time(*shape)
        rows.append((s.number, s.technique, f"`{s.file}.tir`" if s.file else "not written yet",
                     "x".join(map(str, shape)), f"{seconds * 1e6:.1f}", what,
                     "" if s.number in ONE_TILE
                     else f"{2 * shape[0] * shape[1] * shape[2] / seconds / 1e12:.0f}",
                     f"{theirs * 1e6:.1f}" if s.book else "", f"{s.book * 1e3:g}" if s.book else ""))
    return table(["step", "technique", "file", "size", "predicted, us at least", "what binds",
                  "TFLOP/s at most", "the same of the book's kernel, us", "what the book measured, us"],
                 rows)


def attention_table():
    rows = []
    for a in ATTENTION:
        used, (clocks, what) = a.resources(), a.round()
        order = f"{a.in_order():.0f}: {a.rate(a.in_order()) / 1e12:.0f}" if a.blocks == 1 else ""
        rows.append((a.name, f"{a.blocks} x {a.rows}", *(round(x) for x in used.values()), what,
                     f"{a.rate(clocks) / 1e12:.0f}", order))
    return table(["kernel", "rows", "tensor", "shared", "exp2", "issue", "tensor memory", "what binds",
                  "TFLOP/s at most", "clocks if in order: TFLOP/s"], rows)


TABLES = {"numbers": number_table, "guesses": guess_table, "products": product_table,
          "ladder": ladder_table, "attention": attention_table}


def main(names):
    unknown = set(names) - set(TABLES)
    if unknown:
        sys.exit(f"no table {' '.join(sorted(unknown))}; there are {' '.join(TABLES)}")
    for name in names or TABLES:
        print(TABLES[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
