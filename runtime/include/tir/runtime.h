// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime: opens devices, loads artifacts, checks arguments and launches kernels.
//
// Ownership: the caller owns the result of a create, open, adopt or load function and gives it to
// the matching destroy function once. The result of any other function is borrowed, and lives as
// long as the object it came from. An object must be destroyed before the one it was made from:
// events, streams, graphs, buffers and modules before their device, devices before the runtime.
// Destroying NULL does nothing.
//
// Pointers are those of objects and memory that there are: NULL only where this file says so, or
// for no bytes at all.
//
// Errors: a call that fails returns a status and fills in `error` unless that is NULL; one that
// succeeds leaves `error` as it was. `out` is set only on success and NULL otherwise. When a device
// reports a fault (TIR_ERR_DEVICE), its memory is in an unknown state: every later call on that
// device fails at once with the first cause, except destroying.
//
// Threads: all functions may be called from any thread at any time on the same objects, except
// that an object must not be destroyed while another call uses it. A CUDA context is made current
// for the duration of a call only; the caller's own current context is left as it was.
//
// The runtime keeps no global state, prints nothing and does not read the environment.
#ifndef TIR_RUNTIME_H
#define TIR_RUNTIME_H

#include "tir/artifact.h"
#include "tir/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tir_runtime tir_runtime;     // a driver library and its devices
typedef struct tir_rt_device tir_rt_device; // one GPU context, or one emulator
typedef struct tir_rt_stream tir_rt_stream; // work in order; NULL: the device's default stream
typedef struct tir_rt_event tir_rt_event;   // a point in a stream
typedef struct tir_rt_graph tir_rt_graph;   // work that was captured, to be launched as a whole
typedef struct tir_rt_buffer tir_rt_buffer; // device memory
typedef struct tir_rt_module tir_rt_module; // a loaded artifact, or loaded PTX
typedef struct tir_rt_kernel tir_rt_kernel; // a kernel of a module; borrowed from it

// ---- the runtime

// How much an emulator checks; each level includes the ones before it. Accesses out of bounds are
// always found. docs/emulator.md lists the findings of each level.
typedef enum tir_rt_emu_check {
    TIR_RT_EMU_CHECK_DEFAULT = 0, // MEMORY
    TIR_RT_EMU_CHECK_OFF = 1,
    TIR_RT_EMU_CHECK_MEMORY = 2, // uninitialised memory, copies in flight
    TIR_RT_EMU_CHECK_RACE = 3,   // data races
    TIR_RT_EMU_CHECK_FULL = 4    // also inside a warp, and hygiene
} tir_rt_emu_check;

// A stretch of the timeline of an emulated launch. Times are cycles of a simple model, from the
// start of the launch; nothing is measured. Stretches of one warp do not overlap; flights may.
typedef enum tir_rt_trace_kind {
    TIR_RT_TRACE_RUN = 0,   // a warp executes
    TIR_RT_TRACE_WAIT = 1,  // a warp waits
    TIR_RT_TRACE_FLIGHT = 2 // an operation of an asynchronous engine, from issue to completion
} tir_rt_trace_kind;

// Strings live during the callback only.
typedef struct tir_rt_trace_event {
    tir_rt_trace_kind kind;
    const char *name;   // "run", the object of a wait, or the operation
    const char *engine; // of a flight: its engine; else NULL
    uint32_t cta[3];
    uint32_t warp;               // of a flight: the issuing warp
    uint32_t group;              // of a cp.async: the warp's commit group, from 1; else 0
    uint32_t ptx_line, ptx_last; // its first instruction and, of a run, its last one; 0: not known
    const char *file;            // the source as the PTX's .loc has it; NULL: not known
    uint32_t source_line, source_last;
    uint64_t start, end; // start < end
} tir_rt_trace_event;

typedef struct tir_runtime_options {
    size_t struct_size;       // sizeof(tir_runtime_options)
    tir_allocator allocator;  // resize NULL: the C library's
    const char *cuda_library; // the driver library to open; NULL: libcuda.so.1, then libcuda.so
    uint32_t emu_sm_count;    // multiprocessors that an emulator reports; 0: 8
    uint32_t emu_unchecked;   // 1: as emu_check OFF
    uint64_t emu_memory;      // most bytes of emulated memory; 0: 8 GiB
    uint64_t emu_steps;       // most instructions one warp may execute in a launch; 0: 2^40
    uint32_t emu_check;       // a tir_rt_emu_check
    // The order in which warps and engines run: "lazy", "eager", "adversarial", "adversarial:SEED"
    // or "random:SEED"; NULL: lazy. The same schedule replays a launch exactly.
    const char *emu_schedule;
    // Receives the output of device code, during the launch and on its thread; NULL: it is dropped.
    // Like emu_trace it must not use the device, which is in the launch.
    void (*emu_print)(void *user, const char *text, size_t size);
    void *emu_print_user;
    // Receives the timeline of every emulated launch, stretch by stretch in no order, during the
    // launch; NULL: there is no timeline.
    void (*emu_trace)(void *user, const tir_rt_trace_event *event);
    void *emu_trace_user;
    // Most threads of the host, including the caller's, that run an emulated launch with
    // independent CTAs: no atomics in global memory, for example, and no checks above MEMORY
    // (docs/emulator.md). 0: one for each core. The result does not depend on it, unless CTAs race
    // with each other. The allocator is called by one thread at a time.
    uint32_t emu_threads;
    // Time limit of an emulated launch in milliseconds of the host; 0: none. A launch beyond it
    // fails, and its finding says where every warp is.
    uint32_t emu_timeout_ms;
} tir_runtime_options;
#define TIR_RUNTIME_OPTIONS_INIT                                                               \
    {                                                                                          \
        sizeof(tir_runtime_options), {NULL, NULL}, NULL, 0, 0, 0, 0, TIR_RT_EMU_CHECK_DEFAULT, \
            NULL, NULL, NULL, NULL, NULL, 0, 0                                                 \
    }

// Makes a runtime. `options` may be NULL. The driver library is opened when a call first needs it.
TIR_API TIR_CHECKED tir_status tir_runtime_create(const tir_runtime_options *options,
                                                  tir_runtime **out, tir_error *error);
TIR_API void tir_runtime_destroy(tir_runtime *runtime);

// ---- devices

typedef enum tir_rt_kind { TIR_RT_CUDA = 0, TIR_RT_EMU = 1 } tir_rt_kind;

// Facts about a device. Fields are only ever added at the end.
typedef struct tir_rt_device_info {
    tir_rt_kind kind;
    int32_t ordinal;     // the driver's device number; 0 for an emulator
    char spec[16];       // what opens it: "cuda:0" or "emu"
    char name[128];      // e.g. "NVIDIA H200"
    char arch[16];       // e.g. "sm_90"; empty for an emulator, which runs every target. The
                         // target to compile for: tir_compile_arch_for(arch), tir/compiler.h
    uint32_t sm_count;   // multiprocessors
    uint32_t max_shared; // bytes of shared memory a CTA may use; 0: not limited
    uint64_t memory;     // bytes of device memory
    int32_t driver;      // as the driver states it, e.g. 12080; 0 for an emulator
    uint32_t clock_khz;  // peak clock of the multiprocessors, 0: not known
} tir_rt_device_info;

// The number of devices, including the emulator, which is the last one. A machine without a usable
// driver has only the emulator.
TIR_API TIR_CHECKED tir_status tir_runtime_device_count(tir_runtime *runtime, uint32_t *out,
                                                        tir_error *error);

// The facts of device number `index`, without opening it.
TIR_API TIR_CHECKED tir_status tir_runtime_device_info(tir_runtime *runtime, uint32_t index,
                                                       tir_rt_device_info *out, tir_error *error);

// Opens a device. `spec` is "cuda:N", "cuda" (the first GPU), "emu" (a new emulator with its own
// memory), or "auto" (the first GPU if there is one, else the emulator). A GPU is opened with its
// primary context, which the CUDA runtime API uses too. TIR_ERR_NO_DRIVER: no usable driver,
// or no GPU.
TIR_API TIR_CHECKED tir_status tir_rt_device_open(tir_runtime *runtime, const char *spec,
                                                  tir_rt_device **out, tir_error *error);

// Uses an existing CUcontext, which stays the caller's and must outlive the device.
TIR_API TIR_CHECKED tir_status tir_rt_device_adopt(tir_runtime *runtime, void *cu_context,
                                                   tir_rt_device **out, tir_error *error);
TIR_API void tir_rt_device_destroy(tir_rt_device *device);

TIR_API const tir_rt_device_info *tir_rt_device_describe(const tir_rt_device *device);

// Waits until all work given to the device is done.
TIR_API TIR_CHECKED tir_status tir_rt_device_synchronize(tir_rt_device *device, tir_error *error);

// ---- streams and events

TIR_API TIR_CHECKED tir_status tir_rt_stream_create(tir_rt_device *device, tir_rt_stream **out,
                                                    tir_error *error);

// Uses an existing CUstream of the device's context, which stays the caller's. TIR_ERR_UNSUPPORTED
// on an emulator.
TIR_API TIR_CHECKED tir_status tir_rt_stream_adopt(tir_rt_device *device, void *cu_stream,
                                                   tir_rt_stream **out, tir_error *error);
TIR_API void tir_rt_stream_destroy(tir_rt_stream *stream);

// Waits until all work given to the stream is done.
TIR_API TIR_CHECKED tir_status tir_rt_stream_synchronize(tir_rt_stream *stream, tir_error *error);

// The same, for at most that many milliseconds. `stream` may be NULL, the default stream of
// `device`. `*done`: 1, or 0 if the time ended first; the device's objects cannot be destroyed
// while a kernel hangs.
TIR_API TIR_CHECKED tir_status tir_rt_stream_wait(tir_rt_device *device, tir_rt_stream *stream,
                                                  uint32_t timeout_ms, uint32_t *done,
                                                  tir_error *error);

TIR_API TIR_CHECKED tir_status tir_rt_event_create(tir_rt_device *device, tir_rt_event **out,
                                                   tir_error *error);
TIR_API void tir_rt_event_destroy(tir_rt_event *event);

// Marks the present end of the stream.
TIR_API TIR_CHECKED tir_status tir_rt_event_record(tir_rt_event *event, tir_rt_stream *stream,
                                                   tir_error *error);

// Milliseconds between two recorded events of one device; waits for `end`. On an emulator this is
// the time of the host.
TIR_API TIR_CHECKED tir_status tir_rt_event_elapsed(tir_rt_event *start, tir_rt_event *end,
                                                    float *out, tir_error *error);

// ---- buffers

// Allocates `size` bytes, aligned to 256. Their contents are not defined. `size` may be 0.
TIR_API TIR_CHECKED tir_status tir_rt_buffer_create(tir_rt_device *device, uint64_t size,
                                                    tir_rt_buffer **out, tir_error *error);
TIR_API void tir_rt_buffer_destroy(tir_rt_buffer *buffer);
TIR_API uint64_t tir_rt_buffer_address(const tir_rt_buffer *buffer); // device address; 0 if empty
TIR_API uint64_t tir_rt_buffer_size(const tir_rt_buffer *buffer);    // bytes

// Copies from and to host memory, after the work already in `stream`. When the call returns, the
// copy is done. Offsets and sizes are in bytes, and checked against the buffer.
TIR_API TIR_CHECKED tir_status tir_rt_buffer_write(tir_rt_buffer *buffer, uint64_t offset,
                                                   const void *src, uint64_t size,
                                                   tir_rt_stream *stream, tir_error *error);
TIR_API TIR_CHECKED tir_status tir_rt_buffer_read(tir_rt_buffer *buffer, uint64_t offset, void *dst,
                                                  uint64_t size, tir_rt_stream *stream,
                                                  tir_error *error);

// Copy between two buffers of one device, and setting of bytes, in the order of `stream`; the calls
// may return before the work is done.
TIR_API TIR_CHECKED tir_status tir_rt_buffer_copy(tir_rt_buffer *dst, uint64_t dst_offset,
                                                  tir_rt_buffer *src, uint64_t src_offset,
                                                  uint64_t size, tir_rt_stream *stream,
                                                  tir_error *error);
TIR_API TIR_CHECKED tir_status tir_rt_buffer_fill(tir_rt_buffer *buffer, uint64_t offset,
                                                  uint8_t value, uint64_t size,
                                                  tir_rt_stream *stream, tir_error *error);

// ---- modules and kernels

// Loads an artifact; the bytes are copied. TIR_ERR_INVALID: not a sound artifact.
// TIR_ERR_UNSUPPORTED: it is for another kind of device.
//
// On a GPU the code of a variant is assembled and loaded by the first call that needs it, a launch
// or tir_rt_kernel_usage, also while a stream is being captured into a graph. If the driver refuses
// the code, that call fails (TIR_ERR_UNSUPPORTED), and the message has the variant's entry and the
// first line of the driver's reason. While one thread loads a variant, others that need the same
// one wait, and launches of loaded variants go on. A cubin for the device, and all code on an
// emulator, is loaded here and as a whole.
TIR_API TIR_CHECKED tir_status tir_rt_module_load(tir_rt_device *device, const void *artifact,
                                                  size_t size, tir_rt_module **out,
                                                  tir_error *error);

// Makes the code of one variant. It calls tir_rt_code_set with an artifact that has it, whose bytes
// are read during that call. Any status but TIR_OK is that of the launch that needs the variant,
// and so is the message, if there is one; but TIR_ERR_DEVICE, which is of another device, becomes
// TIR_ERR_INVALID. A later launch asks again. It is called by the thread that launches, by
// several at a time for different variants, and never for a variant whose code is there. On a GPU
// the caller's context may be any. It must not use the module, nor a stream that launches of the
// module use.
typedef struct tir_rt_code tir_rt_code;
typedef tir_status (*tir_rt_compile_fn)(void *user, tir_str entry, tir_rt_code *code,
                                        tir_error *error);
TIR_API TIR_CHECKED tir_status tir_rt_code_set(tir_rt_code *code, const void *artifact, size_t size,
                                               tir_error *error);

// The same for an outline (tir/compiler.h): an artifact whose variants have no code yet. A launch
// chooses one by its facts, conditions and cost, and `compile` makes it when it is first needed. If
// its tensor maps then do not exist for the arguments, the launch takes the next best. `user` must
// live as long as the module. An artifact with code is loaded as tir_rt_module_load does.
TIR_API TIR_CHECKED tir_status tir_rt_module_open(tir_rt_device *device, const void *outline,
                                                  size_t size, tir_rt_compile_fn compile,
                                                  void *user, tir_rt_module **out,
                                                  tir_error *error);
TIR_API void tir_rt_module_destroy(tir_rt_module *module);

// The description of the module's artifact. It has no `ptx`: launches read what they need of it
// (tir_artifact_decode gives all). `receipt` is read by the first call, and empty if it is damaged.
// A module of PTX has a target and no kernels.
TIR_API const tir_artifact_desc *tir_rt_module_describe(const tir_rt_module *module);

// A kernel by name. TIR_ERR_INVALID: the message lists the kernels.
TIR_API TIR_CHECKED tir_status tir_rt_module_kernel(tir_rt_module *module, tir_str name,
                                                    tir_rt_kernel **out, tir_error *error);

// The kernel's dimensions, parameters, conditions and variants. Of an outline they stay those of
// the outline.
TIR_API const tir_artifact_kernel *tir_rt_kernel_describe(const tir_rt_kernel *kernel);

// The resources of a loaded variant, by the device; of a sequence, those of the first variant of
// its first step. An emulator knows only shared memory.
typedef struct tir_rt_usage {
    uint32_t registers;     // per thread
    uint32_t local_bytes;   // per thread: spilled registers and local arrays
    uint32_t static_shared; // bytes per CTA
    uint32_t max_threads;   // most threads of a CTA that can launch
} tir_rt_usage;
TIR_API TIR_CHECKED tir_status tir_rt_kernel_usage(tir_rt_kernel *kernel, uint32_t variant,
                                                   tir_rt_usage *out, tir_error *error);

// ---- launch

typedef enum tir_rt_arg_kind {
    TIR_RT_TENSOR = 0,
    TIR_RT_SCALAR = 1,
    TIR_RT_DLPACK = 2,          // a DLTensor; a DLManagedTensor begins with one
    TIR_RT_DLPACK_VERSIONED = 3 // a DLManagedTensorVersioned
} tir_rt_arg_kind;

// A tensor in device memory. `shape` and `strides` (in elements; NULL: contiguous, the last
// dimension innermost) hold `rank` values and are read during the launch call only.
typedef struct tir_rt_tensor {
    uint64_t data; // address of the first element
    tir_element element;
    uint32_t rank;
    const int64_t *shape;
    const int64_t *strides;
} tir_rt_tensor;

// A scalar: `i` for i8 to i64 and bool, `u` for u8 to u64, `f` for f32, tf32 and f64; `u` holds the
// bits of f16, bf16 and the 8-bit floats. A value that does not fit its type is refused.
typedef struct tir_rt_scalar {
    tir_element element;
    union {
        int64_t i;
        uint64_t u;
        double f;
    } value;
} tir_rt_scalar;

typedef struct tir_rt_arg {
    tir_rt_arg_kind kind;
    union {
        tir_rt_tensor tensor;
        tir_rt_scalar scalar;
        const void *dlpack; // borrowed; never deleted
    } as;
} tir_rt_arg;

// Loads code before it is needed, on several threads if the program makes it (tir_rt_module_open);
// a CUDA driver assembles one variant at a time. Loaded are those that launches with these
// arguments would take, or with `launches` NULL all variants of all kernels of the module. Only the
// shapes, strides, lowest bits of addresses and scalars count; nothing is launched, and the
// addresses need not be those of memory. `threads`: most threads that load, including the caller's;
// 0: one for each core, 16 at most. What is loaded already takes no time. All that can be loaded is
// loaded, and the status and the message are those of the first variant that cannot. If a launch
// fits no variant, nothing is loaded.
typedef struct tir_rt_prepare {
    tir_rt_kernel *kernel; // of this module
    const tir_rt_arg *args;
    uint32_t count;
} tir_rt_prepare;
TIR_API TIR_CHECKED tir_status tir_rt_module_prepare(tir_rt_module *module,
                                                     const tir_rt_prepare *launches, uint32_t count,
                                                     uint32_t threads, tir_error *error);

// The result of a launch.
typedef struct tir_rt_launch_report {
    // The number of the kernel's variant or, from their count on, of its sequence.
    uint32_t variant;
    uint32_t launched;       // 0: there was nothing to do, the grid or all outputs are empty
    uint32_t grid[3];        // CTAs; of a sequence, this and what follows are its first step's
    uint32_t threads;        // per CTA
    uint32_t dynamic_shared; // bytes per CTA
    uint32_t tuned;          // 1: its configuration is the kernel's choice for these sizes
} tir_rt_launch_report;

typedef struct tir_rt_launch_options {
    size_t struct_size; // sizeof(tir_rt_launch_options)
    // -1: the best that fits. Else this variant or, from their count on, this sequence, which is
    // refused if it does not fit.
    int32_t variant;
    tir_rt_launch_report *report; // filled in on success; may be NULL
    // Time limit of a wait for an mbarrier in a kernel that was compiled with a watchdog, in
    // milliseconds; 0: 10 s. A kernel that takes longer faults, after another half of the time.
    uint32_t timeout_ms;
    // Filled in on success with the reports of the first `step_report_count` steps of a sequence;
    // the variants are those of the steps' kernels. May be NULL.
    tir_rt_launch_report *step_reports;
    uint32_t step_report_count;
    // Memory of the device, of scratch_size bytes from a multiple of 256 on, that a sequence takes
    // for its scratch tensors where it is large enough, so that nothing is allocated. Its contents
    // change. Launches that may run at the same time need memory of their own, and no tensor of the
    // launch lies in it. 0: none.
    uint64_t scratch;
    uint64_t scratch_size;
    // 1: the first launch may start before the one before it in the stream has ended. Where its
    // variant waits (tir_artifact_variant.waits), it does so for that end before it touches memory.
    // What ran before that one must have ended with it, as launches of this runtime see to.
    uint32_t overlap;
} tir_rt_launch_options;
#define TIR_RT_LAUNCH_OPTIONS_INIT                                   \
    {                                                                \
        sizeof(tir_rt_launch_options), -1, NULL, 0, NULL, 0, 0, 0, 0 \
    }

// Checks the arguments against the kernel's parameters, in order, then launches. Named dimensions
// are taken from the tensors' shapes and must agree. A tensor that the kernel writes (out, inout)
// must not share an element with another tensor of the launch, and its elements must not overlap; a
// kernel that works in place takes one inout tensor. Everything is checked before the driver is
// called: a refused launch (TIR_ERR_INVALID) has done nothing. `options` may be NULL.
//
// DLPack tensors must be in memory of the kernel's device: kDLCUDA with the device's number, or
// kDLCUDAHost or kDLCUDAManaged; on an emulator kDLExtDev, with addresses of the emulator.
//
// Returns without waiting for the kernel, except on an emulator. Only the scratch memory of a
// sequence is allocated, unless the options have some, in the order of the stream, which may be
// captured into a graph meanwhile.
TIR_API TIR_CHECKED tir_status tir_rt_launch(tir_rt_kernel *kernel, tir_rt_stream *stream,
                                             const tir_rt_arg *args, uint32_t count,
                                             const tir_rt_launch_options *options,
                                             tir_error *error);

// ---- graphs

// Captures a stream: from now on the launches, copies between buffers and fills that it gets are
// written down and not done, until tir_rt_capture_end. On a GPU this is the driver's capture of a
// stream into a CUDA graph; on an emulator a graph is a list of calls.
//
// What a launch decides and checks is decided when it is captured: the graph has the addresses,
// shapes and scalars of that time, and only the contents of memory change from one launch of the
// graph to the next. Scratch memory of sequences is part of the graph.
//
// Meanwhile calls that would wait are refused (TIR_ERR_INVALID): on the stream, reads and writes of
// buffers, events and waits; on the device, all work for the default stream, which waits for
// all streams, and tir_rt_device_synchronize. A refused call leaves the capture as it was; one that
// the driver refuses may end it, and then tir_rt_capture_end fails. Other streams go on. A call
// that another thread makes on the stream while a capture begins or ends is in the graph, or it is
// done at once; a sequence is so with all its steps.
// TIR_ERR_INVALID: the stream is in capture already. TIR_ERR_UNSUPPORTED: the driver has no graphs
// (before CUDA 11.4).
TIR_API TIR_CHECKED tir_status tir_rt_capture_begin(tir_rt_stream *stream, tir_error *error);

// Ends the capture, also if it fails. The graph is the caller's, and independent of the stream. The
// modules and buffers that its launches use must live as long as it is launched.
TIR_API TIR_CHECKED tir_status tir_rt_capture_end(tir_rt_stream *stream, tir_rt_graph **out,
                                                  tir_error *error);

// Does the graph's work in the order of `stream` (NULL: the default one), which may be any of its
// device but one in capture. Returns without waiting for it, except on an emulator. Launches of one
// graph run one after the other.
TIR_API TIR_CHECKED tir_status tir_rt_graph_launch(tir_rt_graph *graph, tir_rt_stream *stream,
                                                   tir_error *error);
TIR_API void tir_rt_graph_destroy(tir_rt_graph *graph); // when its launches are done

// ---- PTX of any origin

// Loads PTX text, of this compiler or of another one; the text is copied. TIR_ERR_INVALID: without
// a .target, or, on an emulator, not PTX or with an instruction that it does not know; the message
// names its line. TIR_ERR_UNSUPPORTED: for another kind of GPU, or refused by the driver.
TIR_API TIR_CHECKED tir_status tir_rt_module_load_ptx(tir_rt_device *device, tir_str ptx,
                                                      tir_rt_module **out, tir_error *error);

// A launch whose shape and parameters the caller chooses. The kernel is unknown, so only the shape
// is checked.
typedef struct tir_rt_ptx_launch {
    size_t struct_size;      // sizeof(tir_rt_ptx_launch)
    uint32_t grid[3];        // CTAs
    uint32_t block[3];       // threads of a CTA
    uint32_t cluster[3];     // CTAs of a cluster; all 0: those of the PTX, or none
    uint32_t dynamic_shared; // bytes per CTA
    const void *params;      // the .param block, with offsets of tir_rt_ptx_param
    size_t params_size;      // bytes
    uint32_t cooperative;    // 1: the CTAs wait for each other, so all run at the same time
} tir_rt_ptx_launch;
#define TIR_RT_PTX_LAUNCH_INIT                                                    \
    {                                                                             \
        sizeof(tir_rt_ptx_launch), {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 0, NULL, 0, 0 \
    }

// Launches the entry `kernel` of any module, PTX or artifact, by its name in the PTX. The parameter
// block is read during the call only. Returns without waiting for the kernel, except on an
// emulator. TIR_ERR_INVALID: no such entry, or a shape that no device takes.
TIR_API TIR_CHECKED tir_status tir_rt_launch_ptx(tir_rt_module *module, tir_rt_stream *stream,
                                                 const char *kernel,
                                                 const tir_rt_ptx_launch *launch, tir_error *error);

// The place of parameter `index` (from 0) of the entry `kernel` in the block of parameters. Each
// begins at the next multiple of the alignment that its declaration states, or else of its size.
// TIR_ERR_INVALID: no such entry, or no such parameter. TIR_ERR_UNSUPPORTED: a driver before CUDA
// 12.4.
TIR_API TIR_CHECKED tir_status tir_rt_ptx_param(tir_rt_module *module, const char *kernel,
                                                uint32_t index, size_t *offset, size_t *size,
                                                tir_error *error);

// All that an emulator found wrong in its last launch, of which the launch's error holds the start
// of the first message: a line for each message and an indented one for what would fix it, or, with
// `json` not 0, an array with one object a line. Writes at most `size` bytes, the terminating 0
// included, and gives the length of the whole text. A GPU finds nothing but the hang of a kernel
// with a watchdog: the waiting warps and their mbarriers, while the kernel's module is loaded.
TIR_API size_t tir_rt_emu_findings(tir_rt_device *device, uint32_t json, char *text, size_t size);

// Arguments in one expression.
static inline tir_rt_arg tir_rt_arg_tensor(uint64_t data, tir_element element, uint32_t rank,
                                           const int64_t *shape, const int64_t *strides)
{
    tir_rt_arg arg;
    arg.kind = TIR_RT_TENSOR;
    arg.as.tensor.data = data;
    arg.as.tensor.element = element;
    arg.as.tensor.rank = rank;
    arg.as.tensor.shape = shape;
    arg.as.tensor.strides = strides;
    return arg;
}

static inline tir_rt_arg tir_rt_arg_int(tir_element element, int64_t value)
{
    tir_rt_arg arg;
    arg.kind = TIR_RT_SCALAR;
    arg.as.scalar.element = element;
    arg.as.scalar.value.i = value;
    return arg;
}

static inline tir_rt_arg tir_rt_arg_float(tir_element element, double value)
{
    tir_rt_arg arg;
    arg.kind = TIR_RT_SCALAR;
    arg.as.scalar.element = element;
    arg.as.scalar.value.f = value;
    return arg;
}

#ifdef __cplusplus
}
#endif
#endif
