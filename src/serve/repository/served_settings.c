#include "serve/repository/served_settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "base/text/utf8.h"
#include "serve/speculation/speculation.h"
#include "serve/wire/oip_messages.h"

#define MODEL(member) struct ph_served_settings, member
#define MAX_ROWS 1e9
#define MAX_BYTES 9e15
#define MAX_US 3.6e9
#define MAX_BATCH 65536

static const struct ph__option options[] = {
    PH_CHOICE_KEY("versions", MODEL(versions), "latest", "latest|all|specific",
        "Versions that are served. latest: the num_versions highest numbers. specific: those of "
        "version_list."),
    PH_INTEGER_KEY("num_versions", MODEL(num_versions), "1", 1, 1000, "Number of versions with latest."),
    PH_TEXT_KEY("version_list", MODEL(version_list), "", "Versions with specific, as 3,5."),
    PH_TEXT_KEY("outputs", MODEL(outputs), "",
        "Values of the model that are offered beside probability, logit and tasks, as hidden,embeddings."),
    PH_CHOICE_KEY("row_format", MODEL(row_format), "fp32", "fp32|fp16|bf16|bf16_split|int8|int4",
        "Format of the rows of embedding tables, as far as that makes them smaller."),
    PH_CHOICE_KEY("precision", MODEL(precision), "fp32", "fp32|bf16",
        "Precision of the weights of linear layers; arithmetic is in fp32."),
    PH_INTEGER_KEY("max_batch", MODEL(max_batch), "64", 1, MAX_BATCH,
        "Rows scored together. Larger requests are scored in pieces. 1: no batching."),
    PH_INTEGER_KEY("max_queue_delay_us", MODEL(max_queue_delay_us), "0", 0, MAX_US,
        "Microseconds that a batch waits for more rows. Under load batches form without waiting."),
    PH_INTEGER_KEY("max_queue_rows", MODEL(max_queue_rows), "16384", 1, MAX_ROWS,
        "Rows that wait at a time. More are refused, unless they are one request and nothing else waits."),
    PH_INTEGER_KEY("max_queue_bytes", MODEL(max_queue_bytes), "268435456", 1, MAX_BYTES,
        "Bytes of the requests that wait at a time."),
    PH_INTEGER_KEY("default_timeout_us", MODEL(default_timeout_us), "0", 0, MAX_US,
        "Microseconds until the deadline of a request that names none. 0: no deadline."),
};

#define TABLE(section_name, help_text)                                                                      \
    {                                                                                                       \
        .section = (section_name), .help = (help_text), .options = options,                                 \
        .num_options = sizeof options / sizeof *options, .settings_size = sizeof(struct ph_served_settings) \
    }

const struct ph__option_table ph__served_options = TABLE("serve.model",
    "Keys of every served model. The file MODEL/serve.yaml in the repository changes them "
    "for one model, without the section's name.");
static const struct ph__option_table file_options = TABLE("", "Keys of a model.");

/* ---- reading ---- */

#define MAX_SETS 128 /* two for each key */

/* Adds each line of a text in the arena as a set for ph__config_read. */
static size_t add_lines(char *text, const char **sets, size_t num_sets)
{
    while (*text != '\0' && num_sets < MAX_SETS) {
        char *end = strchr(text, '\n');
        sets[num_sets++] = text;
        if (end == NULL)
            break;
        *end = '\0';
        text = end + 1;
    }
    return num_sets;
}

static const char *settings_path(const char *run_folder, uint64_t version, struct ph__arena *arena)
{
    char number[24];
    const char *name = ph__last_word(run_folder, '/');
    snprintf(number, sizeof number, "%" PRIu64, version);
    const bool is_version = strcmp(name, number) == 0;
    return ph__path_join(arena, run_folder, is_version ? "../serve.yaml" : "serve.yaml");
}

ph_status ph__served_settings_read(const struct ph_served_settings *common, const char *run_folder,
    uint64_t version, struct ph__arena *arena, struct ph_served_settings *settings_out)
{
    const char *path = settings_path(run_folder, version, arena), *values, *changes;
    const char *sets[MAX_SETS];
    struct ph_served_settings settings = *common;
    struct ph__section sections[] = {
        {&file_options, &settings}, {&ph__speculation_file_options, &settings.speculation}};
    if (path == NULL)
        return PH_ERROR_MEMORY;
    if (!ph__file_exists(path)) {
        *settings_out = *common;
        return PH_OK;
    }
    PH_TRY(ph__config_values(sections, 2, (struct ph__key_filter){0, 0}, arena, &values));
    PH_TRY(ph__config_read(path, NULL, 0, sections, 2, arena));
    PH_TRY(ph__config_changes(sections, 2, (struct ph__key_filter){0, 0}, arena, &changes));
    size_t num_sets = add_lines((char *)(uintptr_t)values, sets, 0);
    num_sets = add_lines((char *)(uintptr_t)changes, sets, num_sets);
    PH_TRY(ph__config_read(NULL, sets, num_sets, sections, 2, arena));
    *settings_out = settings;
    return PH_OK;
}

ph_status ph__served_settings_copy(const struct ph_served_settings *settings, struct ph__arena *arena,
    struct ph_served_settings *settings_out)
{
    struct ph_served_settings copy = *settings;
    const char **const texts[] = {&copy.version_list, &copy.outputs, &copy.speculation.teacher,
        &copy.speculation.user, &copy.speculation.item, &copy.speculation.feature_log};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        *texts[i] = ph__arena_strdup(arena, *texts[i] != NULL ? *texts[i] : "");
        if (*texts[i] == NULL)
            return PH_ERROR_MEMORY;
    }
    *settings_out = copy;
    return PH_OK;
}

/* ---- a client's config ---- */

static ph_status check_name(const char *key, struct ph__bytes name, const char *wanted)
{
    if (name.size == 0 || ph__bytes_are(name, wanted))
        return PH_OK;
    return ph_fail(
        PH_ERROR_DATA, "config, '%s': must be '%s', not '%.*s'", key, wanted, (int)name.size, name.bytes);
}

static ph_status apply_policy(
    const struct ph__oip_policy *policy, struct ph__arena *arena, struct ph_served_settings *settings)
{
    const struct ph__list *specific = &policy->specific.versions;
    const int64_t *versions = specific->items;
    const char *list = "";
    if ((policy->latest.num_versions > 0) + (policy->all.size > 0) + (specific->count > 0) > 1)
        return ph_fail(PH_ERROR_DATA, "config, 'version_policy': must be one of latest, all and specific");
    for (size_t i = 0; i < specific->count && list != NULL; i++)
        list = ph__arena_printf(arena, "%s%" PRId64 ",", list, versions[i]);
    if (list == NULL)
        return PH_ERROR_MEMORY;
    if (policy->latest.num_versions > 0) {
        settings->versions = PH_VERSIONS_LATEST;
        settings->num_versions = policy->latest.num_versions;
    } else if (policy->all.size > 0) {
        settings->versions = PH_VERSIONS_ALL;
    } else if (specific->count > 0) {
        settings->versions = PH_VERSIONS_SPECIFIC;
        settings->version_list = list;
    }
    return PH_OK;
}

static ph_status apply_outputs(
    const struct ph__list *outputs, struct ph__arena *arena, struct ph_served_settings *settings)
{
    const struct ph__oip_config_tensor *items = outputs->items;
    const char *list = "";
    for (size_t i = 0; i < outputs->count && list != NULL; i++)
        list = ph__arena_printf(arena, "%s%.*s,", list, (int)items[i].name.size, items[i].name.bytes);
    if (list == NULL)
        return PH_ERROR_MEMORY;
    if (outputs->count > 0)
        settings->outputs = list;
    return PH_OK;
}

ph_status ph__served_settings_apply(
    const char *model, struct ph__bytes text, struct ph__arena *arena, struct ph_served_settings *settings)
{
    struct ph__oip_config config;
    PH_TRY(ph__message_from_json(&ph__oip_config_message, text.bytes, text.size, arena, &config));
    PH_TRY(check_name("name", config.name, model));
    PH_TRY(check_name("platform", config.platform, "phloem"));
    PH_TRY(check_name("backend", config.backend, "phloem"));
    if (config.max_batch_size < 0 || config.max_batch_size > MAX_BATCH)
        return ph_fail(PH_ERROR_DATA, "config, 'max_batch_size': must be from 0 to %d, not %" PRId64,
            MAX_BATCH, config.max_batch_size);
    if ((double)config.batching.max_queue_delay_us > MAX_US)
        return ph_fail(PH_ERROR_DATA,
            "config, 'max_queue_delay_microseconds': must be from 0 to %.0f, not %" PRIu64, MAX_US,
            config.batching.max_queue_delay_us);
    PH_TRY(apply_policy(&config.policy, arena, settings));
    PH_TRY(apply_outputs(&config.outputs, arena, settings));
    if (config.max_batch_size > 0)
        settings->max_batch = (uint64_t)config.max_batch_size;
    if (config.batching.max_queue_delay_us > 0)
        settings->max_queue_delay_us = config.batching.max_queue_delay_us;
    return PH_OK;
}

/* ---- lists and versions ---- */

ph_status ph__list_visit(
    const char *list, ph_status (*visit)(void *context, struct ph__bytes name), void *context)
{
    while (list != NULL && *list != '\0') {
        list += strspn(list, " ,");
        size_t size = strcspn(list, ",");
        const char *next = list + size;
        while (size > 0 && list[size - 1] == ' ')
            size--;
        if (size > 0)
            PH_TRY(visit(context, (struct ph__bytes){list, size}));
        list = next;
    }
    return PH_OK;
}

struct wanted_version {
    char text[24];
    bool is_listed;
};

static ph_status compare(void *context, struct ph__bytes name)
{
    struct wanted_version *wanted = context;
    wanted->is_listed |= ph__bytes_are(name, wanted->text);
    return PH_OK;
}

bool ph__served_settings_want(
    const struct ph_served_settings *settings, const uint64_t *versions, size_t count, uint64_t version)
{
    struct wanted_version wanted = {.is_listed = false};
    if (settings->versions == PH_VERSIONS_ALL)
        return true;
    if (settings->versions == PH_VERSIONS_LATEST)
        return count <= settings->num_versions || version >= versions[count - settings->num_versions];
    snprintf(wanted.text, sizeof wanted.text, "%" PRIu64, version);
    (void)ph__list_visit(settings->version_list, compare, &wanted);
    return wanted.is_listed;
}
