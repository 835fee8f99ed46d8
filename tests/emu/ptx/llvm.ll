; SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
; Kernels for the emulator's tests. llvm.ptx is what LLVM 22 makes of them:
;   llc -mcpu=sm_80 -mattr=+ptx70 llvm.ll -o llvm.ptx
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, [3 x i64], half, <4 x float> }

@table = internal addrspace(4) constant [4 x i32] [i32 3, i32 1, i32 4, i32 1]
@mixed = internal addrspace(1) global { i8, i16, double, ptr addrspace(1) } { i8 1, i16 -2, double 2.5, ptr addrspace(1) @numbers }
@numbers = internal addrspace(1) global [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@static = internal addrspace(3) global [64 x i32] undef, align 16
@dynamic = external addrspace(3) global [0 x i8], align 16

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)

; Structures by value, by reference and returned.
define internal %pair @choose(%pair %x, ptr byval(%pair) align 16 %y, i1 %z) noinline {
  %v = load %pair, ptr %y
  %c = select i1 %z, %pair %x, %pair %v
  %q = insertvalue %pair %c, i32 5, 0
  ret %pair %q
}

define ptx_kernel void @structures(ptr addrspace(1) %out, %pair %x, ptr byval(%pair) align 16 %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %odd = trunc i32 %t to i1
  %r = call %pair @choose(%pair %x, ptr byval(%pair) align 16 %y, i1 %odd)
  %q = getelementptr %pair, ptr addrspace(1) %out, i32 %t
  store %pair %r, ptr addrspace(1) %q
  ret void
}

; A dense switch, a loop over memory of the stack, a table, wide integers.
define ptx_kernel void @control(ptr addrspace(1) %out, i64 %n) {
  %stack = alloca [16 x i32]
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %k = urem i32 %t, 9
  switch i32 %k, label %join [
    i32 0, label %b0
    i32 1, label %b1
    i32 2, label %b2
    i32 3, label %b3
    i32 4, label %b4
    i32 5, label %b5
    i32 6, label %b6
    i32 7, label %b7
  ]
b0:
  %v0 = mul i32 %t, 3
  br label %join
b1:
  %v1 = add i32 %t, 100
  br label %join
b2:
  %v2 = xor i32 %t, 85
  br label %join
b3:
  %v3 = sub i32 0, %t
  br label %join
b4:
  %v4 = shl i32 %t, 5
  br label %join
b5:
  %v5 = sdiv i32 %t, 3
  br label %join
b6:
  %v6 = or i32 %t, 64
  br label %join
b7:
  %v7 = mul i32 %t, %t
  br label %join
join:
  %v = phi i32 [ -1, %0 ], [ %v0, %b0 ], [ %v1, %b1 ], [ %v2, %b2 ], [ %v3, %b3 ], [ %v4, %b4 ], [ %v5, %b5 ], [ %v6, %b6 ], [ %v7, %b7 ]
  br label %loop
loop:
  %i = phi i32 [ 0, %join ], [ %i2, %loop ]
  %s = getelementptr i32, ptr %stack, i32 %i
  %w = mul i32 %i, %v
  store i32 %w, ptr %s
  %i2 = add i32 %i, 1
  %more = icmp ult i32 %i2, 16
  br i1 %more, label %loop, label %done
done:
  %m = and i32 %t, 15
  %sm = getelementptr i32, ptr %stack, i32 %m
  %a = load i32, ptr %sm
  %m3 = and i32 %t, 3
  %tp = getelementptr i32, ptr addrspace(4) @table, i32 %m3
  %b = load i32, ptr addrspace(4) %tp
  %ab = add i32 %a, %b
  %wide = sext i32 %ab to i128
  %n128 = zext i64 %n to i128
  %product = mul i128 %wide, %n128
  %sum = add i128 %product, 12345678901234567890123
  %q = getelementptr i128, ptr addrspace(1) %out, i32 %t
  store i128 %sum, ptr addrspace(1) %q
  ret void
}

; Static and dynamic shared memory through a barrier, a shuffle, globals that point to globals.
define ptx_kernel void @spaces(ptr addrspace(1) %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %sp = getelementptr i32, ptr addrspace(3) @static, i32 %t
  store i32 %t, ptr addrspace(3) %sp
  %sg = addrspacecast ptr addrspace(3) %sp to ptr
  %dp = getelementptr i32, ptr addrspace(3) @dynamic, i32 %t
  %sq = load i32, ptr %sg
  %double = shl i32 %sq, 1
  store i32 %double, ptr addrspace(3) %dp
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %far = sub i32 63, %t
  %fp = getelementptr i32, ptr addrspace(3) @dynamic, i32 %far
  %f = load i32, ptr addrspace(3) %fp
  %x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %t, i32 1, i32 31)
  %pp = getelementptr i8, ptr addrspace(1) @mixed, i64 16
  %p = load ptr addrspace(1), ptr addrspace(1) %pp
  %m3 = and i32 %t, 3
  %np = getelementptr i32, ptr addrspace(1) %p, i32 %m3
  %n = load i32, ptr addrspace(1) %np
  %h = load i16, ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @mixed, i64 2)
  %h32 = sext i16 %h to i32
  %a = mul i32 %f, 1000
  %b = add i32 %a, %x
  %c = add i32 %b, %n
  %d = add i32 %c, %h32
  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %d, ptr addrspace(1) %q
  ret void
}

; Orders and scopes of atomics, compare and exchange of a byte, floating-point sums.
define ptx_kernel void @atomics(ptr addrspace(1) %m) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %a = atomicrmw add ptr addrspace(1) %m, i32 %t syncscope("device") seq_cst
  %p4 = getelementptr i8, ptr addrspace(1) %m, i64 4
  %b = atomicrmw fadd ptr addrspace(1) %p4, float 0.5 syncscope("block") acq_rel
  %p8 = getelementptr i8, ptr addrspace(1) %m, i64 8
  %c = atomicrmw umax ptr addrspace(1) %p8, i64 77 monotonic
  %p17 = getelementptr i8, ptr addrspace(1) %m, i64 17
  %d = atomicrmw add ptr addrspace(1) %p17, i8 1 monotonic
  %p20 = getelementptr i8, ptr addrspace(1) %m, i64 20
  %e = atomicrmw nand ptr addrspace(1) %p20, i32 %t monotonic
  %p24 = getelementptr i8, ptr addrspace(1) %m, i64 24
  %f = atomicrmw fadd ptr addrspace(1) %p24, <2 x half> <half 1.0, half 2.0> monotonic
  fence syncscope("device") seq_cst
  ret void
}
