// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Configurations: what binds the metas of a kernel, and the kernel in each of them.
//
// A clause `config(BM = 64)` is a configuration of its kernel, and every name in it is a meta. A
// clause `config LIST` gives those of a list, `configs LIST { ... }`, which kernels with other
// metas take as well: a kernel takes the configurations whose metas it has, all of them. One that
// binds another meta asks for what this kernel cannot do, and without it would be another tile.
// What is given with -D, or earlier, wins; what the target lacks, or no launch can take, is left
// out.
#include "front/lower/lower.h"

enum { MAX_CONFIGS = 1024 }; // of a list, or of a kernel before it is compiled

struct config_meta {
    const char *name;
    struct tir_span span;
    tir_str value;
};

struct config {
    VEC(struct config_meta) metas;
    bool lacks; // the target lacks what it needs
};

typedef VEC(struct config) config_vec;

struct config_list {
    const struct ast_configs *from;
    const struct module *home; // whose names its values see
    enum { LIST_NEW, LIST_ACTIVE, LIST_DONE } state;
    config_vec all;
};

struct configs { // a kernel's, while it is lowered in one after the other
    struct lower *l;
    const struct ast_kernel *kernel;
    const struct tir_front_options *options;
    uint32_t count; // that were lowered
};

static bool has_meta(const struct ast_kernel *k, const char *name)
{
    vec_foreach(const struct ast_binding, it, &k->metas)
        if (it->name == name) // interned
            return true;
    return false;
}

// Does the target lack what `needs = NAME` names?
static bool lacks_needed(struct lower *l, const struct tir_front_options *o,
                         const struct ast_arg *needs)
{
    const bool is_name = needs->value->kind == AST_NAME;
    const enum tir_feature_answer has = !is_name ? TIR_FEATURE_UNKNOWN
                                        : !o->has
                                            ? TIR_FEATURE_THERE
                                            : o->has(o->has_user, tir_str_of(needs->value->name));
    if (has == TIR_FEATURE_UNKNOWN)
        tir_error_at(&l->cx->diags, needs->value->span, TIR_E_META,
                     "expected a feature of targets, as `tcgen05`");
    return has != TIR_FEATURE_THERE;
}

// META = VALUE. False: reported.
static bool read_meta(struct lower *l, const struct ast_arg *arg, struct config *out)
{
    vec_foreach(const struct config_meta, it, &out->metas)
        if (it->name == arg->name) {
            tir_error_at(&l->cx->diags, arg->span, TIR_E_META, "`%.100s` is bound twice",
                         arg->name);
            return false;
        }
    const struct val v = lower_expr(l, arg->value);
    if (v.kind == VAL_POISON)
        return false;
    if (!val_is_constant(v) && v.kind != VAL_ELEM) {
        tir_error_at(&l->cx->diags, arg->value->span, TIR_E_META,
                     "`%.100s` must be known at compile time", arg->name);
        return false;
    }
    const struct config_meta meta = {arg->name, arg->span, meta_text(l, v)};
    vec_push(l->arena, &out->metas, meta);
    return true;
}

// k: the kernel that the clause belongs to; NULL: a list. False: reported.
static bool read_config(struct lower *l, const struct tir_front_options *o,
                        const struct ast_kernel *k, const struct ast_clause *c, struct config *out)
{
    vec_foreach(const struct ast_arg, it, &c->args) {
        const bool is_meta = it->name && k && has_meta(k, it->name);
        if (it->name && !is_meta && !strcmp(it->name, "needs")) {
            out->lacks |= lacks_needed(l, o, it);
        } else if (!it->name || (k && !is_meta)) {
            tir_error_at(&l->cx->diags, it->span, TIR_E_META, "expected META = VALUE");
            return false;
        } else if (!read_meta(l, it, out)) {
            return false;
        }
    }
    return true;
}

// Lists.

struct config_list *config_list_new(struct lower *l, const struct ast_configs *from,
                                    const struct module *home)
{
    struct config_list *list = arena_new(l->arena, struct config_list);
    *list = (struct config_list){.from = from, .home = home};
    return list;
}

// The list that the clause names. NULL: reported.
static struct config_list *named_list(struct lower *l, const struct ast_clause *c)
{
    const struct ast_expr *e = c->list;
    if (e->kind != AST_NAME && e->kind != AST_FIELD) {
        tir_error_at(&l->cx->diags, e->span, TIR_E_META,
                     "expected the name of a list, as `config gemm.products`");
        return NULL;
    }
    const struct val v = lower_expr(l, e);
    if (v.kind != VAL_CONFIGS && v.kind != VAL_POISON)
        tir_error_at(&l->cx->diags, e->span, TIR_E_META,
                     "expected a list of configurations, not %s", lower_val_name(l, v));
    return v.kind == VAL_CONFIGS ? v.configs : NULL;
}

static void add_config(struct lower *l, struct tir_span span, struct config_list *list,
                       const struct config *config)
{
    if (list->all.len == MAX_CONFIGS)
        tir_error_at(&l->cx->diags, span, TIR_E_LIMIT, "more than %d configurations in `%.100s`",
                     MAX_CONFIGS, list->from->name);
    if (list->all.len > MAX_CONFIGS || !lower_enter(l, span))
        return;
    vec_push(l->arena, &list->all, *config);
    lower_leave(l);
}

static void add_list(struct lower *l, const struct tir_front_options *o, const struct ast_clause *c,
                     struct config_list *to)
{
    struct config_list *list = named_list(l, c);
    if (!list)
        return;
    if (list->state == LIST_ACTIVE) {
        tir_error_at(&l->cx->diags, c->list->span, TIR_E_META, "the list `%.100s` contains itself",
                     list->from->name);
        return;
    }
    config_list_lower(l, list, o);
    vec_foreach(const struct config, it, &list->all)
        add_config(l, c->list->span, to, it);
}

void config_list_lower(struct lower *l, struct config_list *list, const struct tir_front_options *o)
{
    if (list->state != LIST_NEW || !lower_enter(l, list->from->span))
        return;
    const struct module *outer = l->home;
    list->state = LIST_ACTIVE;
    l->home = list->home;
    if (!list->from->clauses.len)
        tir_error_at(&l->cx->diags, list->from->span, TIR_E_META, "`%.100s` has no configurations",
                     list->from->name);
    vec_foreach(const struct ast_clause, c, &list->from->clauses) {
        struct config config = {0};
        if (c->list)
            add_list(l, o, c, list);
        else if (read_config(l, o, NULL, c, &config))
            add_config(l, c->span, list, &config);
    }
    l->home = outer;
    list->state = LIST_DONE;
    lower_leave(l);
}

// Kernels.

// Does it agree with what was given?
static bool agrees(struct configs *cs, const struct config *config)
{
    const struct tir_front_options *o = cs->options;
    vec_foreach(const struct config_meta, it, &config->metas)
        for (uint32_t i = 0; i < o->meta_count; i++)
            if (tir_str_is(o->metas[i].name, it->name) &&
                !tir_str_equal(meta_text(cs->l, meta_parse(cs->l, o->metas[i].value)), it->value))
                return false;
    return true;
}

// config NULL: the kernel as it is. False: it is left out.
static bool lower_one(struct configs *cs, const struct config *config,
                      const struct tir_front_options *o, uint32_t number)
{
    struct lower *l = cs->l;
    struct lower one = {.cx = l->cx,
                        .arena = l->arena,
                        .m = l->m,
                        .program = l->program,
                        .home = l->program->main,
                        .is_config = config};
    if (!lower_kernel(&one, cs->kernel, o))
        return !lower_is_left_out(&one);
    one.f->config = number;
    for (uint32_t i = 0; config && i < one.f->meta_count; i++)
        vec_foreach(const struct config_meta, it, &config->metas)
            one.f->metas[i].is_config |= it->name == one.f->metas[i].name; // interned
    if (number > 1) // a module has no two kernels of one name
        one.f->name =
            tir_intern(&l->cx->names, tir_str_format(l->arena, "%s__%u", cs->kernel->name, number));
    return true;
}

static void lower_config(struct configs *cs, struct tir_span span, const struct config *config)
{
    struct tir_front_options o = *cs->options;
    if (config->lacks || !agrees(cs, config))
        return;
    if (cs->count == MAX_CONFIGS) {
        tir_error_at(&cs->l->cx->diags, span, TIR_E_LIMIT, "more than %d configurations",
                     MAX_CONFIGS);
        return;
    }
    struct tir_binding *metas =
        arena_array(cs->l->arena, struct tir_binding, o.meta_count + config->metas.len);
    for (uint32_t i = 0; i < o.meta_count; i++)
        metas[i] = o.metas[i];
    vec_foreach(const struct config_meta, it, &config->metas)
        metas[o.meta_count++] = (struct tir_binding){tir_str_of(it->name), it->value};
    o.metas = metas;
    cs->count += lower_one(cs, config, &o, cs->count + 1);
}

struct lack { // a meta that configurations of a list bind, and the kernel does not have
    const struct config_meta *meta;
    uint32_t count; // of which it is the first such meta
};

typedef VEC(struct lack) lack_vec;

// The first one that the kernel does not have. NULL: it has all.
static const struct config_meta *lacking(const struct ast_kernel *k, const struct config *config)
{
    vec_foreach(const struct config_meta, it, &config->metas)
        if (!has_meta(k, it->name))
            return it;
    return NULL;
}

static void count_lack(struct lower *l, lack_vec *lacks, const struct config_meta *meta)
{
    vec_foreach(struct lack, it, lacks)
        if (it->meta->name == meta->name) {
            it->count++;
            return;
        }
    vec_push(l->arena, lacks, ((struct lack){meta, 1}));
}

static void refuse_list(struct configs *cs, const struct ast_clause *c, const lack_vec *lacks)
{
    struct tir_diags *diags = &cs->l->cx->diags;
    const tir_str name = tir_source_text(&cs->l->cx->sources, c->list->span);
    tir_error_at(diags, c->list->span, TIR_E_META,
                 "no configuration of `" STR_FMT "` fits `%.100s`: each binds a meta that it does "
                 "not have",
                 STR_ARG(name), cs->kernel->name);
    vec_foreach(const struct lack, it, lacks)
        tir_note_at(diags, it->meta->span, "`%.100s` is no meta of `%.100s`: %u left out",
                    it->meta->name, cs->kernel->name, it->count);
}

// For the receipt.
static struct tir_left_out *left_out(struct lower *l, const struct ast_clause *c,
                                     const lack_vec *lacks, uint32_t all)
{
    struct tir_left_out *out = arena_new(l->arena, struct tir_left_out);
    struct tir_text text;
    uint32_t count = 0;
    vec_foreach(const struct lack, it, lacks)
        count += it->count;
    tir_text_init(&text, l->arena, 0);
    tir_text_format(&text,
                    "configurations: %u of %u of " STR_FMT
                    " left out, for metas that the kernel does not have:",
                    count, all, STR_ARG(tir_source_text(&l->cx->sources, c->list->span)));
    vec_foreach(const struct lack, it, lacks)
        tir_text_format(&text, "%s %s (%u)", it == lacks->at ? "" : ",", it->meta->name, it->count);
    *out = (struct tir_left_out){.span = c->span, .text = tir_text_str(&text)};
    return out;
}

// False: reported.
static bool lower_list(struct configs *cs, const struct ast_clause *c, struct tir_left_out **out)
{
    struct lower *l = cs->l;
    const uint32_t errors = l->cx->diags.error_count;
    const struct config_list *list = named_list(l, c);
    lack_vec lacks = {0};
    uint32_t lacked = 0;
    if (!list)
        return false;
    vec_foreach(const struct config, it, &list->all) {
        const struct config_meta *meta = lacking(cs->kernel, it);
        if (meta)
            count_lack(l, &lacks, meta);
        else
            lower_config(cs, c->span, it);
        lacked += meta != NULL;
        if (l->cx->diags.error_count != errors)
            return false; // the next one would only say it again
    }
    if (lacked == list->all.len)
        refuse_list(cs, c, &lacks);
    else if (lacked)
        *out = left_out(l, c, &lacks, list->all.len);
    return lacked < list->all.len;
}

void lower_configs(struct lower *l, const struct ast_kernel *k, const struct tir_front_options *o)
{
    struct configs cs = {.l = l, .kernel = k, .options = o};
    const uint32_t errors = l->cx->diags.error_count, first = l->m->funcs.len;
    struct tir_left_out *all = NULL, **last = &all;
    l->home = l->program->main;
    vec_foreach(const struct ast_clause, c, &k->clauses) {
        struct config config = {0};
        if (c->kind == AST_CLAUSE_config && c->list && lower_list(&cs, c, last))
            last = *last ? &(*last)->next : last;
        else if (c->kind == AST_CLAUSE_config && !c->list && read_config(l, o, k, c, &config))
            lower_config(&cs, c->span, &config);
        if (l->cx->diags.error_count != errors)
            return;
    }
    if (!cs.count)
        (void)lower_one(&cs, NULL, o, 0);
    for (uint32_t i = first; i < l->m->funcs.len; i++)
        l->m->funcs.at[i]->left_out = all;
}
