// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The front end: .tir text in, verified tile IR (or the IR of any later form) out.
#ifndef TIR_FRONT_FRONT_H
#define TIR_FRONT_FRONT_H

#include "base/binding.h"
#include "ir/context.h"

enum tir_feature_answer { TIR_FEATURE_LACKING, TIR_FEATURE_THERE, TIR_FEATURE_UNKNOWN };

struct tir_front_options {
    const struct tir_binding *metas; // -D NAME=VALUE, for whichever kernels have that meta
    uint32_t meta_count;
    bool metas_are_shared; // another file has them too: those of no kernel here are no mistake
    const char *kernel;    // only this kernel; NULL: every kernel of the main file
    // Does the target have the feature that `config(..., needs = NAME)` names? NULL: there is no
    // target, and all have it.
    enum tir_feature_answer (*has)(void *user, tir_str feature);
    void *has_user;
    int64_t shared_bytes;   // of a CTA of the target; 0: there is no target, and no end of them
    int64_t tensor_columns; // of its tensor memory; 0: it has none
    // Finds an imported file: fills *text (it must stay valid until the compilation ends). NULL:
    // imports are errors. from: the name of the importing file.
    bool (*import)(void *user, tir_str from, tir_str path, tir_str *name, tir_str *text);
    void *import_user;
};

// Parses, checks and lowers one file and what it imports. False: diagnostics say why; *out is then
// NULL. Never crashes, hangs or asserts on any bytes.
bool tir_front_module(struct tir_context *cx, tir_str name, tir_str source,
                      const struct tir_front_options *options, struct tir_module **out);

// The source in canonical style, comments kept. False: it does not parse.
bool tir_front_format(struct tir_context *cx, tir_str name, tir_str source, struct tir_text *out);

#endif
