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
enum { KEY_BYTES = 2048, MACHINE_BYTES = 64 };

struct entry {
    char *key;
    double ns, work; /* work: of the call that was measured */
};

/* Rates of a machine, by which operators without an entry take their time. */
struct rates {
    bool are_given;
    double flops_per_s, bytes_per_s, overhead_us;
};

struct ph__op_times {
    struct ph__op_times_options options;
    struct rates rates;
    char *label;
    char missing[KEY_BYTES]; /* name of the first call or work that has no time; "": none */
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

/* ---- rates ---- */

/* Reads a rate into *rate_out. PH_ERROR_CONFIG: the member is not a rate's, or not a number in its range. */
static ph_status read_rate(const char *path, const struct ph__json_member *member, struct rates *rates)
{
    const struct {
        const char *key;
        double *rate;
        double least;
    } members[] = {{"flops_per_s", &rates->flops_per_s, 1}, {"bytes_per_s", &rates->bytes_per_s, 1},
        {"overhead_us", &rates->overhead_us, 0}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (strcmp(member->key, members[i].key) != 0)
            continue;
        *members[i].rate = ph__json_as_number(member->value, -1);
        if (*members[i].rate >= members[i].least)
            return PH_OK;
        return ph_fail(PH_ERROR_CONFIG, "%s: rates: '%s' must be a number of at least %g", path, member->key,
            members[i].least);
    }
    return ph_fail(PH_ERROR_CONFIG,
        "%s: rates: unknown member '%s'; it has flops_per_s, bytes_per_s and overhead_us", path, member->key);
}

static ph_status read_rates(struct ph__op_times *times, const struct ph__json *json)
{
    const char *path = times->options.path;
    struct ph__json_member member = {0};
    struct rates rates = {.are_given = json != NULL};
    if (json == NULL)
        return PH_OK;
    while (ph__json_next_member(json, &member))
        PH_TRY(read_rate(path, &member, &rates));
    if (rates.flops_per_s <= 0 || rates.bytes_per_s <= 0)
        return ph_fail(PH_ERROR_CONFIG, "%s: rates must have flops_per_s and bytes_per_s", path);
    times->rates = rates;
    return PH_OK;
}

/* Returns max(flops / rate, bytes / rate) + overhead, in nanoseconds (the roofline: Williams et al., CACM
 * 2009). */
static double by_rates(const struct rates *rates, const struct ph__cost *cost)
{
    const double seconds = fmax(cost->flops / rates->flops_per_s, cost->bytes / rates->bytes_per_s);
    return 1e9 * seconds + 1e3 * rates->overhead_us;
}

/* Gives the cost of work: an operation for each unit, and the bytes that it names. Work that names none reads
 * and writes a number of 4 bytes for each unit. */
static struct ph__cost cost_of(const struct ph__op_work *work)
{
    const double bytes = (double)work->bytes[0] + (double)work->bytes[1];
    return (struct ph__cost){
        .flops = work->amount, .bytes = bytes > 0 ? bytes : 2 * sizeof(uint32_t) * work->amount};
}

/* ---- the file ---- */

static const char *own_isa(void)
{
    enum ph__isa isa = PH_ISA_REF;
    (void)ph__cpu_isa(&isa);
    return ph__isa_name(isa);
}

static void own_machine(char name_out[MACHINE_BYTES])
{
    name_out[MACHINE_BYTES - 1] = '\0';
    if (gethostname(name_out, MACHINE_BYTES - 1) != 0)
        name_out[0] = '\0';
}

/* PH_ERROR_CONFIG: the profile is of another machine than this, which would measure into it. */
static ph_status check_machine(const struct ph__op_times *times, const struct ph__json *json)
{
    char machine[MACHINE_BYTES], threads[24], has_threads[24];
    own_machine(machine);
    snprintf(threads, sizeof threads, "%zu", ph__team_num_threads(times->options.backend->team));
    snprintf(has_threads, sizeof has_threads, "%lld",
        (long long)ph__json_as_integer(ph__json_get(json, "threads"), 0));
    const struct {
        const char *what, *has, *own;
    } facts[] = {{"instruction set", ph__json_as_text(ph__json_get(json, "isa"), ""), own_isa()},
        {"threads", has_threads, threads},
        {"machine", ph__json_as_text(ph__json_get(json, "machine"), ""), machine}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (strcmp(facts[i].has, facts[i].own) != 0)
            return ph_fail(PH_ERROR_CONFIG,
                "%s: the profile is of %s '%s', and here it is '%s': name another file, or give "
                "--no-measure",
                times->options.path, facts[i].what, facts[i].has, facts[i].own);
    return PH_OK;
}

static ph_status read_operators(struct ph__op_times *times, const struct ph__json *operators)
{
    struct ph__json_member member = {0};
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

static ph_status read_label(struct ph__op_times *times, const struct ph__json *label)
{
    if (label == NULL)
        return PH_OK;
    times->label = strdup(ph__json_as_text(label, ""));
    return times->label != NULL ? PH_OK : ph__out_of_memory("a profile's label");
}

static ph_status read_entries(struct ph__op_times *times, const struct ph__json *json)
{
    const struct ph__json *operators = ph__json_get(json, "operators"), *rates = ph__json_get(json, "rates");
    if (ph__json_as_integer(ph__json_get(json, "version"), 0) != FORMAT_VERSION ||
        !(ph__json_is_object(operators) || ph__json_is_object(rates)))
        return ph_fail(PH_ERROR_CONFIG, "%s: not a profile of operators of version %d", times->options.path,
            FORMAT_VERSION);
    PH_TRY(read_rates(times, rates));
    PH_TRY(read_label(times, ph__json_get(json, "label")));
    if (times->rates.are_given)
        times->options.may_measure = false;
    if (times->options.may_measure)
        PH_TRY(check_machine(times, json));
    return read_operators(times, operators);
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
    free(times->label);
    ph__name_index_fini(&times->keys);
    ph__op_scratch_fini(&times->scratch);
    free(times);
}

ph_status ph__op_times_save(struct ph__op_times *times)
{
    char machine[MACHINE_BYTES];
    if (times->options.path == NULL || times->num_measured == 0)
        return PH_OK;
    own_machine(machine);
    struct ph__json *json = ph__json_object(), *operators = ph__json_object();
    ph__json_set_integer(json, "version", FORMAT_VERSION);
    if (times->label != NULL)
        ph__json_set_text(json, "label", times->label);
    ph__json_set_text(json, "machine", machine);
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

const char *ph__op_times_label(const struct ph__op_times *times)
{
    return times->label;
}

/* ---- finding ---- */

/* Gives the entry's time, scaled to this work. */
static double scaled(const struct entry *entry, double work)
{
    return entry->work > 0 && work > 0 ? entry->ns * (work / entry->work) : entry->ns;
}

/* Remembers the first name without a time: who asks may have no way to fail. */
static ph_status refuse_missing(struct ph__op_times *times, const char *key)
{
    if (times->missing[0] == '\0')
        snprintf(times->missing, sizeof times->missing, "%s", key);
    return ph__op_times_missing(times);
}

ph_status ph__op_times_missing(const struct ph__op_times *times)
{
    if (times->missing[0] == '\0')
        return PH_OK;
    return ph_fail(PH_ERROR_CONFIG,
        "%s: the profile has no time for '%s': measure it on its own machine, or add \"rates\"",
        times->options.path, times->missing);
}

/* Adds an entry of measured work, and gives its number. */
static ph_status add_measured(
    struct ph__op_times *times, const char *key, double ns, double work, size_t *index_out)
{
    times->num_measured++;
    PH_TRY(add_entry(times, key, ns, work));
    *index_out = times->keys.count - 1;
    return PH_OK;
}

ph_status ph__op_times_find(
    struct ph__op_times *times, const struct ph__call *call, ph__op_settle *settle, double *ns_out)
{
    const double work = work_of(call);
    struct ph__cost cost = {0};
    char key[KEY_BYTES];
    double ns;
    name_call(call, key);
    size_t index = ph__name_index_find(&times->keys, key);
    if (index == PH_NO_NAME && times->rates.are_given) {
        call->node->op->cost(call, &cost);
        *ns_out = by_rates(&times->rates, &cost);
        return PH_OK;
    }
    if (index == PH_NO_NAME && !times->options.may_measure)
        return refuse_missing(times, key);
    if (index == PH_NO_NAME) {
        PH_TRY(ph__op_measure(&times->scratch, times->options.backend, call, settle, &ns));
        PH_TRY(add_measured(times, key, ns, work, &index));
    }
    *ns_out = scaled(&times->entries[index], work);
    return PH_OK;
}

ph_status ph__op_times_find_work(
    struct ph__op_times *times, const char *name, const struct ph__op_work *work, double *ns_out)
{
    const struct ph__cost cost = cost_of(work);
    char key[KEY_BYTES];
    double ns;
    snprintf(key, sizeof key, "%s 2^%d", name, work->amount > 0 ? (int)ceil(log2(work->amount)) : 0);
    size_t index = ph__name_index_find(&times->keys, key);
    if (index == PH_NO_NAME && times->rates.are_given) {
        *ns_out = by_rates(&times->rates, &cost);
        return PH_OK;
    }
    if (index == PH_NO_NAME && !times->options.may_measure)
        return refuse_missing(times, key);
    if (index == PH_NO_NAME) {
        PH_TRY(ph__op_measure_work(&times->scratch, work, &ns));
        PH_TRY(add_measured(times, key, ns, work->amount, &index));
    }
    *ns_out = scaled(&times->entries[index], work->amount);
    return PH_OK;
}
