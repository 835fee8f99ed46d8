# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The structures of tir/artifact.h and tir/base.h, for Python without torch."""

import ctypes as c

MAX_RANK = 6


class Str(c.Structure):
    _fields_ = [("ptr", c.c_void_p), ("len", c.c_size_t)]

    def text(self):
        return c.string_at(self.ptr, self.len).decode() if self.len else ""


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("native", c.c_int32), ("message", c.c_char * 248)]


class Extent(c.Structure):
    _fields_ = [("dim", c.c_uint32), ("fixed", c.c_int64)]


class Param(c.Structure):
    _fields_ = [("name", Str), ("kind", c.c_int), ("element", c.c_int), ("direction", c.c_int),
                ("rank", c.c_uint32), ("extents", Extent * MAX_RANK)]


class Formula(c.Structure):
    _fields_ = [("ops", c.c_void_p), ("count", c.c_uint32)]


class Variant(c.Structure):
    _fields_ = [("entry", Str), ("facts", c.c_uint32), ("when", Formula), ("cost", Formula),
                ("config", c.c_uint32),
                ("threads", c.c_uint32), ("cluster", c.c_uint32 * 3), ("static_shared", c.c_uint32),
                ("dynamic_shared", c.c_uint32), ("grid", Formula * 3), ("persistent", c.c_uint32),
                ("ctas_per_sm", c.c_uint32), ("maps", c.c_void_p), ("map_count", c.c_uint32),
                ("watchdog", c.c_uint32), ("roles", c.c_void_p), ("role_count", c.c_uint32),
                ("barriers", c.c_void_p), ("barrier_count", c.c_uint32),
                ("is_open", c.c_uint32), ("waits", c.c_uint32),
                ("cooperative", c.c_uint32), ("preferred", c.c_uint32 * 3)]


class Sequence(c.Structure):
    _fields_ = [("name", Str), ("cost", Formula), ("config", c.c_uint32),
                ("scratch", c.c_void_p), ("scratch_count", c.c_uint32),
                ("steps", c.c_void_p), ("step_count", c.c_uint32)]


class Meta(c.Structure):
    _fields_ = [("name", Str), ("value", Str)]


class KernelDesc(c.Structure):
    _fields_ = [("name", Str), ("dims", c.POINTER(Str)), ("dim_count", c.c_uint32),
                ("params", c.POINTER(Param)), ("param_count", c.c_uint32),
                ("metas", c.POINTER(Meta)), ("meta_count", c.c_uint32),
                ("fixed", c.c_void_p), ("fixed_count", c.c_uint32),
                ("names", c.c_void_p), ("name_count", c.c_uint32),
                ("conditions", c.c_void_p), ("condition_count", c.c_uint32),
                ("variants", c.POINTER(Variant)), ("variant_count", c.c_uint32),
                ("configs", c.POINTER(Str)), ("config_count", c.c_uint32),
                ("tuned", c.c_void_p), ("tuned_count", c.c_uint32),
                ("sequences", c.POINTER(Sequence)), ("sequence_count", c.c_uint32),
                ("is_step", c.c_uint32)]


class ArtifactDesc(c.Structure):
    _fields_ = [("target", Str), ("ptx", Str), ("cubin_arch", Str), ("cubin", Str),
                ("receipt", Str), ("kernels", c.POINTER(KernelDesc)), ("kernel_count", c.c_uint32)]
