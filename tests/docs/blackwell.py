# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/blackwell.md: after a comment `<!-- table: NAME -->` stands what is made here, of the model
(tools/blackwell_model.py), of receipts, of PTX, or of ptxas where it is the one that the table names. And the
model's kernels are those of the receipts.

Usage: blackwell.py TIRC PAGE [--update]   --update writes the tables anew.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(ROOT / "tools"))

import blackwell_model as model  # noqa: E402

TABLE = re.compile(r"(?<=<!-- table: )(\w+)( -->\n\n)((?:(?:\||- `).*\n)*)")
BY_HAND = "blackwell_attention/attention.tir"
LADDER = sorted((EXAMPLES / "blackwell_ladder").glob("*.tir"))
# Tile programs: what the passes make of them is counted and assembled, too.
TILES = [("gemm", "03_gemm/gemm.tir"), ("matmul", "03_gemm/matmul.tir"),
         ("full", "attention/forward.tir")]
PAIR = [f"-D{name}={value}" for name, value in model.PAIR.items()]
SMALL = [*TILES, ("row_scales", "13_fp8/fp8.tir"), ("planned", "14_grouped/grouped.tir")]
COUNTED = {  # what is counted of a PTX entry
    "products": r"tcgen05\.mma", "commits": r"tcgen05\.commit", "loads": r"tcgen05\.ld",
    "stores": r"tcgen05\.st", "tensor copies": r"cp\.async\.bulk\.tensor",
    "waits": r"mbarrier\.try_wait", "arrivals": r"mbarrier\.arrive",
    "fences": r"tcgen05\.fence",
}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done


class Compiler:
    def __init__(self, tirc):
        self.tirc, self.receipts, self.texts = tirc, {}, {}

    def best(self, path, arch, *options):
        """The best variant of each kernel of a file."""
        key = path, arch, options
        if key not in self.receipts:
            said = run(self.tirc, "check", "--receipt=json", EXAMPLES / path, f"--arch={arch}", *options)
            kernels = {}
            for variant in json.loads(said.stdout)["variants"]:
                kernels.setdefault(variant["kernel"], [r["text"] for r in variant["records"]])
            self.receipts[key] = kernels
        return self.receipts[key]

    def ptx(self, path, entry, arch, *options):
        """PTX with one entry of a file."""
        key = path, entry, arch, options
        if key not in self.texts:
            made = run(self.tirc, "build", EXAMPLES / path, f"--arch={arch}", "--emit=ptx", "-o", "-",
                       *options).stdout
            head, *entries = re.split(r"(?=^\.visible \.entry )", made, flags=re.M)
            self.texts[key] = head + next(
                e for e in entries if re.match(rf"\.visible \.entry {entry}\(", e))
        return self.texts[key]


def part(texts, start):
    """What records that begin with `start` say."""
    return [t[len(start):].removesuffix("; not run on silicon") for t in texts if t.startswith(start)]


def unique(texts):
    return list(dict.fromkeys(texts))


def kernels(compiler):
    """The kernels that have one of their own: not configurations of another, and steps by their number."""
    files = sorted(p.relative_to(EXAMPLES).as_posix() for p in EXAMPLES.glob("*/*.tir")
                   if p.parent.name not in ("gemm_ladder", "blackwell_ladder", "blackwell_scales",
                                            "blackwell_attention"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = pool.map(lambda f: compiler.best(f, "sm_100a"), files)
        for file, found in zip(files, made):
            for name, texts in found.items():
                if not re.search(r"__\d", name) and part(texts, "dot: "):
                    yield file, name, texts


def kernel_table(compiler):
    """A row for all kernels of a file that have the same products."""
    rows = {}
    for file, name, texts in kernels(compiler):
        dots = part(texts, "dot: ")
        on = unique(re.sub(r", \d+ of a thread", "", d.removeprefix("tcgen05 "))
                    for d in dots if d.startswith("tcgen05"))
        other = unique(d.split()[0] for d in dots if d.startswith("mma.sync"))
        why = unique(d.removeprefix("no tcgen05: ") for d in dots if d.startswith("no tcgen05"))
        columns = re.findall(r"(\d+) columns", " ".join(part(texts, "roles: ")))
        key = f"`{file}`", "; ".join(on + other), "".join(columns[:1]), "; ".join(why)
        rows.setdefault(key, []).append(f"`{name}`")
    return model.table(["file", "kernels", "products", "columns", "why not tcgen05"],
                       [(file, ", ".join(names), *rest) for (file, *rest), names in rows.items()])


def small_table(compiler):
    rows = []
    for name, file in SMALL:
        texts = compiler.best(file, "sm_120a")[name]
        copies = unique(re.sub(r"^copy of \w+: ", "", t) for t in texts if t.startswith("copy of"))
        rows.append((f"`{file}`", "; ".join(unique(part(texts, "dot: "))), "; ".join(copies),
                     "; ".join((part(texts, "ring: ") + part(texts, "loop: "))[:1]), part(texts, "shared memory: ")[0]))
    return model.table(["file", "products", "copies", "loop", "shared memory"], rows)


def counted_kernels(compiler):
    """(name of the row, file, entry, options): kernels by hand, then what the passes make of tile programs."""
    for path in LADDER:
        yield f"`{path.name}`", path, next(iter(compiler.best(path, "sm_100a"))), []
    yield f"`{BY_HAND.removesuffix('/attention.tir')}`", BY_HAND, "attention", []
    for name, file in TILES:
        yield f"`{file.rsplit('/', maxsplit=1)[-1]}`", file, name, []
    yield model.label_of("matmul.pair"), "03_gemm/matmul.tir", "matmul", PAIR


def count_table(compiler):
    rows = []
    for label, path, entry, options in counted_kernels(compiler):
        text = compiler.ptx(path, entry, "sm_100a", *options)
        texts = compiler.best(path, "sm_100a", *options)[entry]
        rows.append((label, part(texts, "threads: ")[0].split()[0],
                     part(texts, "shared memory: ")[0].removesuffix(" bytes"),
                     *(len(re.findall(pattern, text)) for pattern in COUNTED.values())))
    return model.table(["kernel", "threads", "bytes shared", *COUNTED], rows)


def assemble(ptxas, compiler):
    """A row for each kernel: registers, which a thread gets in eights, and bytes of spills on each target."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "entry.ptx")
        for label, path, entry, options in counted_kernels(compiler):
            row = [label]
            for arch in ("sm_100a", "sm_103a"):
                file.write_text(compiler.ptx(path, entry, arch, *options), encoding="utf-8")
                said = run(ptxas, f"-arch={arch}", "-v", "-o", os.devnull, file)
                log = said.stdout + said.stderr
                row += [-(-int(re.search(r"Used (\d+) registers", log)[1]) // 8) * 8,
                        re.search(r"(\d+) bytes spill stores", log)[1]]
            yield row


def register_table(compiler, old):
    """As it was, if there is no ptxas or another one."""
    ptxas = shutil.which("ptxas") or shutil.which("/usr/local/cuda/bin/ptxas")
    if not ptxas:
        return old
    version = re.search(r"V[\d.]+", run(ptxas, "--version").stdout)[0]
    named = re.search(r"V[\d.]+", old)
    if named and named[0] != version:
        return old
    return model.table([f"ptxas {version}", "registers, sm_100a", "bytes spilled", "registers, sm_103a",
                        "bytes spilled"], assemble(ptxas, compiler))


def modelled(compiler):
    """Yields where the model's kernels are not those of the receipts."""
    listed = {s.file: s.product for s in model.LADDER if s.file}
    if sorted(listed) != [p.stem for p in LADDER]:
        yield f"the model has the steps {sorted(listed)}, the ladder {[p.stem for p in LADDER]}"
        return
    whole = [(p.name, p, None, listed[p.stem], []) for p in LADDER]
    whole += [(name, file, name, model.TILES[name], []) for name, file in TILES if name in model.TILES]
    whole.append(("matmul.pair", "03_gemm/matmul.tir", "matmul", model.TILES["matmul.pair"], PAIR))
    for label, path, name, product, options in whole:
        best = compiler.best(path, "sm_100a", *options)
        texts = next(iter(best.values())) if name is None else best[name]
        rows, columns = re.match(r"tcgen05 m(\d+)n(\d+)k", part(texts, "dot: ")[0]).groups()
        if (int(rows), int(columns)) != (min(product.rows, 128) * product.ctas, product.columns):
            yield f"{label}: products of {rows}x{columns}, in the model {product.rows}x{product.columns}"
        stages = re.match(r"(\d+) stages of (\d+) bytes", (part(texts, "loop: ") or [""])[0])
        if stages and tuple(map(int, stages.groups())) != (product.stages, product.step_bytes()):
            yield f"{label}: {stages[0]}, in the model {product.stages} of {product.step_bytes()}"
        if stages is None:
            held = sum(int(n) for n in re.findall(r"[AB]s at \d+, (\d+) bytes", " ".join(texts)))
            if held != product.stages * product.step_bytes():
                yield f"{label}: {held} bytes of operands, in the model {product.stages * product.step_bytes()}"
        roles = (part(texts, "roles: ") or [""])[0]
        taken = re.search(r"(\d+) columns", roles)
        if taken and int(taken[1]) != product.buffers * product.columns:
            yield f"{label}: {taken[0]}, in the model {product.buffers * product.columns}"
    for size, wanted in ((128, model.ATTENTION[0]), (64, model.ATTENTION[2])):
        texts = compiler.best("attention/forward.tir", "sm_100a", "--kernel=full", "-D", f"D={size}")["full"]
        dots = part(texts, "dot: ")
        rows = {re.match(r"tcgen05 m(\d+)", d)[1] for d in dots}
        blocks = int(re.match(r"(\d+) warps compute", part(texts, "roles: ")[0])[1]) // 4
        in_shared = not any("A from tensor memory" in d for d in dots)
        if (rows, blocks, in_shared) != ({str(wanted.rows)}, wanted.blocks, wanted.p_shared):
            yield f"attention, D = {size}: {dots}, {blocks} warpgroups compute"
    wanted = model.ATTENTION[3]
    dots = part(compiler.best(BY_HAND, "sm_100a")["attention"], "dot: tcgen05 ")
    if len([d for d in dots if "A from tensor memory" not in d]) != wanted.queries_read:
        yield f"{BY_HAND}: {dots}"


def main(tirc, page, update):
    page, compiler = pathlib.Path(page), Compiler(tirc)
    text = page.read_text(encoding="utf-8")
    made = {**model.TABLES, "kernels": lambda: kernel_table(compiler), "small": lambda: small_table(compiler),
            "counts": lambda: count_table(compiler)}

    def fill(match):
        name = match[1]
        new = register_table(compiler, match[3]) if name == "registers" else made[name]()
        return name + match[2] + new

    wrong = list(modelled(compiler))
    names = [m[1] for m in TABLE.finditer(text)]
    if sorted(names) != sorted([*made, "registers"]):
        wrong.append(f"{page.name} has the tables {sorted(names)}, not {sorted([*made, 'registers'])}")
    new = TABLE.sub(fill, text)
    if update:
        page.write_text(new, encoding="utf-8")
    elif new != text:
        old, lines = text.splitlines(), new.splitlines()
        wrong += [f"- {a}\n+ {b}" for a, b in zip(old, lines) if a != b][:6]
        wrong.append(f"tables of {page.name} are stale: write them anew with --update")
    print("\n".join(wrong) or f"{len(names)} tables")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2], "--update" in sys.argv[3:]))
