#include "sim/op_times.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/format/json.h"
#include "base/memory/memory.h"
#include "base/text/name_index.h"
#include "base/thread/clock.h"
#include "base/thread/cpu.h"

#define FORMAT_VERSION 1
#define MOST_FILE_BYTES ((uint64_t)256 << 20)
enum { KEY_BYTES = 2048 };

struct entry {
    char *key;
    double ns, work; /* work: of the call that was measured */
};

struct ph__op_times {
    struct ph__op_times_options options;
    struct ph__op_scratch scratch;
    struct ph__name_index keys;
    struct entry *entries; /* (keys.count) */
    size_t capacity, num_measured;
};

/* ---- entries ---- */

/* Returns the work by which an entry is scaled: bytes, and FLOPs at eight of them in the time of a byte. */
static double work_of(const struct ph__call *call)
{
    struct ph__cost cost = {0};
    call->node->op->cost(call, &cost);
    return cost.bytes + cost.flops / 8;
}

struct text {
    char *begin;
    size_t used;
};

static void add(struct text *text, const char *format, ...) PH_PRINTF(2, 3);
static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text->begin + text->used, KEY_BYTES - text->used, format, arguments);
    va_end(arguments);
    if (length > 0)
        text->used = text->used + (size_t)length < KEY_BYTES ? text->used + (size_t)length : KEY_BYTES - 1;
}

/* Adds an operand: f32[64,2^12]. */
static void add_operand(struct text *text, const struct ph__operand *operand)
{
    const struct ph_type *type = operand->type;
    if (operand->data == NULL && operand->scalar == NULL && type->kind != PH_SCALAR) {
        add(text, " -");
        return;
    }
    add(text, " %d:%d[", (int)type->kind, (int)type->dtype);
    for (uint32_t i = 0; i < operand->shape.num_dims; i++) {
        const size_t extent = operand->shape.dims[i];
        const bool is_fixed = i >= type->num_dims || type->dims[i].symbol == 0;
        add(text, i > 0 ? "," : "");
        if (is_fixed || extent == 0)
            add(text, "%zu", extent);
        else
            add(text, "2^%d", (int)ceil(log2((double)extent)));
    }
    add(text, "]");
    if (operand->parameter != NULL)
        add(text, "%zuB", operand->parameter->bytes);
}

/* Writes the entry's name. FLOPs a byte stand for attributes that change the work. */
static void name_call(const struct ph__call *call, char key_out[KEY_BYTES])
{
    struct text text = {key_out, 0};
    struct ph__cost cost = {0};
    call->node->op->cost(call, &cost);
    add(&text, "%s", call->node->op->name);
    for (size_t k = 0; k < call->num_inputs; k++)
        add_operand(&text, &call->inputs[k]);
    add(&text, " ->");
    for (size_t k = 0; k < call->num_outputs; k++)
        add_operand(&text, &call->outputs[k]);
    add(&text, " %.1g", cost.bytes > 0 ? cost.flops / cost.bytes : 0);
}

static ph_status add_entry(struct ph__op_times *times, const char *key, double ns, double work)
{
    PH_TRY(ph__array_reserve(
        (void **)&times->entries, &times->capacity, times->keys.count + 1, sizeof *times->entries));
    char *copy = strdup(key);
    if (copy == NULL)
        return ph__out_of_memory("an operator's time");
    const ph_status status = ph__name_index_add(&times->keys, copy);
    if (status == PH_OK)
        times->entries[times->keys.count - 1] = (struct entry){copy, ns, work};
    else
        free(copy);
    return status;
}

/* ---- the file ---- */

static ph_status fail_file(
    const struct ph__op_times *times, const char *what, const char *has, const char *wanted)
{
    return ph_fail(PH_ERROR_CONFIG,
        "%s: the profile is of %s %s, but this simulation is of %s: measure one, or set PHLOEM_ISA and "
        "threads",
        times->options.path, what, has, wanted);
}

static const char *own_isa(void)
{
    enum ph__isa isa = PH_ISA_REF;
    (void)ph__cpu_isa(&isa);
    return ph__isa_name(isa);
}

static ph_status read_entries(struct ph__op_times *times, const struct ph__json *json)
{
    const char *isa = ph__json_as_text(ph__json_get(json, "isa"), "");
    const int64_t threads = ph__json_as_integer(ph__json_get(json, "threads"), 0);
    const size_t wanted = ph__team_num_threads(times->options.backend->team);
    const struct ph__json *operators = ph__json_get(json, "operators");
    struct ph__json_member member = {0};
    char has[32], wants[32];
    if (ph__json_as_integer(ph__json_get(json, "version"), 0) != FORMAT_VERSION ||
        !ph__json_is_object(operators))
        return ph_fail(PH_ERROR_CONFIG, "%s: not a profile of operators of version %d", times->options.path,
            FORMAT_VERSION);
    if (strcmp(isa, own_isa()) != 0)
        return fail_file(times, "instruction set", isa, own_isa());
    snprintf(has, sizeof has, "%lld", (long long)threads);
    snprintf(wants, sizeof wants, "%zu", wanted);
    if (threads != (int64_t)wanted)
        return fail_file(times, "threads", has, wants);
    while (ph__json_next_member(operators, &member)) {
        const double ns = ph__json_as_number(ph__json_at(member.value, 0), -1);
        const double work = ph__json_as_number(ph__json_at(member.value, 1), -1);
        if (ns < 0 || work < 0)
            return ph_fail(PH_ERROR_CONFIG, "%s: operators: '%s' must be [nanoseconds, work]",
                times->options.path, member.key);
        PH_TRY(add_entry(times, member.key, ns, work));
    }
    return PH_OK;
}

static ph_status read_file(struct ph__op_times *times)
{
    struct ph__json *json;
    if (times->options.path == NULL)
        return PH_OK;
    if (times->options.may_measure && !ph__file_exists(times->options.path))
        return PH_OK;
    PH_TRY(ph__json_read(times->options.path, PH_ERROR_CONFIG, MOST_FILE_BYTES, &json));
    const ph_status status = read_entries(times, json);
    ph__json_destroy(json);
    return status;
}

ph_status ph__op_times_open(const struct ph__op_times_options *options, struct ph__op_times **times_out)
{
    struct ph__op_times *times = calloc(1, sizeof *times);
    if (times == NULL)
        return ph__out_of_memory("times of operators");
    times->options = *options;
    const ph_status status = read_file(times);
    if (status == PH_OK)
        *times_out = times;
    else
        ph__op_times_close(times);
    return status;
}

void ph__op_times_close(struct ph__op_times *times)
{
    if (times == NULL)
        return;
    for (size_t i = 0; i < times->keys.count; i++)
        free(times->entries[i].key);
    free(times->entries);
    ph__name_index_fini(&times->keys);
    ph__op_scratch_fini(&times->scratch);
    free(times);
}

ph_status ph__op_times_save(struct ph__op_times *times)
{
    char host[64] = "";
    if (times->options.path == NULL || times->num_measured == 0)
        return PH_OK;
    gethostname(host, sizeof host - 1);
    struct ph__json *json = ph__json_object(), *operators = ph__json_object();
    ph__json_set_integer(json, "version", FORMAT_VERSION);
    ph__json_set_text(json, "machine", host);
    ph__json_set_text(json, "isa", own_isa());
    ph__json_set_integer(json, "threads", (int64_t)ph__team_num_threads(times->options.backend->team));
    for (size_t i = 0; i < times->keys.count; i++) {
        struct ph__json *pair = ph__json_array();
        ph__json_append_number(pair, times->entries[i].ns);
        ph__json_append_number(pair, times->entries[i].work);
        ph__json_set(operators, times->entries[i].key, pair);
    }
    ph__json_set(json, "operators", operators);
    const ph_status status = ph__json_write(json, times->options.path);
    ph__json_destroy(json);
    return status;
}

size_t ph__op_times_num_measured(const struct ph__op_times *times)
{
    return times->num_measured;
}

/* ---- finding ---- */

/* Gives the entry's time, scaled to this work. */
static double scaled(const struct entry *entry, double work)
{
    return entry->work > 0 && work > 0 ? entry->ns * (work / entry->work) : entry->ns;
}

static ph_status refuse_missing(const struct ph__op_times *times, const char *key)
{
    return ph_fail(PH_ERROR_CONFIG,
        "%s: the profile has no time for '%s': measure on this machine, or add it", times->options.path, key);
}

ph_status ph__op_times_find(
    struct ph__op_times *times, const struct ph__call *call, ph__op_settle *settle, double *ns_out)
{
    const double work = work_of(call);
    char key[KEY_BYTES];
    name_call(call, key);
    size_t index = ph__name_index_find(&times->keys, key);
    if (index == PH_NO_NAME) {
        double ns;
        if (!times->options.may_measure)
            return refuse_missing(times, key);
        PH_TRY(ph__op_measure(&times->scratch, times->options.backend, call, settle, &ns));
        times->num_measured++;
        PH_TRY(add_entry(times, key, ns, work));
        index = times->keys.count - 1;
    }
    *ns_out = scaled(&times->entries[index], work);
    return PH_OK;
}

ph_status ph__op_times_find_work(
    struct ph__op_times *times, const char *name, const struct ph__op_work *work, double *ns_out)
{
    char key[KEY_BYTES];
    snprintf(key, sizeof key, "%s 2^%d", name, work->amount > 0 ? (int)ceil(log2(work->amount)) : 0);
    size_t index = ph__name_index_find(&times->keys, key);
    if (index == PH_NO_NAME) {
        double ns;
        if (!times->options.may_measure)
            return refuse_missing(times, key);
        PH_TRY(ph__op_measure_work(&times->scratch, work, &ns));
        times->num_measured++;
        PH_TRY(add_entry(times, key, ns, work->amount));
        index = times->keys.count - 1;
    }
    *ns_out = scaled(&times->entries[index], work->amount);
    return PH_OK;
}
