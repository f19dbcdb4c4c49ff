/* phloem hub bench ADDRESS: measures a running hub from this host, by temporary services. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "cli/arguments.h"
#include "cli/hub/hub_verbs.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "train/ranks/memory_check.h"

#define MAX_SIZES 32
#define MAX_BENCH_WORKERS 256
#define MAX_ROUNDS 10000000
#define MAX_KEY_BYTES ((uint64_t)1 << 36)
#define DEFAULT_SIZES "4K,64K,1M,16M,64M"

struct request {
    const char *address, *secret_file, *workers, *rounds, *sizes, *transport, *wait;
    bool is_json;
};

struct plan {
    struct ph_hub_options options;
    uint32_t num_workers;
    size_t num_rounds, num_sizes;
    uint64_t sizes[MAX_SIZES]; /* bytes */
    enum ph_hub_transport transports[2];
    size_t num_transports;
};

static ph_status parse(int argc, char **argv, struct request *request, bool *is_done)
{
    const struct cli_flag flags[] = {
        {"--workers", CLI_TEXT, &request->workers, "N", "number of threads that push and pull; default: 2"},
        {"--sizes", CLI_TEXT, &request->sizes, "LIST", "sizes of the key in bytes; default: " DEFAULT_SIZES},
        {"--rounds", CLI_TEXT, &request->rounds, "N", "rounds of each size; default: 100"},
        {"--transport", CLI_TEXT, &request->transport, "T",
            "shm, tcp or all; default: all that are possible"},
        {"--wait", CLI_TEXT, &request->wait, "W",
            "wait of workers: auto (default), spin, spin_then_sleep or sleep"},
        {"--secret-file", CLI_TEXT, &request->secret_file, "FILE", "secret file of the hub"},
        {"--json", CLI_SWITCH, &request->is_json, NULL, "prints JSON instead of a table"},
    };
    const struct cli_command command = {"hub bench", "hub bench 127.0.0.1:4711 --sizes 4K,64M",
        "Measures the hub at ADDRESS, or several that share the key: ADDRESS,ADDRESS.\n"
        "In each round each worker pushes a gradient and pulls the parameters.\n"
        "GB/s and messages/s count what all workers push and pull together.",
        "ADDRESS", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    *is_done = arguments.has_printed_help;
    request->address = arguments.positional[0];
    return PH_OK;
}

/* ---- the plan ---- */

static ph_status parse_count(
    const char *flag, const char *text, int64_t fallback, int64_t most, int64_t *count_out)
{
    *count_out = fallback;
    if (text != NULL && (!ph__integer_parse(text, count_out) || *count_out < 1 || *count_out > most))
        return ph_fail(
            PH_ERROR_USAGE, "%s must be an integer from 1 to %" PRId64 ", not '%s'", flag, most, text);
    return PH_OK;
}

static ph_status choose(
    const char *flag, const char *text, const char *const *words, size_t num_words, size_t *index_out)
{
    for (size_t i = 0; i < num_words; i++) {
        if (strcmp(text, words[i]) == 0) {
            *index_out = i;
            return PH_OK;
        }
    }
    return cli_unknown(flag, text, words, num_words);
}

/* Parses a size: "64K" is 65536. */
static ph_status parse_size(const char *text, size_t length, uint64_t *size_out)
{
    static const char units[] = "KMG";
    char digits[24] = "";
    int64_t number = 0;
    const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
    const size_t num_digits = length - (unit != NULL);
    const int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;
    if (num_digits < sizeof digits)
        memcpy(digits, text, num_digits);
    if (!ph__integer_parse(digits, &number) || number < 1 || (uint64_t)number > MAX_KEY_BYTES >> shift ||
        ((uint64_t)number << shift) % sizeof(float) != 0)
        return ph_fail(PH_ERROR_USAGE,
            "--sizes: '%.*s' is not a size: write bytes, a multiple of %zu, or 64K, 16M, 1G", (int)length,
            text, sizeof(float));
    *size_out = (uint64_t)number << shift;
    return PH_OK;
}

static ph_status parse_sizes(const char *text, struct plan *plan)
{
    for (;;) {
        const size_t length = strcspn(text, ",");
        if (plan->num_sizes == MAX_SIZES)
            return ph_fail(PH_ERROR_USAGE, "--sizes: at most %d sizes can be given", MAX_SIZES);
        PH_TRY(parse_size(text, length, &plan->sizes[plan->num_sizes++]));
        if (text[length] == '\0')
            return PH_OK;
        text += length + 1;
    }
}

static ph_status choose_transports(const char *text, bool has_several_hubs, struct plan *plan)
{
    static const char *const words[] = {"all", "shm", "tcp"}; /* enum ph_hub_transport */
    size_t chosen = 0;
    if (text != NULL)
        PH_TRY(choose("--transport", text, words, sizeof words / sizeof *words, &chosen));
    if (chosen == PH_HUB_SHARED_MEMORY || (chosen == PH_HUB_AUTO && !has_several_hubs))
        plan->transports[plan->num_transports++] = PH_HUB_SHARED_MEMORY;
    if (chosen != PH_HUB_SHARED_MEMORY)
        plan->transports[plan->num_transports++] = PH_HUB_TCP;
    return PH_OK;
}

static ph_status make_plan(const struct request *request, struct plan *plan)
{
    static const char *const waits[] = {"auto", "spin", "spin_then_sleep", "sleep"};
    int64_t num_workers, num_rounds;
    size_t wait = 0;
    PH_TRY(parse_count("--workers", request->workers, 2, MAX_BENCH_WORKERS, &num_workers));
    PH_TRY(parse_count("--rounds", request->rounds, 100, MAX_ROUNDS, &num_rounds));
    PH_TRY(parse_sizes(request->sizes != NULL ? request->sizes : DEFAULT_SIZES, plan));
    PH_TRY(choose_transports(request->transport, strchr(request->address, ',') != NULL, plan));
    if (request->wait != NULL)
        PH_TRY(choose("--wait", request->wait, waits, sizeof waits / sizeof *waits, &wait));
    plan->num_workers = (uint32_t)num_workers;
    plan->num_rounds = (size_t)num_rounds;
    plan->options = (struct ph_hub_options){.size = sizeof(struct ph_hub_options),
        .address = request->address,
        .secret_file = request->secret_file,
        .connect_timeout_ms = CLI_HUB_CONNECT_MS,
        .wait = (enum ph_hub_wait_policy)wait,
        .stop_signal = cli_stop_signal()};
    return PH_OK;
}

/* ---- results ---- */

static const char *transport_name(enum ph_hub_transport transport)
{
    return transport == PH_HUB_TCP ? "tcp" : "shared memory";
}

struct report { /* one of the two is set */
    struct ph__json *rows;
    struct ph__text_table *table;
};

static void add_json(struct ph__json *rows, const struct plan *plan, enum ph_hub_transport transport,
    uint64_t size, const struct cli_bench_result *result)
{
    struct ph__json *row = ph__json_object();
    ph__json_set_text(row, "transport", transport_name(transport));
    ph__json_set_text(row, "why", result->why);
    ph__json_set_integer(row, "workers", plan->num_workers);
    ph__json_set_integer(row, "bytes", (int64_t)size);
    ph__json_set_integer(row, "chunks", result->num_chunks);
    ph__json_set_integer(row, "rounds", (int64_t)plan->num_rounds);
    ph__json_set_number(row, "median_us", result->median_s * 1e6);
    ph__json_set_number(row, "p99_us", result->p99_s * 1e6);
    ph__json_set_number(row, "bytes_per_s", result->bytes_per_s);
    ph__json_set_number(row, "messages_per_s", result->messages_per_s);
    ph__json_append(rows, row);
}

static void add_row(struct ph__text_table *table, enum ph_hub_transport transport, uint64_t size,
    const struct cli_bench_result *result)
{
    char bytes[32];
    ph__text_table_cell(table, "%s", transport_name(transport));
    ph__text_table_cell(table, "%s", ph__bytes_text(size, bytes));
    ph__text_table_cell(table, "%u", result->num_chunks);
    ph__text_table_cell(table, "%.1f", result->median_s * 1e6);
    ph__text_table_cell(table, "%.1f", result->p99_s * 1e6);
    ph__text_table_cell(table, "%.2f", result->bytes_per_s * 1e-9);
    ph__text_table_cell(table, "%.0f", result->messages_per_s);
}

/* ---- measuring ---- */

static ph_status measure_size(const struct plan *plan, enum ph_hub_transport transport, uint64_t size,
    struct cli_bench_result *result_out)
{
    struct cli_bench_service service;
    *result_out = (struct cli_bench_result){0};
    PH_TRY(cli_bench_service_create(&plan->options, plan->num_workers, &service));
    return cli_bench_service_end(
        &service, cli_bench_measure(&service, transport, size / sizeof(float), plan->num_rounds, result_out));
}

/* Returns true when shared memory was refused, and TCP is measured as well. */
static bool may_be_left_out(const struct plan *plan, enum ph_hub_transport transport, ph_status status,
    const struct cli_bench_result *result)
{
    return status == PH_ERROR_PEER && result->was_refused && transport == PH_HUB_SHARED_MEMORY &&
           plan->num_transports > 1;
}

static ph_status measure_transport(
    const struct plan *plan, enum ph_hub_transport transport, struct report *report)
{
    for (size_t i = 0; i < plan->num_sizes; i++) {
        struct cli_bench_result result;
        const ph_status status = measure_size(plan, transport, plan->sizes[i], &result);
        if (may_be_left_out(plan, transport, status, &result)) {
            fprintf(stderr, "phloem: note: %s is left out: %s\n", transport_name(transport), ph_error_text());
            return PH_OK;
        }
        if (status != PH_OK)
            return status;
        if (report->rows != NULL)
            add_json(report->rows, plan, transport, plan->sizes[i], &result);
        else
            add_row(report->table, transport, plan->sizes[i], &result);
    }
    return PH_OK;
}

static ph_status measure(const struct plan *plan, struct report *report)
{
    for (size_t i = 0; i < plan->num_transports; i++)
        PH_TRY(measure_transport(plan, plan->transports[i], report));
    return PH_OK;
}

static ph_status report_json(const struct plan *plan)
{
    struct report report = {.rows = ph__json_array()};
    ph_status status = measure(plan, &report);
    if (status == PH_OK)
        status = cli_print_json(report.rows);
    ph__json_destroy(report.rows);
    return status;
}

static ph_status report_table(const struct plan *plan)
{
    static const struct ph__text_column columns[] = {{"transport", false}, {"key", true}, {"chunks", true},
        {"median, us", true}, {"p99, us", true}, {"GB/s", true}, {"messages/s", true}};
    struct ph__text_table table;
    struct report report = {.table = &table};
    ph__text_table_init(&table, columns, sizeof columns / sizeof *columns);
    ph_status status = measure(plan, &report);
    if (status == PH_OK)
        printf("%u workers, %zu rounds; fp32 gradients, summed, with momentum\n\n", plan->num_workers,
            plan->num_rounds);
    if (status == PH_OK)
        status = cli_print_table(&table);
    ph__text_table_fini(&table);
    return status;
}

ph_status cli_hub_bench(int argc, char **argv)
{
    struct request request = {0};
    struct plan plan = {0};
    bool is_done;
    PH_TRY(parse(argc, argv, &request, &is_done));
    if (is_done)
        return PH_OK;
    PH_TRY(make_plan(&request, &plan));
    return request.is_json ? report_json(&plan) : report_table(&plan);
}
