#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of tile programs on warpgroups, in every position that one can have to another.

usage: warpgroup_products.py TIRC

Each program below is the body of a tiles loop. It runs on the emulator under full checks, and must
give what the interpreter gives; its receipt must say as many products on warpgroups, and on as many
warpgroups, as stand here; it has one line for those of a loop that is unrolled. Where there is ptxas,
it must not serialise them, and nothing may spill.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

PARAMS = """A: bf16[M, 64], B: bf16[64, 64], C: bf16[64, 64], W: bf16[256, K], X: bf16[M, K],
    Y: bf16[K, 64], n: i64"""
# Of programs that use them.
OTHERS = {"O": "out f32[M, 64]", "P": "out f32[M, 64]", "Q": "out f32[M, 256]",
          "I": "inout i32[4]", "F": "f32[M, 32]", "G": "f32[2, 2, 2, M, 32]",
          "R": "out bf16[6, 300, 16]", "V": "f32[128, K]", "Z": "f32[M, K]", "H": "i8[128, K]",
          "E": "bf16[20, M, K]", "J": "f16[M, 64]", "L": "f16[K, 64]", "T": "out f16[M, 64]"}
SIZES = ["K=192", "n=2"]

# Name: rows of a tile, products on warpgroups, warpgroups, what the tiles loop does.
PROGRAMS = {
    "chain of A from registers": (64, 2, 1, """
        let a = f32(A[m:+64, :]);
        O[m:+64, :] = dot(bf16(a * 2), B[:, :]) + dot(bf16(a * 3), C[:, :]);"""),
    "long chain": (64, 1, 1, """
        let a = f32(A[m:+64, :]);
        var s: f32[64, 64] = 0;
        for i in range(1, 7, unroll) { s += dot(bf16(a * (f32(i) + 0.5)), B[:, :]); }
        O[m:+64, :] = s;"""),
    "chain in a loop": (128, 3, 2, """
        var s: f32[128, 64] = 0;
        for k in range(0, K, 64) {
            let x = f32(X[m:+128, k:+64]);
            s += dot(bf16(x * 2), Y[k:+64, :]) + dot(X[m:+128, k:+64], Y[k:+64, :])
                + dot(bf16(x + 1), Y[k:+64, :]);
        }
        O[m:+128, :] = s;"""),
    "operand of the next twice": (64, 2, 1, """
        let s = dot(A[m:+64, :], B[:, :]);
        O[m:+64, :] = dot(bf16(s), bf16(s));"""),
    "operand and sum of the next": (64, 2, 1, """
        let s = dot(A[m:+64, :], B[:, :]);
        O[m:+64, :] = s + dot(bf16(s * 0.1), C[:, :]);"""),
    "two carried sums": (64, 3, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let p = dot(A[m:+64, :], Y[k:+64, :].T) * 0.1;
            s += dot(bf16(p), Y[k:+64, :]);
            t += dot(bf16(p * p), Y[k:+64, :]);
        }
        O[m:+64, :] = s;
        P[m:+64, :] = t;"""),
    "two sums without a loop": (64, 3, 1, """
        let p = dot(A[m:+64, :], B[:, :].T) * 0.1;
        let s = dot(bf16(p), B[:, :]);
        let t = dot(bf16(p * p), C[:, :]);
        O[m:+64, :] = s * p;
        P[m:+64, :] = t + p;"""),
    "in branches": (64, 3, 1, """
        let a = f32(A[m:+64, :]);
        var s = dot(bf16(a), B[:, :]);
        if n > 1 { s += dot(bf16(a * 2), B[:, :]); } else { s = dot(bf16(a * 3), C[:, :]); }
        O[m:+64, :] = s;"""),
    "operand that is kept": (64, 3, 1, """
        let p = bf16(f32(A[m:+64, :]) * 0.5);
        let s = dot(p, B[:, :]);
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) { t += dot(p, Y[k:+64, :]); }
        O[m:+64, :] = s + dot(p, C[:, :]);
        P[m:+64, :] = t;"""),
    "sum that is kept": (64, 3, 1, """
        let a = f32(A[m:+64, :]);
        let s = dot(A[m:+64, :], B[:, :]);
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) { t = s + dot(bf16(a + f32(k)), Y[k:+64, :]); }
        O[m:+64, :] = s + dot(bf16(a * 2), C[:, :]);
        P[m:+64, :] = s * t;"""),
    "sum that begins with a number": (64, 1, 1, """
        O[m:+64, :] = dot(bf16(2 * f32(A[m:+64, :])), B[:, :]) + 3;"""),
    "six sums": (64, 6, 1, """
        let a = f32(A[m:+64, :]);
        let s = dot(A[m:+64, :], B[:, :]);
        let t = dot(A[m:+64, :], C[:, :]);
        let u = dot(bf16(a * 2), B[:, :].T);
        let v = dot(bf16(a * 3), C[:, :].T);
        let w = dot(bf16(a * 4), B[:, :]);
        let x = dot(bf16(a * 5), C[:, :]);
        O[m:+64, :] = s * x + t * w;
        P[m:+64, :] = u * v - s * t;"""),
    "two sums of 256 columns": (64, 2, 2, """
        var s: f32[64, 256] = 0;
        var t: f32[64, 256] = 0;
        for k in range(0, K, 64) {
            s += dot(X[m:+64, k:+64], W[:, k:+64].T);
            t += dot(bf16(f32(A[m:+64, :]) * 0.5), W[:, k:+64].T);
        }
        Q[m:+64, :] = s - t * t;"""),
    "three warpgroups": (192, 1, 3, """
        var s: f32[192, 256] = 0;
        for k in range(0, K, 64) { s += dot(X[m:+192, k:+64], W[:, k:+64].T); }
        Q[m:+192, :] = s;"""),
    "columns split, then an operand": (64, 3, 2, """
        let s = dot(A[m:+64, :], W[:, 0:+64].T);
        let t = dot(A[m:+64, :], W[:, 64:+64].T);
        Q[m:+64, :] = s + t;
        O[m:+64, :] = dot(bf16(s * 0.1), W[:, 64:+64]);"""),
    "beside a product on mma.sync": (128, 2, 2, """
        var s: f32[128, 64] = 0;
        var t: f32[16, 64] = 0;
        for k in range(0, K, 64) {
            s += dot(X[m:+128, k:+64], Y[k:+64, :]);
            t += dot(B[0:+16, :], Y[k:+64, :]);
        }
        O[m:+128, :] = s + dot(bf16(s * 0.1), C[:, :]);
        P[m:+128, :] = s * max(t, axis = 0);"""),
    "a tile copied between the products of another": (64, 4, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let c = A[m:+64, 0:+1];
            let g = dot(X[m:+64, k:+64], Y[k:+64, :].T) * 0.1;
            t += dot(bf16(g), W[0:+64, k:+64]) + f32(c) * dot(X[m:+64, k:+64], bf16(s));
            s += dot(bf16(f32(Y[k:+64, :]) * 0.5).T, W[0:+64, k:+64]) * 0.1;
        }
        O[m:+64, :] = t;
        P[m:+64, :] = s;"""),
    "carried by a while loop": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        var i: i64 = 0;
        while i < n {
            i += 1;
            s += dot(bf16(t), B[:, :]);
            t = 0.1 * t + dot(A[m:+64, :], C[:, :]);
        }
        O[m:+64, :] = s;
        P[m:+64, :] = t;"""),
    "two sums that a loop swaps": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        for k in range(0, K, 64) {
            let u = dot(X[m:+64, k:+64], Y[k:+64, :], s);
            s = t;
            t = u;
        }
        O[m:+64, :] = s + 2 * t;"""),
    "three sums that a loop gives on in turn": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        var u: f32[64, 64] = 2;
        for k in range(0, K, 64) {
            let v = dot(X[m:+64, k:+64], Y[k:+64, :], s);
            s = t;
            t = u;
            u = v;
        }
        O[m:+64, :] = s + 2 * t + 3 * u;"""),
    "both of two swapped sums grow": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        for k in range(0, K, 64) {
            let u = dot(X[m:+64, k:+64], Y[k:+64, :], s);
            s = dot(A[m:+64, :], Y[k:+64, :], t);
            t = u;
        }
        O[m:+64, :] = s + 2 * t;"""),
    "two sums that a branch swaps": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        for k in range(0, K, 64) {
            s = dot(X[m:+64, k:+64], Y[k:+64, :], s);
            if k < 64 * n {
                let u = s;
                s = t;
                t = u;
            }
        }
        O[m:+64, :] = s + 2 * t;"""),
    "two sums that a while loop swaps": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        var i: i64 = 0;
        while i < n + 1 {
            let u = dot(A[m:+64, :], Y[64 * i:+64, :], s);
            s = t;
            t = u;
            i += 1;
        }
        O[m:+64, :] = s + 2 * t;"""),
    "a sum that is used two rounds later": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        for k in range(0, K, 64) {
            let u = dot(X[m:+64, k:+64], Y[k:+64, :], s);
            s = t;
            t = s + u;
        }
        O[m:+64, :] = s + 2 * t;"""),
    "sums that are the operand a round later": (64, 1, 1, """
        var a = J[m:+64, :];
        for k in range(0, K, 64) { a = dot(a, L[k:+64, :], full(0, f16, 64, 64)); }
        T[m:+64, :] = a;"""),
    "sums that are the operand, in two loops": (64, 1, 1, """
        var a = J[m:+64, :];
        for k in range(0, n) {
            for l in range(0, K, 64) { a = dot(a, L[l:+64, :], full(0, f16, 64, 64)); }
            a = a * 0.002;
        }
        T[m:+64, :] = a;"""),
    "copies whose readers overlap in a chain": (64, 6, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let x = X[m:+64, k:+64];
            let w = W[0:+64, k:+64];
            let y = Y[k:+64, :];
            let a = dot(x, x.T) * 0.1;
            let b = dot(bf16(a), y) * 0.1;
            let c = dot(bf16(b), x) * 0.1;
            let d = dot(bf16(c), w) * 0.1;
            let e = dot(bf16(d), y.T) * 0.1;
            s += dot(bf16(e), w.T);
        }
        O[m:+64, :] = s;"""),
    "copied from where a product says, between the readers of another": (64, 3, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let g = dot(X[m:+64, k:+64], X[m:+64, k:+64].T) * 0.1;
            let j = i64(max(min(abs(g), 3)));
            s += dot(bf16(g), Y[j:+64, :]) + dot(bf16(s * 0.1), X[m:+64, k:+64]);
        }
        O[m:+64, :] = s;"""),
    "copied from where memory says that is written": (64, 5, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let g = dot(X[m:+64, k:+64], X[m:+64, k:+64].T) * 0.1;
            let h = dot(bf16(g), Y[i64(I[3] & 63):+64, :]) * 0.1;
            let u = dot(bf16(h), X[m:+64, k:+64]) * 0.1;
            I[m / 64] = i32(k);
            let v = dot(bf16(u), W[i64(I[2] & 7):+64, k:+64]) * 0.1;
            s += dot(bf16(v), Y[i64(I[3] & 63):+64, :].T);
        }
        O[m:+64, :] = s;"""),
    "copied between the readers of another, without a loop": (64, 3, 1, """
        let g = dot(A[m:+64, :], A[m:+64, :].T) * 0.1;
        let h = dot(bf16(g), B[i64(I[3] & 31):+64, :]) * 0.1;
        O[m:+64, :] = dot(bf16(h), A[m:+64, :]);
        I[m / 64] = 5;"""),
    "copied from where a branch says, between the readers of another": (64, 3, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let g = dot(X[m:+64, k:+64], X[m:+64, k:+64].T) * 0.1;
            var j = k;
            if k > 64 { for i in range(0, n) { j -= 2 * i; } }
            s += dot(bf16(g), Y[j:+64, :]) + dot(bf16(s * 0.1), X[m:+64, k:+64]);
        }
        O[m:+64, :] = s;"""),
    "operand of the first of two products that add to it": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            s += dot(bf16(s), B[:, :]);
            s += dot(A[m:+64, :], Y[k:+64, :]);
        }
        O[m:+64, :] = s;"""),
    "a sum that is given on, and what another product adds to": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 1;
        for k in range(0, K, 64) {
            s = dot(bf16(t), B[:, :], s);
            t = dot(bf16(s), Y[k:+64, :], s);
            if n < 2 { break; }
        }
        O[m:+64, :] = s;"""),
    "a tile stored by threads, and then by the copy engine": (64, 1, 1, """
        O[m:+64, :] = full(1, f32, 64, 64);
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]);"""),
    "rows that are apart by a stride": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            s += dot(X[m:+64:2, k:+64], W[n:+64:3, k:+64].T);
            t += dot(X[m - 5:+64:8, k:+64], W[iota(64) + i32(n), k:+64].T);
        }
        O[m:+64, :] = s;
        P[m:+64, :] = t;"""),
    "rows that are apart by a stride above 8": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) { s += dot(X[m:+64:9, k:+64], W[0:+64, k:+64].T); }
        O[m:+64, :] = s;"""),
    "planes and rows that are apart by a stride": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let x = E[n:+8:2, m:+8, k:+64];
            s += dot(reshape(x, 64, 64), W[0:+64, k:+64].T);
        }
        O[m:+64, :] = s;"""),
    "both operands rounded from f32": (128, 1, 2, """
        var s: f32[128, 128] = 0;
        for k in range(0, K, 32, stages = 3) { s += dot(tf32(Z[m:+128, k:+32]), tf32(V[:, k:+32]).T); }
        Q[m:+128, :] = concat(s, s, axis = 1);"""),
    "three products of parts of f32": (64, 3, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 32) {
            let x = Z[m:+64, k:+32];
            let y = V[0:+64, k:+32];
            let dx = tf32(x - f32(tf32(x)));
            let dy = tf32(y - f32(tf32(y)));
            s += dot(dx, tf32(y).T) + dot(tf32(x), dy.T) + dot(tf32(x), tf32(y).T);
        }
        O[m:+64, :] = s;"""),
    "second operand from 8 bits, with a factor": (64, 1, 1, """
        var s: f32[64, 128] = 0;
        for k in range(0, K, 64) {
            let w = f32(H[:, k:+64]) * V[:, k / 64][:, None];
            s += dot(X[m:+64, k:+64], bf16(w * 0.01).T);
        }
        Q[m:+64, :] = concat(s, s, axis = 1);"""),
    "copied ahead for a product behind another": (64, 2, 1, """
        var s: f32[64, 64] = 0;
        var t: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            s += dot(X[m:+64, k:+64], Y[k:+64, :]);
            t += dot(X[m:+64, k:+64], bf16(f32(W[0:+64, max(k, n):+64]) * 0.5).T);
        }
        O[m:+64, :] = s;
        P[m:+64, :] = t;"""),
    "copied ahead, rounds that are skipped": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for i in range(0, n + 1) {
            for k in range(64 * i, K, 64, stages = 2) {
                s += dot(X[m:+64, k:+64], bf16(H[0:+64, k:+64]).T);
            }
        }
        O[m:+64, :] = s;"""),
    "copied ahead, some of it masked": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let w = load(V[0:+64, k:+64], mask = (rows(full(0, f32, 64, 64)) + i32(k)) % 3 != 1);
            s += dot(X[m:+64, k:+64], bf16(w).T);
        }
        O[m:+64, :] = s;"""),
    "computed from, and used beside the product": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let w = f32(W[0:+64, k:+64]);
            s += dot(X[m:+64, k:+64], bf16(w * 0.5).T) + w;
        }
        O[m:+64, :] = s;"""),
    "computed beside rows that a table names": (64, 1, 1, """
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            let r = m + i64(iota(64)) / 2;
            s += dot(X[r, k:+64], bf16(f32(W[0:+64, k:+64]) * 0.5).T);
        }
        O[m:+64, :] = s;"""),
    "a buffer that is filled twice": (64, 1, 1, """
        shared f: f32[64, 32];
        f[:, :] = F[m:+64, :];
        let x = f[0:+64, 31];
        f[:, :] = F[m + 1:+64, :];
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]) + x[:, None] - f[0:+64, 30][:, None];"""),
    "a buffer that is filled in a loop and read behind it": (64, 1, 1, """
        shared f: f32[64, 32];
        var s: f32[64, 64] = 0;
        for k in range(0, K, 64) {
            f[:, :] = F[m + k:+64, :];
            s += dot(A[m:+64, :], B[:, :]);
        }
        O[m:+64, :] = s + f[0:+64, 31][:, None];"""),
    "a buffer that is filled in a branch": (64, 1, 1, """
        shared f: f32[64, 32];
        f[:, :] = full(1, f32, 64, 32);
        if n > 1 { f[:, :] = F[m:+64, :]; }
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]) + f[0:+64, 31][:, None];"""),
    "a buffer that is changed once it is filled": (64, 1, 1, """
        shared f: f32[64, 32];
        f[:, :] = F[m:+64, :];
        f[3, 5] = 7;
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]) + f[0:+64, 5][:, None];"""),
    "a buffer of as many dimensions as there can be": (64, 1, 1, """
        shared g: f32[2, 2, 2, 8, 32];
        g[:, :, :, :, :] = G[0:+2, 0:+2, 0:+2, m:+8, :];
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]) + g[1, 1, 1, 3, 5];"""),
    "a tile stored in boxes that do not begin where they may": (64, 1, 1, """
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]);
        R[m / 64 * 3:+3, 0:+300, :] = full(2, bf16, 3, 300, 16);"""),
    "a tile stored in every round": (64, 1, 1, """
        for i in range(0, n + 1) { O[m:+64, :] = dot(A[m:+64, :], B[:, :]) + f32(i); }"""),
    "parts of a tile stored one over the other": (64, 2, 1, """
        O[m:+64, :] = dot(A[m:+64, :], B[:, :]);
        for i in range(0, 64, 32) { O[m:+64, n + i - 2:+32] = dot(A[m:+64, :], C[:, 0:+32]) + f32(i); }"""),
}


def build(tirc, path, *options):
    done = subprocess.run([tirc, "build", path, "--arch=sm_90a", *options], capture_output=True,
                          text=True, timeout=100)
    return done.returncode, done.stdout, done.stderr


def receipt_is(text, products, warpgroups):
    records = [r["text"] for r in json.loads(text)["variants"][0]["records"]]
    found = [re.search(r"dot: wgmma \d+x.* on (\d+) warpgroups", r) for r in records]
    found = [int(f[1]) for f in found if f]
    if found == [warpgroups] * products:
        return True
    print(f"{products} products on {warpgroups} warpgroups, the receipt has {found}:",
          *(r for r in records if r.startswith("dot")), sep="\n  ")
    return False


def assembles(tirc, path, folder):
    ptxas = shutil.which("ptxas")
    if not ptxas:
        return True
    ptx = os.path.join(folder, "products.ptx")
    build(tirc, path, "--emit=ptx", "-o", ptx)
    with open(ptx, encoding="utf-8") as file:  # of the first variant; the last ones have no wgmma
        first = re.split(r"(?=\.visible \.entry)", file.read())
    with open(ptx, "w", encoding="utf-8") as file:
        file.write("".join(first[:2]))
    done = subprocess.run([ptxas, "-arch=sm_90a", "-v", "-o", os.devnull, ptx],
                          capture_output=True, text=True, timeout=300)
    said = done.stdout + done.stderr
    spills = any(int(n) for n in re.findall(r"(\d+) bytes (?:stack|spill)", said))
    if done.returncode or spills or "serialized" in said:
        print(said)
        return False
    return True


def check(tirc, name, folder):
    rows, products, warpgroups, body = PROGRAMS[name]
    path = os.path.join(folder, "products.tir")
    params = PARAMS + "".join(f", {name}: {kind}" for name, kind in OTHERS.items() if f"{name}[" in body)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"kernel products({params})\n{{\n    for m in tiles(M by {rows}) {{{body}\n    }}\n}}\n")
    failed, text, said = build(tirc, path, "--emit=tir", "-o", os.devnull, "--receipt=json")
    if failed:
        print(said)
        return False
    done = subprocess.run([tirc, "run", path, "--arch=sm_90a", "--device=emu", "--emu-check=full",
                           "--check=0.02", f"M={2 * rows - 3}", *SIZES],
                          capture_output=True, text=True, timeout=100)
    if done.returncode:
        print(done.stdout + done.stderr)
    return receipt_is(text, products, warpgroups) and not done.returncode \
        and assembles(tirc, path, folder)


def main():
    tirc = sys.argv[1]
    failed = 0
    for name in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            if not check(tirc, name, folder):
                print(f"{name}: FAIL")
                failed += 1
    print(f"{len(PROGRAMS)} programs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
