# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libtirrt from Python, for the benchmarks: loads artifacts and launches them on torch tensors.

On a GPU the runtime adopts torch's context and current stream, so that both sides of a comparison
run in one process on the same memory. On the emulator every launch copies the tensors into its
memory and the outputs back, so that the scripts can be tried on a machine without a GPU.

The structures mirror tir/runtime.h; those of tir/artifact.h are in structures.py.
"""

import ctypes as c
import pathlib

import torch

from structures import (  # pylint: disable=unused-import
    MAX_RANK, ArtifactDesc, Error, Extent, Formula, KernelDesc, Meta, Param, Sequence, Str, Variant)

ELEMENTS = [
    "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "tf32", "f32", "f64",
    "e4m3", "e5m2", "e2m1", "ue8m0", "bool", "e3m2", "e2m3", "ue4m3",
]  # ORDER tir_element
DTYPES = {
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
    "u8": torch.uint8, "f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32,
    "f32": torch.float32, "f64": torch.float64, "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2, "bool": torch.bool,
}
FLOATS = {"f32", "tf32", "f64"}  # scalars that travel as a double
TENSOR, SCALAR = 0, 1  # both tir_rt_arg_kind and tir_param_kind


class TensorArg(c.Structure):
    _fields_ = [("data", c.c_uint64), ("element", c.c_int), ("rank", c.c_uint32),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64))]


class Value(c.Union):
    _fields_ = [("i", c.c_int64), ("u", c.c_uint64), ("f", c.c_double)]


class ScalarArg(c.Structure):
    _fields_ = [("element", c.c_int), ("value", Value)]


class ArgUnion(c.Union):
    _fields_ = [("tensor", TensorArg), ("scalar", ScalarArg), ("dlpack", c.c_void_p)]


class Arg(c.Structure):
    _fields_ = [("kind", c.c_int), ("as_", ArgUnion)]


class Report(c.Structure):
    _fields_ = [("variant", c.c_uint32), ("launched", c.c_uint32), ("grid", c.c_uint32 * 3),
                ("threads", c.c_uint32), ("dynamic_shared", c.c_uint32), ("tuned", c.c_uint32)]


class LaunchOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("variant", c.c_int32), ("report", c.POINTER(Report)),
                ("timeout_ms", c.c_uint32), ("step_reports", c.POINTER(Report)),
                ("step_report_count", c.c_uint32), ("scratch", c.c_uint64),
                ("scratch_size", c.c_uint64), ("overlap", c.c_uint32)]


class Usage(c.Structure):
    _fields_ = [("registers", c.c_uint32), ("local_bytes", c.c_uint32),
                ("static_shared", c.c_uint32), ("max_threads", c.c_uint32)]


POINTER_RESULTS = {"tir_rt_module_describe": c.POINTER(ArtifactDesc),
                   "tir_rt_kernel_describe": c.POINTER(KernelDesc),
                   "tir_status_name": c.c_char_p, "tir_rt_buffer_address": c.c_uint64}


class TirError(Exception):
    pass


class Library:
    """The functions of libtirrt; a status that is not TIR_OK becomes a TirError."""

    def __init__(self, path):
        self.dll = c.CDLL(str(path))
        for name, result in POINTER_RESULTS.items():
            getattr(self.dll, name).restype = result

    def call(self, name, *args):
        error = Error()
        status = getattr(self.dll, name)(*args, c.byref(error))
        if status:
            raise TirError(self.describe(error))

    def describe(self, error):
        name = self.dll.tir_status_name(error.status).decode()
        return f"{name}: {error.message.decode(errors='replace')}"

    def make(self, name, *args):
        """Calls a function whose last parameter before the error is `out`."""
        out = c.c_void_p()
        self.call(name, *args, c.byref(out))
        return out


class Device:
    """spec is "cuda" (torch's current device, its context adopted) or "emu"."""

    def __init__(self, library, spec, scratch=0, overlap=False):
        """scratch: bytes for sequences of all launches, which are then in one stream."""
        self.lib = Library(library)
        self.spec, self.overlap, self.scratch = spec, overlap, None
        self.emulated = spec == "emu"
        self.torch = "cpu" if self.emulated else "cuda"
        self.runtime = self.lib.make("tir_runtime_create", None)
        self.streams = {}
        if self.emulated:
            self.handle = self.lib.make("tir_rt_device_open", self.runtime, spec.encode())
        else:
            torch.zeros(1, device="cuda")  # makes the context
            context = c.c_void_p()
            c.CDLL("libcuda.so.1").cuCtxGetCurrent(c.byref(context))
            self.handle = self.lib.make("tir_rt_device_adopt", self.runtime, context)
            if scratch:
                self.scratch = torch.empty(scratch, dtype=torch.uint8, device="cuda")

    def stream(self):
        """torch's current stream as the runtime's; None is the default one."""
        raw = 0 if self.emulated else torch.cuda.current_stream().cuda_stream
        if not raw:
            return None
        if raw not in self.streams:
            self.streams[raw] = self.lib.make("tir_rt_stream_adopt", self.handle, c.c_void_p(raw))
        return self.streams[raw]

    def load(self, path):
        return Module(self, path)

    def synchronize(self):
        if not self.emulated:
            torch.cuda.synchronize()


class Module:
    def __init__(self, device, path):
        data = pathlib.Path(path).read_bytes()
        self.device = device
        self.handle = device.lib.make("tir_rt_module_load", device.handle, data,
                                      c.c_size_t(len(data)))
        desc = device.lib.dll.tir_rt_module_describe(self.handle).contents
        self.kernels = [desc.kernels[i].name.text() for i in range(desc.kernel_count)
                        if not desc.kernels[i].is_step]
        self.receipt = desc.receipt.text()

    def kernel(self, name=None):
        return Kernel(self, name or self.kernels[0])


class Kernel:
    def __init__(self, module, name):
        lib = module.device.lib
        text = name.encode()
        view = Str(c.cast(c.c_char_p(text), c.c_void_p), len(text))
        self.device, self.module, self.name = module.device, module, name
        self.handle = lib.make("tir_rt_module_kernel", module.handle, view)
        desc = lib.dll.tir_rt_kernel_describe(self.handle).contents
        self.params = [desc.params[i] for i in range(desc.param_count)]
        self.metas = {desc.metas[i].name.text(): desc.metas[i].value.text()
                      for i in range(desc.meta_count)}
        self.variants = [desc.variants[i] for i in range(desc.variant_count)]
        self.sequences = [desc.sequences[i] for i in range(desc.sequence_count)]

    def usage(self, variant=0):
        out = Usage()
        self.device.lib.call("tir_rt_kernel_usage", self.handle, c.c_uint32(variant), c.byref(out))
        return out

    def variant_name(self, variant):
        """What follows the kernel's name in a variant's, or in a sequence's, which are numbered behind
        them: "edges", "any", "5"; "first" for nothing."""
        names = [v.entry for v in self.variants] + [s.name for s in self.sequences]
        return names[variant].text()[len(self.name):].lstrip("_") or "first"

    def bind(self, *values):
        return Call(self, values)

    def __call__(self, *values):
        return self.bind(*values).launch()


class Call:
    """A kernel with its arguments, ready to be launched many times. Holds the tensors."""

    def __init__(self, kernel, values):
        if len(values) != len(kernel.params):
            raise TirError(f"{kernel.name} takes {len(kernel.params)} arguments")
        self.kernel, self.values, self.keep = kernel, values, []
        self.args = (Arg * len(values))()
        self.report = Report()
        self.options = LaunchOptions(c.sizeof(LaunchOptions), -1, c.pointer(self.report), 0)
        self.options.overlap = kernel.device.overlap
        if kernel.device.scratch is not None:
            self.options.scratch = kernel.device.scratch.data_ptr()
            self.options.scratch_size = kernel.device.scratch.numel()
        for arg, param, value in zip(self.args, kernel.params, values):
            (self.set_scalar if param.kind == SCALAR else self.set_tensor)(arg, param, value)
        self.error = Error()
        self.function = kernel.device.lib.dll.tir_rt_launch

    def set_scalar(self, arg, param, value):
        arg.kind = SCALAR
        arg.as_.scalar.element = param.element
        if ELEMENTS[param.element] in FLOATS:
            arg.as_.scalar.value.f = float(value)
        else:
            arg.as_.scalar.value.i = int(value)

    def set_tensor(self, arg, param, value):
        name = ELEMENTS[param.element]
        if value.dtype != DTYPES[name]:
            raise TirError(f"{param.name.text()}: {value.dtype} is not {name}")
        shape = (c.c_int64 * MAX_RANK)(*value.shape)
        strides = (c.c_int64 * MAX_RANK)(*value.stride())
        self.keep += [shape, strides]
        arg.kind = TENSOR
        tensor = arg.as_.tensor
        tensor.data = value.data_ptr()
        # A tf32 parameter takes f32 tensors.
        tensor.element = ELEMENTS.index("f32") if name == "tf32" else param.element
        tensor.rank = value.dim()
        tensor.shape, tensor.strides = shape, strides

    def launch(self, stream=None):
        """Launches on torch's current stream, or on `stream` from Device.stream()."""
        if self.kernel.device.emulated:
            return self.emulate()
        self.enqueue(stream or self.kernel.device.stream())
        return self.report

    def enqueue(self, stream):
        lib = self.kernel.device.lib
        if self.function(self.kernel.handle, stream, self.args, len(self.args),
                         c.byref(self.options), c.byref(self.error)):
            raise TirError(lib.describe(self.error))

    def emulate(self):
        """Copies each tensor's span into the emulator, launches, and copies outputs back."""
        lib, device = self.kernel.device.lib, self.kernel.device.handle
        buffers = []
        try:
            for arg, param, value in zip(self.args, self.kernel.params, self.values):
                if param.kind == SCALAR:
                    continue
                span = sum((n - 1) * s for n, s in zip(value.shape, value.stride())) + 1
                size = span * value.element_size() if value.numel() else 0
                skip = value.data_ptr() % 16 if size else 0  # as aligned there as here
                buffer = lib.make("tir_rt_buffer_create", device, c.c_uint64(size + skip))
                span = c.c_uint64(skip), c.c_void_p(value.data_ptr()), c.c_uint64(size), None
                buffers.append((buffer, param, span))
                lib.call("tir_rt_buffer_write", buffer, *span)
                arg.as_.tensor.data = lib.dll.tir_rt_buffer_address(buffer) + skip
            self.enqueue(None)
            for buffer, param, span in buffers:
                if param.direction:
                    lib.call("tir_rt_buffer_read", buffer, *span)
        finally:
            for buffer, *_ in buffers:
                lib.dll.tir_rt_buffer_destroy(buffer)
        return self.report
