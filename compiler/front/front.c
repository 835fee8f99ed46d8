// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The front end's entry point: reads the files of a program, then lowers the kernels that are asked
// for.
#include "front/library.h"
#include "front/lower/lower.h"
#include "front/parse/parse.h"

#include <math.h>

enum { MAX_FILES = 64 };

struct loaded { // a file that was read as part of a module
    struct module *module;
    tir_str name;
    bool begins; // the module is named after it
};

struct constant { // to be evaluated once all files are read
    struct module *module;
    const struct ast_binding *binding;
};

struct listed { // to be evaluated after the constants
    struct module *module;
    const struct ast_configs *list;
};

struct loader {
    struct tir_context *cx;
    const struct tir_front_options *options;
    struct program *program;
    VEC(struct loaded) files;
    VEC(struct constant) consts;
    VEC(struct listed) lists;
};

static struct symbol *global_of(const struct module *m, const char *name)
{
    return tir_map_get(&m->globals, tir_map_key(name));
}

static void add_global(struct loader *ld, struct module *m, const char *name, struct tir_span span,
                       struct val v)
{
    struct symbol *s = arena_new(&ld->cx->arena, struct symbol);
    s->name = name;
    s->span = span;
    s->val = v;
    tir_map_set(&m->globals, tir_map_key(name), s);
}

static struct module *new_module(struct loader *ld)
{
    static const struct {
        const char *name;
        double value;
    } known[] = {{"PI", 3.141592653589793},
                 {"LOG2E", 1.4426950408889634},
                 {"LN2", 0.6931471805599453},
                 {"INF", (double)INFINITY}};
    struct module *m = arena_new(&ld->cx->arena, struct module);
    tir_map_init(&m->fns, &ld->cx->arena);
    tir_map_init(&m->globals, &ld->cx->arena);
    for (uint32_t i = 0; i < TIR_COUNT_OF(known); i++)
        add_global(ld, m, tir_intern_cstr(&ld->cx->names, known[i].name), (struct tir_span){0, 0},
                   val_float(known[i].value));
    const int64_t shared = ld->options->shared_bytes;
    add_global(ld, m, tir_intern_cstr(&ld->cx->names, "SHARED_BYTES"), (struct tir_span){0, 0},
               val_int(shared ? shared : INT32_MAX));
    add_global(ld, m, tir_intern_cstr(&ld->cx->names, "TENSOR_COLUMNS"), (struct tir_span){0, 0},
               val_int(ld->options->tensor_columns));
    return m;
}

static void redefined(struct loader *ld, const char *name, struct tir_span span,
                      struct tir_span first)
{
    tir_error_at(&ld->cx->diags, span, TIR_E_REDEFINED, "`%.100s` is defined twice", name);
    tir_note_at(&ld->cx->diags, first, "it is defined here too");
}

static void collect(struct loader *ld, struct module *to, const struct ast_module *m, bool is_main)
{
    struct tir_arena *arena = &ld->cx->arena;
    vec_foreach(struct ast_fn *, it, &m->fns) {
        struct ast_fn *old = tir_map_get(&to->fns, tir_map_key((*it)->name));
        if (old)
            redefined(ld, (*it)->name, (*it)->span, old->span);
        (*it)->home = to;
        tir_map_set(&to->fns, tir_map_key((*it)->name), *it);
    }
    vec_foreach(const struct ast_binding, it, &m->consts)
        vec_push(arena, &ld->consts, ((struct constant){to, it}));
    vec_foreach(struct ast_configs *, it, &m->configs)
        vec_push(arena, &ld->lists, ((struct listed){to, *it}));
    if (!is_main)
        return;
    vec_foreach(struct ast_kernel *, it, &m->kernels) {
        vec_foreach(struct ast_kernel *, old, &ld->program->kernels)
            if ((*old)->name == (*it)->name)
                redefined(ld, (*it)->name, (*it)->span, (*old)->span);
        vec_push(arena, &ld->program->kernels, *it);
    }
}

static void load_file(struct loader *ld, struct module *to, tir_str name, tir_str text,
                      bool begins);

// The file as part of a module (NULL: any) that it begins, or just belongs to.
static const struct loaded *find_file(const struct loader *ld, const struct module *m, tir_str name,
                                      bool begins)
{
    vec_foreach(const struct loaded, it, &ld->files)
        if (tir_str_equal(it->name, name) && (!m || it->module == m) && (!begins || it->begins))
            return it;
    return NULL;
}

// A file of the compiler's own.
static bool library_import(tir_str path, tir_str *name, tir_str *text)
{
    for (const struct library_file *it = library_files; it->name; it++)
        if (tir_str_is(path, it->name)) {
            *name = path;
            *text = tir_str_of(it->text);
            return true;
        }
    return false;
}

// Reads a file into the module, or, if the import names it, into one of its own.
static void load_import(struct loader *ld, struct module *to, tir_str from,
                        const struct ast_import *import)
{
    tir_str name, text = {NULL, 0};
    const struct tir_front_options *o = ld->options;
    bool found = library_import(import->path, &name, &text) ||
                 (o->import && o->import(o->import_user, from, import->path, &name, &text));
    if (!found)
        tir_error_at(&ld->cx->diags, import->span, TIR_E_IMPORT, "cannot read `%.*s`%s" STR_FMT,
                     (int)TIR_MIN(import->path.len, 200), import->path.ptr, text.len ? ": " : "",
                     STR_ARG(text));
    if (!found)
        return;
    const struct loaded *old =
        import->name ? find_file(ld, NULL, name, true) : find_file(ld, to, name, false);
    struct module *m = old ? old->module : import->name ? new_module(ld) : to;
    if (import->name && global_of(to, import->name))
        redefined(ld, import->name, import->name_span, global_of(to, import->name)->span);
    if (import->name)
        add_global(ld, to, import->name, import->name_span,
                   (struct val){.kind = VAL_MODULE, .module = m});
    if (old)
        return;
    if (ld->files.len >= MAX_FILES)
        tir_error_at(&ld->cx->diags, import->span, TIR_E_FILE_SIZE, "more than %d files",
                     MAX_FILES);
    else
        load_file(ld, m, name, text, import->name != NULL);
}

// Imports come first, so that their constants are known.
static void load_file(struct loader *ld, struct module *to, tir_str name, tir_str text, bool begins)
{
    bool is_main = !ld->files.len;
    vec_push(&ld->cx->arena, &ld->files,
             ((struct loaded){to, tir_str_copy(&ld->cx->arena, name), begins}));
    struct tir_source_file *file = tir_source_add(&ld->cx->sources, name, text);
    if (!file) {
        tir_error_at(&ld->cx->diags, (struct tir_span){0, 0}, TIR_E_FILE_SIZE,
                     "all files together are larger than 1 GiB");
        return;
    }
    struct ast_module *m = tir_parse(ld->cx, file);
    if (!m)
        return;
    vec_foreach(const struct ast_import, it, &m->imports)
        load_import(ld, to, file->name, it);
    collect(ld, to, m, is_main);
}

const struct module *lower_standard(struct lower *l)
{
    tir_str name, text;
    struct program *program = l->program;
    if (program->standard)
        return program->standard;
    program->standard = new_module(program->loader);
    if (library_import(STR("tir/standard.tir"), &name, &text))
        load_file(program->loader, program->standard, name, text, true);
    return program->standard;
}

static void define_constants(struct loader *ld, struct lower *l)
{
    tir_map_init(&l->names, l->arena);
    tir_map_init(&l->literals, l->arena);
    tir_map_init(&l->staged, l->arena);
    tir_map_init(&l->staging, l->arena);
    l->f = tir_func_new(l->m, "constants");
    l->b = tir_builder_at_end(l->f, l->f->body);
    vec_foreach(const struct constant, it, &ld->consts) {
        const struct ast_binding *b = it->binding;
        const struct symbol *old = global_of(it->module, b->name);
        if (old)
            redefined(ld, b->name, b->span, old->span);
        l->home = it->module;
        struct val v = lower_expr(l, b->value);
        add_global(ld, it->module, b->name, b->span, const_typed(l, b, v));
    }
}

// Lists may name each other, in any order.
static void define_configs(struct loader *ld, struct lower *l)
{
    VEC(struct config_list *) lists = {0};
    vec_foreach(const struct listed, it, &ld->lists) {
        const struct symbol *old = global_of(it->module, it->list->name);
        if (old)
            redefined(ld, it->list->name, it->list->span, old->span);
        struct config_list *list = config_list_new(l, it->list, it->module);
        add_global(ld, it->module, it->list->name, it->list->span,
                   (struct val){.kind = VAL_CONFIGS, .configs = list});
        vec_push(l->arena, &lists, list);
    }
    vec_foreach(struct config_list *, it, &lists)
        config_list_lower(l, *it, ld->options);
}

// -D NAME=VALUE must mean something to some kernel.
static void check_metas(struct loader *ld)
{
    for (uint32_t i = 0; i < ld->options->meta_count && !ld->options->metas_are_shared; i++) {
        tir_str name = ld->options->metas[i].name;
        struct tir_nearest near = tir_nearest_to(name, name.len < 2 ? 0 : 2);
        bool known = false;
        vec_foreach(struct ast_kernel *, k, &ld->program->kernels)
            vec_foreach(const struct ast_binding, it, &(*k)->metas) {
                known |= tir_str_is(name, it->name);
                tir_nearest_try(&near, tir_str_of(it->name));
            }
        if (!known)
            tir_error_at(&ld->cx->diags, (struct tir_span){0, 0}, TIR_E_META,
                         "no kernel has a meta `%.*s`" TIR_NEAREST_FMT, (int)TIR_MIN(name.len, 100),
                         name.ptr, TIR_NEAREST_ARG(near));
    }
}

// The kernel whose name is most like `wanted`; NULL: none is.
static const char *nearest_kernel(const struct program *program, const char *wanted)
{
    struct tir_nearest n = tir_nearest_to(tir_str_of(wanted), 2);
    vec_foreach(struct ast_kernel *, it, &program->kernels)
        tir_nearest_try(&n, tir_str_of((*it)->name));
    return n.name.ptr;
}

static void lower_kernels(struct loader *ld, struct lower *l)
{
    const char *wanted = ld->options->kernel;
    bool found = false;
    vec_foreach(struct ast_kernel *, it, &ld->program->kernels) {
        if (wanted && strcmp((*it)->name, wanted) != 0)
            continue;
        found = true;
        lower_configs(l, *it, ld->options);
    }
    if (!found && wanted) {
        const char *near = nearest_kernel(ld->program, wanted);
        tir_error_at(&ld->cx->diags, (struct tir_span){0, 0}, TIR_E_KERNEL,
                     "there is no kernel `%.100s`%s%s%s", wanted, near ? "; did you mean `" : "",
                     near ? near : "", near ? "`?" : "");
    }
}

bool tir_front_module(struct tir_context *cx, tir_str name, tir_str source,
                      const struct tir_front_options *options, struct tir_module **out)
{
    static const struct tir_front_options none;
    uint32_t errors = cx->diags.error_count;
    struct program program = {0};
    struct loader ld = {.cx = cx, .options = options ? options : &none, .program = &program};
    program.loader = &ld;
    program.main = new_module(&ld);
    *out = NULL;
    load_file(&ld, program.main, name, source, true);
    if (cx->diags.error_count != errors)
        return false;
    struct tir_module *m = tir_module_new(&cx->arena, cx->types, &cx->names, &cx->diags);
    struct lower l = {.cx = cx, .arena = &cx->arena, .m = m, .program = &program};
    define_constants(&ld, &l);
    define_configs(&ld, &l);
    check_metas(&ld);
    if (cx->diags.error_count == errors)
        lower_kernels(&ld, &l);
    if (cx->diags.error_count != errors)
        return false;
    *out = m;
    return true;
}
