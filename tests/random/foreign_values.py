# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random expressions of CUDA C++ over the state of a thread, for foreign.py."""

WIDTH = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "i32": 32, "u64": 64, "i64": 64}
WAYS = "0123"


class Expressions:
    """Typed expressions over the state `s`, the thread `t` and local names, all of them defined in C++."""

    def __init__(self, rng, fast):
        self.rng, self.fast = rng, fast
        self.names = {}  # type -> local names

    def leaf(self, of):
        rng = self.rng
        own = self.names.get(of, [])
        if own and rng.random() < 0.4:
            return rng.choice(own)
        if of == "f32":
            return rng.choice(["s.f", "s.f", "to_f32(s.a)", "1.5f", "-0.0f", "0.1f", "3e38f", "1e-30f", "16777218.0f", "(f32)(i32)s.b"])
        if of == "f64":
            return rng.choice(["s.d", "s.d", "to_f64(s.c)", "0.1", "-0.0", "1e300", "5e-324", "4294967297.5", "(f64)(i64)s.c"])
        if of in ("h", "b"):
            return rng.choice(["(u16)s.h", "(u16)(s.h >> 16)", "(u16)s.a", "(u16)0x3c00", "(u16)0x3f80", "(u16)0x8000"])
        bits = WIDTH[of]
        if rng.random() < 0.25:
            number = rng.choice([0, 1, 2, 3, 7, 10, 255, 65535, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1, rng.getrandbits(bits)])
            return f"({of})0x{number & ((1 << bits) - 1):x}ull"
        return f"({of})" + rng.choice(["s.a", "s.b", "s.c", "s.h", "t", "(s.c >> 32)", "s.a", "s.b", "s.c", "P.x", "P.y",
                                       "table8[s.a & 15]", "table32[s.b & 15]", "table64[(t + s.a) & 7]", "text[s.b % 20]"])

    def condition(self, depth):
        rng = self.rng
        how = rng.random()
        if how < 0.2 and depth > 0:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||', '==', '!='])} {self.condition(depth - 1)})"
        if how < 0.3:
            return rng.choice([f"!{self.condition(depth - 1)}" if depth > 0 else "(t & 1)",
                    f"h_less({self.value('h', depth - 1)}, {self.value('h', depth - 1)})",
                               f"b_less({self.value('b', depth - 1)}, {self.value('b', depth - 1)})",
                                       f"h_unordered({self.value('h', depth - 1)}, {self.value('h', depth - 1)})",
                               f"is_nan({self.value(rng.choice(['f32', 'f64']), depth - 1)})"])
        of = rng.choice([*WIDTH, "f32", "f64"])
        return f"({self.value(of, depth - 1)} {rng.choice(['<', '<=', '>', '>=', '==', '!='])} {self.value(of, depth - 1)})"

    def integer(self, of, depth):
        rng, bits = self.rng, WIDTH[of]
        wide = "u64" if bits == 64 else "u32"
        v = lambda kind: self.value(kind, depth - 1)  # noqa: E731
        how = rng.random()
        if how < 0.30:
            return f"({of})(({wide}){v(of)} {rng.choice('+-*&|^')} ({wide}){v(of)})"
        if how < 0.40:
            amount = rng.choice([f"({v('u32')} & {bits - 1})", str(rng.randrange(bits))])
            return rng.choice([f"({of})(({wide}){v(of)} << {amount})", f"({of})({v(of)} >> {amount})", f"({of})~{v(of)}",
                               f"({of})(0 - ({wide}){v(of)})"])
        if how < 0.50:
            constant = rng.choice([1, 3, 7, 10, 100, 127])
            if of[0] == "u":
                by = rng.choice([f"({of})({v(of)} | 1)", f"({of}){constant}"])
            else:
                by = rng.choice([f"({of})(({v(of)} & {(1 << min(bits, 16) - 2) - 1}) + 1)", f"({of}){constant}", f"({of})-{constant + 1}"])
            return f"({of})({v(of)} {rng.choice('/%')} {by})"
        if how < 0.56:
            return f"({of})({self.condition(depth - 1)} ? {v(of)} : {v(of)})"
        if how < 0.62:
            return f"{rng.choice(['least', 'most'])}<{of}>({v(of)}, {v(of)})"
        if how < 0.72:
            source = rng.choice(list(WIDTH))
            return f"({of}){v(source)}"
        if how < 0.80:
            return f"({of}){self.float_bits(depth)}"
        if bits == 64:
            return f"({of})" + rng.choice([
                lambda: f"mul_hi({v('u64')}, {v('u64')})", lambda: f"mul_hi_s({v('i64')}, {v('i64')})", lambda: f"ones({v('u64')})",
                lambda: f"leading({v('u64')})", lambda: f"first({v('u64')})", lambda: f"turned({v('u64')})",
                lambda: f"field_s({v('i64')}, {v('u32')}, {v('u32')})", lambda: f"wide_sum({v('u64')}, {v('u64')}, {v('u64')})",
                lambda: f"borrowed({v('u64')}, {v('u64')})", lambda: f"((u64){v('u32')} * {v('u32')})", lambda: f"((i64){v('i32')} * {v('i32')})",
                lambda: f"(u64)(((u128){v('u64')} * {v('u64')} + {v('u64')}) >> {rng.choice([1, 17, 63, 64, 70])})",
                lambda: f"(u64)((((u128){v('u64')} << 64) | {v('u64')}) {rng.choice('/%')} ((u128){v('u64')} + 1))",
                lambda: f"(u64)((((__int128){v('i64')} << 40) + {v('i64')}) / (__int128)({v('i32')} | 1))"])()
        if bits == 32:
            ternary = ["permuted", "funnel_l", "funnel_r", "funnel_lc", "funnel_rc", "apart", "dot4", "dot2", "field",
                       f"logic<0x{rng.getrandbits(8):x}>"]
            binary = ["mul_hi", "mul24", "mean", "spread", "masked", "sum16", "v_add4", "v_sub2", "v_addss4", "v_addus2", "v_subss2", "v_subus4",
                      "v_maxs2", "v_minu4", "v_maxu2", "v_mins4", "v_apart4", "v_aparts2", "v_mean4", "v_means2", "v_less4", "v_above2",
                      "v_same4", "v_half4"]
            return f"({of})" + rng.choice([
                lambda: f"{rng.choice(ternary)}({v('u32')}, {v('u32')}, {v('u32')})", lambda:
                        f"{rng.choice(ternary)}({v('u32')}, {v('u32')}, {v('u32')})",
                lambda: f"{rng.choice(binary)}({v('u32')}, {v('u32')})", lambda: f"{rng.choice(binary)}({v('u32')}, {v('u32')})",
                lambda: f"{rng.choice(binary)}({v('u32')}, {v('u32')})", lambda:
                        f"{rng.choice(['ones', 'leading', 'first', 'turned'])}({v('u32')})",
                lambda: f"{rng.choice(['mul_hi_s', 'mul24s', 'mean_up', 'sum_sat'])}({v('i32')}, {v('i32')})",
                lambda: f"dot4s({v('u32')}, {v('u32')}, {v('i32')})", lambda: f"dot2s({v('u32')}, {v('u32')}, {v('i32')})",
                lambda: f"apart_s({v('i32')}, {v('i32')}, {v('u32')})", lambda: f"nth({v('u32')}, {v('u32')}, (i32)({v('i32')} % 9))",
                lambda: f"inserted({v('u32')}, {v('u32')}, {v('u32')} & 63, {v('u32')} & 63)", lambda: f"chosen({v('u32')}, {v('u32')}, {v('i32')})",
                lambda: f"compared({v('u32')}, {v('i32')})", lambda: f"multi({v('u32')}, {v('u32')})",
                lambda: f"{rng.choice(['h', 'b'])}_pair_fma({v('u32')}, {v('u32')}, {v('u32')})"])()
        return f"({of})" + rng.choice([lambda: f"e4m3({v('f32')})", lambda: f"e5m2({v('f32')})", lambda: f"e5m2_open({v('f32')})",
                                       lambda: v("h"), lambda: v("u32")])()

    def float_bits(self, depth):
        rng = self.rng
        v = lambda kind: self.value(kind, depth - 1)  # noqa: E731
        way = rng.choice(WAYS)
        return rng.choice([
            lambda: f"bits({v('f32')})", lambda: f"bits({v('f64')})", lambda: v("h"), lambda: v("b"),
            lambda: f"float2{rng.choice(['int', 'uint', 'll', 'ull'])}_{way}({v('f32')})", lambda:
                    f"double2{rng.choice(['int', 'uint', 'll', 'ull'])}_{way}({v('f64')})",
            lambda: f"f_exponent({v('f32')})", lambda: f"d_exponent({v('f64')})", lambda: f"h_to_i32({v('h')})"])()

    def float(self, of, depth):
        rng = self.rng
        p = {"f32": "f", "f64": "d"}[of]
        v = lambda kind: self.value(kind, depth - 1)  # noqa: E731
        how, way = rng.random(), rng.choice(WAYS + "000")
        slow = self.fast and of == "f32"  # approximate, or without subnormals
        if how < 0.4:
            return f"{p}{rng.choice(['add', 'sub', 'mul'])}_{way}({v(of)}, {v(of)})"
        if how < 0.5:
            return f"fma{'f' if of == 'f32' else ''}_{way}({v(of)}, {v(of)}, {v(of)})"
        if how < 0.56 and not slow:
            return rng.choice([lambda: f"{p}div_{way}({v(of)}, {v(of)})", lambda: f"{p}sqrt_{way}({v(of)})"])()
        if how < 0.66:
            return f"{p}_{rng.choice(['min', 'max', 'sign'])}({v(of)}, {v(of)})"
        if how < 0.76:
            one = ["abs", "neg", "floor", "ceil", "trunc", "rint", "round"] + (["sat"] if of == "f32" else [])
            return f"{p}_{rng.choice(one)}({v(of)})"
        if how < 0.82 and not slow:
            return rng.choice([lambda: f"{p}_mod({v(of)}, {v(of)})", lambda: f"{p}_remainder({v(of)}, {v(of)})",
                               lambda: f"{p}_scaled({v(of)}, {v('i32')})",
                               lambda: f"{p}_next({v(of)}, {v(of)})", lambda: f"{p}_fraction({v(of)})"])()
        if how < 0.86:
            return f"({self.condition(depth - 1)} ? {v(of)} : {v(of)})"
        if of == "f32":
            return rng.choice([lambda: f"{rng.choice(['int2float', 'uint2float', 'll2float', 'ull2float'])}_{way}({v(rng.choice(['i32', 'u32', 'i64', 'u64']))})",
                               lambda: f"double2float_{way}({v('f64')})", lambda: f"to_f32({v('u32')})", lambda: f"h_float({v('h')})",
                               lambda: f"b_float({v('b')})"])()
        return rng.choice([lambda: f"{rng.choice(['ll2double', 'ull2double'])}_{way}({v('u64')})", lambda: f"i2d({v('i32')})",
                           lambda: f"f2d({v('f32')})",
                           lambda: f"to_f64({v('u64')})"])()

    def half(self, of, depth):
        rng = self.rng
        v = lambda kind: self.value(kind, depth - 1)  # noqa: E731
        how = rng.random()
        if how < 0.4:
            return f"{of}_{rng.choice(['add', 'sub', 'mul', 'min', 'max', 'min_nan'])}({v(of)}, {v(of)})"
        if how < 0.55:
            return f"{of}_{rng.choice(['fma', 'fma', 'relu'])}({v(of)}, {v(of)}, {v(of)})"
        if how < 0.65:
            return f"{of}_{rng.choice(['neg', 'abs'])}({v(of)})"
        if how < 0.85 or of == "b":
            return rng.choice([lambda: f"{of}_of_f32_{rng.choice(WAYS)}({v('f32')})", lambda: f"{of}_double({v('f64')})"])()
        return rng.choice([lambda: f"h_of_i32({v('i32')})", lambda: f"h_of_u64({v('u64')})", lambda: f"of_e4m3({v('u8')})",
                           lambda: f"of_e5m2({v('u8')})"])()

    def value(self, of, depth):
        if depth <= 0 or self.rng.random() < 0.08:
            return self.leaf(of)
        if of in ("h", "b"):
            return self.half(of, depth)
        return self.integer(of, depth) if of in WIDTH else self.float(of, depth)

    def store(self, depth):
        """A statement that changes the state."""
        of, target = self.rng.choice([("u32", "s.a"), ("u32", "s.b"), ("u64", "s.c"), ("f32", "s.f"), ("f64", "s.d"), ("h", "h"), ("b",
                                                                                                                                   "b"),
                                                                                                                                   ("i32",
                                                                                                                                    "s.a"),
                                                                                                                                    ("u8", "s.b"), ("i64", "s.c"), ("i16", "s.b")])
        value = self.value(of, depth)
        if target in ("h", "b"):
            return f"s.h = s.h << 16 | {value};"
        if of in ("f32", "f64"):
            return f"{target} = {value};"
        return f"{target} = {value};" if self.rng.random() < 0.4 else f"{target} {self.rng.choice(['+=', '^=', '-='])} {value};"
