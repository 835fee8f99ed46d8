// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The contents of an artifact: its kernels, their parameters, variants and launch shapes, the code.
//
// The compiler fills a tir_artifact_desc and encodes it to bytes; the runtime decodes the bytes
// back to a tir_artifact_desc. The byte layout is in docs/artifact.md. Decoding trusts nothing: a
// desc that comes out of it satisfies every rule stated here.
//
// The parameter block of every kernel (PTX `.param`) holds, each at its natural alignment and in
// this order: for each parameter a tensor as its 64-bit address followed by `rank` 64-bit strides
// in elements (all dimensions, the innermost last), or a scalar as itself; then all named
// dimensions as 64-bit integers; then the variant's tensor maps, 128 bytes each, the first one at a
// multiple of 64; then, in a variant with a watchdog, three 64-bit integers (docs/runtime.md).
#ifndef TIR_ARTIFACT_H
#define TIR_ARTIFACT_H

#include "tir/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIR_ARTIFACT_VERSION 21u

// Limits. An artifact beyond one of them is refused by both encode and decode.
#define TIR_MAX_RANK         6
#define TIR_MAX_EXTENT       ((int64_t)1 << 48) // of a dimension; an address space holds no more
#define TIR_MAX_KERNELS      4096
#define TIR_MAX_DIMS         32 // named dimensions of one kernel
#define TIR_MAX_PARAMS       64
#define TIR_MAX_METAS        256
#define TIR_MAX_CONDITIONS   64
#define TIR_MAX_VARIANTS     128
#define TIR_MAX_CONFIGS      64
#define TIR_MAX_TUNED        64    // devices for which a kernel has choices
#define TIR_MAX_CHOICES      65536 // for one of them
#define TIR_MAX_MAPS         16    // tensor maps of one variant
#define TIR_MAX_ROLES        32    // of one variant
#define TIR_MAX_BARRIERS     64    // of one variant
#define TIR_MAX_SEQUENCES    16    // of one kernel
#define TIR_MAX_STEPS        8     // of one sequence
#define TIR_MAX_SCRATCH      16    // of one sequence
#define TIR_MAX_FORMULA      512   // operations of one formula
#define TIR_MAX_STACK        16    // values a formula may hold at a time
#define TIR_MAX_CELLS        8     // that a formula may set
#define TIR_MAX_PARAM_BYTES  4096

// Types of tensor elements and scalars. The values are stored in artifacts.
typedef enum tir_element {
    TIR_ELEMENT_I8 = 0,
    TIR_ELEMENT_I16 = 1,
    TIR_ELEMENT_I32 = 2,
    TIR_ELEMENT_I64 = 3,
    TIR_ELEMENT_U8 = 4,
    TIR_ELEMENT_U16 = 5,
    TIR_ELEMENT_U32 = 6,
    TIR_ELEMENT_U64 = 7,
    TIR_ELEMENT_F16 = 8,
    TIR_ELEMENT_BF16 = 9,
    TIR_ELEMENT_TF32 = 10, // stored as f32
    TIR_ELEMENT_F32 = 11,
    TIR_ELEMENT_F64 = 12,
    TIR_ELEMENT_E4M3 = 13,
    TIR_ELEMENT_E5M2 = 14,
    TIR_ELEMENT_E2M1 = 15,  // two to a byte, the first in the low half; tensors only
    TIR_ELEMENT_UE8M0 = 16, // tensors and scalars of this type are scales: powers of two
    TIR_ELEMENT_BOOL = 17,  // one byte, 0 or 1
    TIR_ELEMENT_E3M2 = 18,  // in the low 6 bits of a byte, the others 0
    TIR_ELEMENT_E2M3 = 19,  // in the low 6 bits of a byte, the others 0
    TIR_ELEMENT_UE4M3 = 20, // e4m3 without a sign, in the low 7 bits of a byte
    TIR_ELEMENT_COUNT = 21
} tir_element;

// The spelling in .tir source, e.g. "bf16"; "?" for a value outside the enum.
TIR_API const char *tir_element_name(tir_element element);
// Bits of storage: 4 for e2m1, otherwise a multiple of 8; 0 for a value outside the enum.
TIR_API uint32_t tir_element_bits(tir_element element);

typedef enum tir_param_kind { TIR_PARAM_TENSOR = 0, TIR_PARAM_SCALAR = 1 } tir_param_kind;

typedef enum tir_direction {
    TIR_DIRECTION_IN = 0,
    TIR_DIRECTION_OUT = 1,
    TIR_DIRECTION_INOUT = 2
} tir_direction;

// The extent of one tensor dimension: a named dimension, or a constant.
#define TIR_EXTENT_FIXED 0xffffffffu
typedef struct tir_extent {
    uint32_t dim;  // index into the kernel's dims, or TIR_EXTENT_FIXED
    int64_t fixed; // with TIR_EXTENT_FIXED: the extent, at least 0; otherwise 0
} tir_extent;

typedef struct tir_artifact_param {
    tir_str name;
    tir_param_kind kind;
    tir_element element;
    tir_direction direction;          // scalars: TIR_DIRECTION_IN
    uint32_t rank;                    // 0 for scalars
    tir_extent extents[TIR_MAX_RANK]; // outermost first; entries from `rank` on are zero
} tir_artifact_param;

// A formula over 64-bit signed integers in reverse Polish notation. It leaves exactly one value.
// Division and remainder truncate towards zero, CEILDIV rounds towards plus infinity; comparisons
// and the logical operations give 0 or 1 and take any non-zero value as true. Overflow and division
// by zero are errors of the evaluation. A u64 scalar above 2^63 - 1 counts as 2^63 - 1.
typedef enum tir_formula_code {
    TIR_FORMULA_CONST = 0,  // push value
    TIR_FORMULA_DIM = 1,    // push named dimension number `value`
    TIR_FORMULA_SCALAR = 2, // push parameter number `value`, an integer or bool scalar
    TIR_FORMULA_ADD = 3,
    TIR_FORMULA_SUB = 4,
    TIR_FORMULA_MUL = 5,
    TIR_FORMULA_DIV = 6,
    TIR_FORMULA_MOD = 7,
    TIR_FORMULA_CEILDIV = 8,
    TIR_FORMULA_MIN = 9,
    TIR_FORMULA_MAX = 10,
    TIR_FORMULA_EQ = 11,
    TIR_FORMULA_NE = 12,
    TIR_FORMULA_LT = 13,
    TIR_FORMULA_LE = 14,
    TIR_FORMULA_GT = 15,
    TIR_FORMULA_GE = 16,
    TIR_FORMULA_AND = 17,
    TIR_FORMULA_OR = 18,
    TIR_FORMULA_NOT = 19,
    // Push the alignment of parameter number `value`, a tensor: the largest power of two, at most
    // 32, that divides its base address, every stride but the innermost, and its innermost extent
    // unless that is constant, all in bytes; 0 if its innermost stride is not 1.
    TIR_FORMULA_ALIGN = 20,
    TIR_FORMULA_SET = 21, // pop into cell number `value`
    TIR_FORMULA_GET = 22, // push that cell, which a SET before has set
    // As ALIGN, of where the rows of the tensor begin alone: without its innermost extent.
    TIR_FORMULA_BEGIN = 23,
    TIR_FORMULA_COUNT = 24
} tir_formula_code;

typedef struct tir_formula_op {
    tir_formula_code code;
    int64_t value; // for CONST, DIM, SCALAR, ALIGN, BEGIN, SET and GET; otherwise 0
} tir_formula_op;

typedef struct tir_formula {
    const tir_formula_op *ops;
    uint32_t count; // 0: no formula
} tir_formula;

// Evaluates a checked formula (one of a decoded artifact, or of one that was encoded). `dims` are
// the named dimensions; `params` holds at a scalar parameter's number its value, at a tensor's
// TIR_ALIGNMENTS. TIR_ERR_INVALID: overflow, or division by zero.
#define TIR_ALIGNMENTS(align, begin) ((align) | (begin) << 8) // what ALIGN and BEGIN push
TIR_API TIR_CHECKED tir_status tir_formula_eval(const tir_formula *formula, const int64_t *dims,
                                                const int64_t *params, int64_t *out,
                                                tir_error *error);

// Facts about all tensor arguments of one launch that a variant may rely on. Tensors without
// dimensions do not count.
enum {
    // Every named dimension is at most 2^30, and every tensor spans less than 2^31 bytes: the sum
    // over its dimensions of (extent - 1) * |stride|, plus 1, times the element size.
    TIR_FACT_INDEX32 = 1u << 0,
    // Every tensor: TIR_FORMULA_ALIGN gives 16 or more.
    TIR_FACT_VECTOR16 = 1u << 1,
    // Every tensor: innermost stride 1 (an innermost extent of 0 or 1 counts as stride 1).
    TIR_FACT_UNIT_INNER = 1u << 2,
    TIR_FACT_ALL = (1u << 3) - 1
};

// A tensor map that a variant takes. The runtime makes it of the tensor argument
// (tir/tensor_map.h): tiled or of pixels, filled with zeros outside, with the widest fetches of the
// L2 cache.
// Elements are copied unchanged; those of 8 bits, including bool, count as u8. With `bits` of 4 or
// 6, bytes are packed elements of so many bits, and have 8 bits each in shared memory; the
// innermost side of the box counts them. With TIR_MAP_TF32, f32 are rounded to tf32, to nearest,
// ties to even.
enum { TIR_MAP_TF32 = 19 };
typedef struct tir_artifact_map {
    uint32_t param;             // a tensor with dimensions, of whole bytes
    uint32_t swizzle;           // bytes: 0, 32, 64 or 128
    uint32_t bits;              // of an element in shared memory; 0: as the tensor has them
    uint32_t box[TIR_MAX_RANK]; // elements, 1 to 256, outermost first; 0 from the rank on
    // From one of these elements to the next, 1 to 8 (0: 1), and a side's elements * stride at most
    // 256; the innermost dimension has none.
    uint32_t stride[TIR_MAX_RANK];
    // Of a copy of pixels (im2col), 1 to 1024 of them: the box is one of them, of a tensor of rank
    // 3 to 5, and the corners of base pixels have an entry for each dimension between the first and
    // the last, outermost first. 0: it copies boxes, and these are 0.
    uint32_t pixels;
    int32_t low[3], high[3];
} tir_artifact_map;

// Roles (warps of a CTA with their own block) and mbarriers in dynamic shared memory, with their
// names in the source: for messages.
typedef struct tir_artifact_role {
    tir_str name;
    uint32_t first, warps; // warps `first` to `first + warps`, of 32 at most
} tir_artifact_role;
typedef struct tir_artifact_barrier {
    tir_str name;
    uint32_t offset;   // bytes from the start of dynamic shared memory, a multiple of 8
    uint32_t count;    // of mbarriers, 8 bytes each
    uint32_t arrivals; // of a phase; 0: not known
} tir_artifact_barrier;

// When the code of a variant waits for the launch before it to end (griddepcontrol.wait; sm_90 and
// later). FIRST: before it touches memory, so as a step after the first it may be launched earlier.
// LAST: before it ends. It needs nothing of the step before it, which lets it begin when those
// before have ended; it may be launched earlier right behind that step, and nowhere else.
enum tir_waits { TIR_WAITS_NOT, TIR_WAITS_FIRST, TIR_WAITS_LAST };

// A variant of a kernel. The runtime takes the first that fits or, if that has a cost, the cheapest
// of all that fit and have one (the first of equals). If the kernel has a choice for the device and
// the sizes of the launch, and a variant of that configuration fits, only its variants count. A
// variant fits if its `facts` and `when` hold and its tensor maps exist for the arguments: no
// extent is 0, the innermost stride is 1, the address and the other strides are multiples of 16
// bytes, and the strides are positive (strides of extents of 1 do not count).
typedef struct tir_artifact_variant {
    tir_str entry;           // the PTX entry
    uint32_t facts;          // TIR_FACT_*, all needed
    tir_formula when;        // optional: true where this variant may run
    tir_formula cost;        // optional: expected cost of a launch, for choosing among variants
    uint32_t config;         // number of the kernel's configuration; 0 without any
    uint32_t threads;        // per CTA, 1 to 1024
    uint32_t cluster[3];     // CTAs of a cluster along x, y, z; all 0: no clusters
    uint32_t static_shared;  // bytes
    uint32_t dynamic_shared; // bytes
    tir_formula grid[3];     // CTAs along x, y, z
    // 1: grid.x becomes min(grid.x, multiprocessors * ctas_per_sm). With clusters, each axis is
    // rounded up to whole clusters, and grid.x is bounded by the clusters that run at a time.
    uint32_t persistent;
    uint32_t ctas_per_sm; // at least 1 when persistent; otherwise what the compiler expects, or 0
    const tir_artifact_map *maps; // in the order of the parameter block
    uint32_t map_count;
    uint32_t watchdog; // 1: its waits end at the time limit of the launch, with a message
    const tir_artifact_role *roles;
    uint32_t role_count;
    const tir_artifact_barrier *barriers;
    uint32_t barrier_count;
    // 1: its code is made when it is first needed (tir_rt_module_open). Of the fields above only
    // the entry, the facts, the two optional formulas and the configuration are set; the others
    // come with the code. Of an artifact all variants are open, or none.
    uint32_t is_open;
    uint32_t waits; // of enum tir_waits
    // 1: its CTAs wait for each other, so all of them run at the same time, or the launch fails.
    // Not with persistent.
    uint32_t cooperative;
    // CTAs of the clusters that the device makes in place of several of `cluster` where it can, a
    // multiple along x and y; all 0: none. They divide the grid.
    uint32_t preferred[3];
} tir_artifact_variant;

// Memory for one launch of a sequence: a contiguous tensor at a multiple of 256 bytes. Its contents
// are undefined.
typedef struct tir_artifact_scratch {
    tir_str name;
    tir_element element;
    uint32_t rank;                     // at least 1
    tir_formula extents[TIR_MAX_RANK]; // over the kernel's dimensions and parameters
} tir_artifact_scratch;

// A launch of a kernel that is a step. Its arguments are those of the sequence, by the number of
// the parameter, and from the number of parameters on its scratch tensors.
typedef struct tir_artifact_step {
    uint32_t kernel; // number in the artifact
    const uint32_t *args;
    uint32_t arg_count; // as many as the step has parameters
} tir_artifact_step;

// Several launches for one kernel, in this order on one stream. A sequence fits if each of its
// steps has a variant that fits. The runtime chooses among the variants and sequences of a kernel
// by cost; it takes a sequence without a cost only if no variant fits.
typedef struct tir_artifact_sequence {
    tir_str name;
    tir_formula cost; // optional: of all steps together
    uint32_t config;  // number of the kernel's configuration; 0 without any
    const tir_artifact_scratch *scratch;
    uint32_t scratch_count;
    const tir_artifact_step *steps; // at least one
    uint32_t step_count;
} tir_artifact_sequence;

// A rule that every launch must keep (a `where` clause). `text` is printed when `holds` gives 0.
typedef struct tir_artifact_condition {
    tir_formula holds;
    tir_str text;
} tir_artifact_condition;

// A compile-time parameter and its value as text, e.g. "BM" and "128". For people only.
typedef struct tir_artifact_meta {
    tir_str name;
    tir_str value;
} tir_artifact_meta;

// A dimension of the source whose size was known when the kernel was compiled (`where N == 64`).
// The extents of the parameters say the number; the name is for people.
typedef struct tir_artifact_fixed {
    tir_str name;
    int64_t size;
} tir_artifact_fixed;

// A name of the source that stands in expressions of dimensions alone and follows from them: the N
// of X: f32[2 * N], which is X_0 / 2. Conditions say that the dimension is what the expression
// gives.
typedef struct tir_artifact_name {
    tir_str name;
    tir_formula value; // in the kernel's dimensions and integer parameters
} tir_artifact_name;

// The configuration that was measured to be fastest for certain sizes.
typedef struct tir_artifact_choice {
    const int64_t *dims; // the sizes of the kernel's named dimensions, from 0 on
    uint32_t dim_count;  // that of the kernel
    uint32_t config;     // index into the kernel's configs
} tir_artifact_choice;

// Measurements of one kind of device.
typedef struct tir_artifact_tuned {
    tir_str device; // its name, e.g. "NVIDIA H200"
    uint32_t multiprocessors;
    const tir_artifact_choice *choices; // by rising sizes, the first dimension first; no two equal
    uint32_t choice_count;
} tir_artifact_tuned;

// A kernel. Every named dimension is the extent of some tensor dimension, so that a launch can
// infer it. Names of dimensions are unique, and so are names of parameters.
typedef struct tir_artifact_kernel {
    tir_str name;
    const tir_str *dims;
    uint32_t dim_count;
    const tir_artifact_param *params;
    uint32_t param_count;
    const tir_artifact_meta *metas;
    uint32_t meta_count;
    const tir_artifact_fixed *fixed;
    uint32_t fixed_count;
    const tir_artifact_name *names; // no dimensions, and no two alike
    uint32_t name_count;
    const tir_artifact_condition *conditions;
    uint32_t condition_count;
    const tir_artifact_variant *variants; // at least one, or a sequence
    uint32_t variant_count;
    const tir_str *configs; // the metas that each configuration binds, e.g. "BM=64, BN=128"
    uint32_t config_count;  // 0: the kernel has none
    const tir_artifact_tuned *tuned; // no two for one device
    uint32_t tuned_count;
    const tir_artifact_sequence *sequences;
    uint32_t sequence_count;
    // 1: a step of another kernel's sequences. It has none itself, and can also be launched alone.
    uint32_t is_step;
} tir_artifact_kernel;

// A whole artifact. Strings contain no zero byte; in a decoded artifact each of them except
// `cubin` is followed by one.
typedef struct tir_artifact_desc {
    tir_str target;     // what the PTX needs, e.g. "sm_80" or "sm_90a"
    tir_str ptx;        // one module with every variant of every kernel; may be empty with a cubin
                        // or with open variants
    tir_str cubin_arch; // what the cubin is for, e.g. "sm_90a"; empty without a cubin
    tir_str cubin;      // optional
    tir_str receipt;    // optional text: how each kernel was lowered
    const tir_artifact_kernel *kernels;
    uint32_t kernel_count;
} tir_artifact_desc;

// Checks `desc` and writes it as bytes. On success `*bytes` is `*size` bytes from `allocator`
// (NULL: the C library's), to be freed with tir_artifact_bytes_free. TIR_ERR_INVALID names the
// first rule that is broken. Equal descs give equal bytes.
TIR_API TIR_CHECKED tir_status tir_artifact_encode(const tir_artifact_desc *desc,
                                                   const tir_allocator *allocator, uint8_t **bytes,
                                                   size_t *size, tir_error *error);
TIR_API void tir_artifact_bytes_free(uint8_t *bytes, size_t size, const tir_allocator *allocator);

// Reads an artifact. The bytes are copied; `*out` stays valid until tir_artifact_free with the same
// allocator. Any bytes are safe to pass: what is not an artifact gives TIR_ERR_INVALID, and an
// artifact of another version TIR_ERR_UNSUPPORTED.
TIR_API TIR_CHECKED tir_status tir_artifact_decode(const void *bytes, size_t size,
                                                   const tir_allocator *allocator,
                                                   const tir_artifact_desc **out, tir_error *error);
TIR_API void tir_artifact_free(const tir_artifact_desc *desc, const tir_allocator *allocator);

// Bytes of the parameter block of one variant of a checked kernel.
TIR_API size_t tir_artifact_param_bytes(const tir_artifact_kernel *kernel,
                                        const tir_artifact_variant *variant);

#ifdef __cplusplus
}
#endif
#endif
