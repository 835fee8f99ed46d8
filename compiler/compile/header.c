// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C header of an artifact: its bytes, and for each kernel a function whose parameters are the
// kernel's. Tensors are given by address and are contiguous; their shapes follow from the named
// dimensions. For use from C and C++.

#include "compile/compile.h"

#include <inttypes.h>

#include "base/map.h"

static const char *c_type(enum tir_elem elem)
{
    switch (elem) {
    case TIR_BOOL:
        return "int";
    case TIR_I8:
        return "int8_t";
    case TIR_I16:
        return "int16_t";
    case TIR_I32:
        return "int32_t";
    case TIR_I64:
        return "int64_t";
    case TIR_U8:
    case TIR_E2M1:
    case TIR_E3M2:
    case TIR_E2M3:
    case TIR_E4M3:
    case TIR_E5M2:
    case TIR_UE8M0:
    case TIR_UE4M3:
        return "uint8_t";
    case TIR_U16:
    case TIR_F16:
    case TIR_BF16:
        return "uint16_t";
    case TIR_U32:
        return "uint32_t";
    case TIR_U64:
        return "uint64_t";
    case TIR_TF32:
    case TIR_F32:
        return "float";
    case TIR_F64:
        return "double";
    case TIR_NONE:
    case TIR_MBARRIER:
    case TIR_ELEM_COUNT:
        break; // no parameter is one
    }
    tir_unreachable();
}

static const char *const element_names[TIR_ELEM_COUNT] = {
#define ELEM(id, ...) [TIR_##id] = "TIR_ELEMENT_" #id,
#include "ir/elems.def"
};

// A parameter of the kernel as one of the function. Any name may be a keyword of C or C++, a macro
// of the host (`#define N 64`) or a local of the function, so all of them have a prefix.
#define PARAMETER "arg_"

// What the functions of a kernel or file begin with. What the runtime has taken is moved away, and
// what would then be taken too.
static const char *function_prefix(tir_str name)
{
    static const char *const moved[] = {"tir_", "own_"};
    for (size_t i = 0; i < TIR_COUNT_OF(moved); i++)
        if (name.len >= 4 && !memcmp(name.ptr, moved[i], 4))
            return "own_";
    return "";
}

// "dir/my-gemm.tir" as my_gemm: what the functions of the file begin with.
static const char *stem(struct tir_compilation *c)
{
    size_t begin = c->request.name.len, end;
    while (begin > 0 && c->request.name.ptr[begin - 1] != '/' &&
           c->request.name.ptr[begin - 1] != '\\')
        begin--;
    for (end = begin; end < c->request.name.len && c->request.name.ptr[end] != '.'; end++)
        ;
    struct tir_text text;
    tir_text_init(&text, &c->cx.arena, 0);
    bool word_like =
        begin < end && !(c->request.name.ptr[begin] >= '0' && c->request.name.ptr[begin] <= '9');
    tir_str given = {c->request.name.ptr + begin, end - begin};
    tir_text_format(&text, "%s", word_like ? function_prefix(given) : "own_");
    for (size_t i = begin; i < end; i++) {
        char ch = c->request.name.ptr[i];
        bool word =
            (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9');
        tir_text_char(&text, word ? ch : '_');
    }
    return tir_text_str(&text).ptr;
}

static void add_bytes(struct tir_text *out, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        tir_text_format(out, "%s%u,", i % 24 ? "" : "\n    ", bytes[i]);
}

static bool is_tensor(const struct tir_param *p)
{
    return p->value->type->space == TIR_SPACE_GLOBAL;
}

static void add_parameters(struct tir_text *out, const struct tir_func *f)
{
    for (uint32_t i = 0; i < f->param_count; i++) {
        const struct tir_param *p = &f->params[i];
        tir_text_format(out, "%s " PARAMETER "%s, ",
                        is_tensor(p) ? "uint64_t" : c_type(p->value->type->elem), p->name);
    }
    for (uint32_t i = 0; i < f->dim_count; i++)
        tir_text_format(out, "int64_t " PARAMETER "%s, ", f->dims[i].name);
}

static void add_tensor(struct tir_text *out, const struct tir_func *f, uint32_t index)
{
    const struct tir_param *p = &f->params[index];
    uint32_t rank = p->value->type->rank;
    for (uint32_t d = 0; d < rank; d++) {
        tir_text_format(out, "    shapes[%" PRIu32 "][%" PRIu32 "] = ", index, d);
        if (p->dims[d].dim >= 0)
            tir_text_format(out, PARAMETER "%s;\n", f->dims[p->dims[d].dim].name);
        else
            tir_text_format(out, "%" PRId64 ";\n", p->dims[d].constant);
    }
    tir_text_format(out,
                    "    args[%" PRIu32 "] = tir_rt_arg_tensor(" PARAMETER "%s, %s, %" PRIu32
                    ", shapes[%" PRIu32 "], 0);\n",
                    index, p->name, element_names[p->value->type->elem], rank, index);
}

static void add_scalar(struct tir_text *out, const struct tir_func *f, uint32_t index)
{
    const struct tir_param *p = &f->params[index];
    enum tir_elem elem = p->value->type->elem;
    bool is_number = elem == TIR_F32 || elem == TIR_TF32 || elem == TIR_F64;
    tir_text_format(out, "    args[%" PRIu32 "] = tir_rt_arg_%s(%s, %s" PARAMETER "%s);\n", index,
                    is_number ? "float" : "int", element_names[elem],
                    elem == TIR_U64 ? "(int64_t)" : "", p->name);
}

static void add_launch(struct tir_text *out, const struct tir_func *f, const char *name)
{
    tir_text_format(out,
                    "\n// Launches %s. Tensors are addresses of contiguous device memory; see "
                    "tir_rt_launch.\n"
                    "static inline tir_status %s%s_launch(tir_rt_module *module, tir_rt_stream "
                    "*stream, ",
                    name, function_prefix(tir_str_of(name)), name);
    add_parameters(out, f);
    uint32_t count = f->param_count;
    tir_text_format(out,
                    "tir_error *error)\n{\n"
                    "    tir_rt_kernel *kernel;\n"
                    "    tir_rt_arg args[%" PRIu32 "];\n"
                    "    int64_t shapes[%" PRIu32 "][TIR_MAX_RANK];\n"
                    "    tir_str name = {\"%s\", %zu};\n"
                    "    tir_status status = tir_rt_module_kernel(module, name, &kernel, error);\n"
                    "    if (status != TIR_OK)\n        return status;\n    (void)shapes;\n",
                    count + !count, count + !count, name, strlen(name));
    for (uint32_t i = 0; i < count; i++) {
        if (is_tensor(&f->params[i]))
            add_tensor(out, f, i);
        else
            add_scalar(out, f, i);
    }
    tir_text_format(
        out, "    return tir_rt_launch(kernel, stream, args, %" PRIu32 ", 0, error);\n}\n", count);
}

void tir_compile_header_make(struct tir_compilation *c)
{
    const char *name = stem(c);
    struct tir_text out;
    tir_text_init(&out, &c->cx.arena, 0);
    tir_text_add(&out, STR("// Made by tirc from "));
    tir_text_message(&out, c->request.name); // on one line, whatever it is
    // Files of one name may well say different things, so that the guard is of what it says.
    uint64_t guard = tir_hash_bytes(c->artifact, c->artifact_size, 0);
    tir_text_format(&out,
                    "; changes here are lost.\n#ifndef TIR_%s_%016" PRIx64
                    "\n#define TIR_%s_%016" PRIx64 "\n\n#include \"tir/runtime.h\"\n\n"
                    "// The artifact, for %s.\nstatic const unsigned char %s_image[] = {",
                    name, guard, name, guard, c->request.target.name, name);
    add_bytes(&out, c->artifact, c->artifact_size);
    tir_text_format(
        &out,
        "\n};\n\n// Loads the artifact onto a device.\n"
        "static inline tir_status %s_load(tir_rt_device *device, tir_rt_module **out, "
        "tir_error *error)\n{\n"
        "    return tir_rt_module_load(device, %s_image, sizeof(%s_image), out, error);\n"
        "}\n",
        name, name, name);
    for (uint32_t i = 0; i < c->kernels.len; i++)
        if (!c->kernels.at[i].is_step)
            add_launch(&out, tir_kernel_head(&c->kernels.at[i]), c->kernels.at[i].name);
    tir_text_format(&out, "\n#endif\n");
    c->outputs[TIR_OUTPUT_HEADER] = tir_text_str(&out);
}
