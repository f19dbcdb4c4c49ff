#include "comm/probe/probe_control.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/memory.h"
#include "base/sizes.h"
#include "base/thread/clock.h"
#include "comm/probe/probe_agent.h"
#include "comm/probe/probe_measure.h"
#include "net/link/socket.h"

#define CONNECT_MS 5000
#define STEP_MS 15000         /* an agent gives up then */
#define GRACE_MS 2000         /* for its answer */
#define FIRST_BYTES (1 << 17) /* of a pair of which nothing is known */
#define LEAST_NS 2e7          /* of the longest transfer */
#define LEAST_ROUND_TRIPS 8.  /* of it, too */
#define AIM 1.25              /* length of the first transfer, as a multiple of the least */
#define NUM_RETRIES 2         /* of a transfer alone that is not steady */
#define TRUNK_NS 1e8          /* that each flow of a trunk would take alone */
#define TRUNK_ROUND_TRIPS 24.
#define HELD_UP .8 /* a flow below this share of what its ends can do is measured alone */
#define SLOW_ECHOES                                                                                   \
    1.25            /* a latency above this multiple of what its ends had elsewhere is measured alone \
                     */
#define BUSY_NS 1e6 /* unless it is so long that waits for a processor do not matter */
#define PAUSE_SLICE_MS 100

struct ph__netprobe {
    const struct ph__netprobe_options *options; /* borrowed */
    const struct ph__netprobe_host *hosts;      /* (num_hosts) borrowed */
    const struct ph__secret *secret;
    size_t num_hosts;
    uint64_t deadline_ns, sent_bytes;
    struct ph__netprobe_link *links; /* (num_hosts) to the agents; socket -1: none */
    struct task *tasks;              /* (num_hosts) of the current step */
    struct ph__netprobe_answer *answers;
};

struct task {
    size_t from, to;
    struct ph__netprobe_ask ask;
};

/* ---- some pairs at once ---- */

static ph_status ask(struct ph__netprobe *probe, const struct task *task)
{
    unsigned char body[PH_NETPROBE_MAX_BODY];
    struct ph__wire_writer writer;
    struct ph__netprobe_link *link = &probe->links[task->from];
    ph__wire_writer_init(&writer, body, sizeof body);
    ph__netprobe_put_ask(&writer, &task->ask);
    link->deadline_ns = ph__clock_deadline(task->ask.limit_ms + GRACE_MS);
    return ph__netprobe_say(link, PH_NETPROBE_ASK, body, writer.used);
}

static ph_status hear_answer(
    struct ph__netprobe *probe, const struct task *task, struct ph__netprobe_answer *answer)
{
    struct ph__netprobe_message message;
    PH_TRY(ph__netprobe_expect(&probe->links[task->from], PH_NETPROBE_ANSWER, &message));
    PH_TRY(ph__netprobe_get_answer(message.body, message.size, answer));
    probe->sent_bytes += answer->sent_bytes;
    return answer->status == PH_OK ? PH_OK : ph_fail(PH_ERROR_PEER, "%s", answer->text);
}

/* Names the pair in the error of its measurement. */
static ph_status blame_pair(const struct ph__netprobe *probe, const struct task *task, ph_status status)
{
    char text[512];
    if (status == PH_OK || ph__is_stop_status(status))
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(PH_ERROR_PEER, "host %s could not measure the way to host %s: %s",
        probe->hosts[task->from].name, probe->hosts[task->to].name, text);
}

/* Runs the tasks at once; an answer of zeros belongs to one that failed. The first failure counts. */
static ph_status run(struct ph__netprobe *probe, size_t num_tasks)
{
    ph_status first = PH_OK;
    char text[1024];
    memset(probe->answers, 0, num_tasks * sizeof *probe->answers);
    size_t num_asked = 0;
    while (num_asked < num_tasks && first == PH_OK) {
        const struct task *task = &probe->tasks[num_asked++];
        first = blame_pair(probe, task, ask(probe, task));
    }
    snprintf(text, sizeof text, "%s", first != PH_OK ? ph_error_text() : "");
    num_asked -= first != PH_OK;
    for (size_t i = 0; i < num_asked; i++) {
        const struct task *task = &probe->tasks[i];
        const ph_status status = blame_pair(probe, task, hear_answer(probe, task, &probe->answers[i]));
        if (status != PH_OK && first == PH_OK)
            snprintf(text, sizeof text, "%s", ph_error_text());
        first = first == PH_OK ? status : first;
    }
    return first == PH_OK ? PH_OK : ph_fail(first, "%s", text);
}

/* ---- hosts ---- */

static ph_status greet_at(struct ph__netprobe *probe, const char *address, uint32_t timeout_ms,
    struct ph__netprobe_link *link, struct ph__netprobe_host *host)
{
    const struct ph__timeout timeout = {.ms = timeout_ms, .stop_signal = probe->options->stop_signal};
    uint64_t id;
    *link = (struct ph__netprobe_link){
        .socket = -1, .deadline_ns = ph__clock_deadline(timeout_ms), .stop_signal = timeout.stop_signal};
    snprintf(link->peer, sizeof link->peer, "%s", address);
    PH_TRY(ph__socket_connect_while(address, timeout, -1, &link->socket));
    PH_TRY(ph__netprobe_greet(link, probe->secret, &id));
    if (host->id != 0 && id != host->id)
        return ph_fail(PH_ERROR_PEER, "%s is another host's agent", address);
    host->id = id;
    host->address = address;
    return PH_OK;
}

/* Connects at the first address that leads to the host's agent. */
static ph_status greet(struct ph__netprobe *probe, size_t index, struct ph__netprobe_host *host)
{
    struct ph__netprobe_link *link = &probe->links[index];
    ph_status status = PH_ERROR_PEER;
    for (size_t i = 0; i < host->num_addresses && status == PH_ERROR_PEER; i++) {
        if (link->socket >= 0)
            close(link->socket);
        status = greet_at(probe, host->addresses[i], CONNECT_MS / (uint32_t)host->num_addresses, link, host);
    }
    PH_TRY(status);
    for (size_t i = 0; i < index; i++)
        if (probe->hosts[i].id == host->id)
            return ph_fail(PH_ERROR_USAGE, "%s and %s are one agent", probe->hosts[i].address, host->address);
    return PH_OK;
}

/* Asks another host's agent for one echo of the first host's, at an address. */
static ph_status try_first(struct ph__netprobe *probe, const char *address)
{
    probe->tasks[0] =
        (struct task){1, 0, {.id = probe->hosts[0].id, .num_echoes = 1, .limit_ms = CONNECT_MS / 2}};
    snprintf(probe->tasks[0].ask.address, PH_ADDRESS_BYTES, "%s", address);
    return run(probe, 1);
}

/* Chooses the first host's address anew where it has several: this process, which may run there, reaches it
 * at addresses that others do not. */
static ph_status choose_first_address(struct ph__netprobe *probe, struct ph__netprobe_host *first)
{
    ph_status status = first->num_addresses > 1 ? PH_ERROR_PEER : PH_OK;
    for (size_t i = 0; i < first->num_addresses && status == PH_ERROR_PEER; i++) {
        status = try_first(probe, first->addresses[i]);
        first->address = first->addresses[i];
    }
    return status;
}

/* Adds the host's name to the error of its agent. */
static ph_status blame(const struct ph__netprobe_host *host, ph_status status)
{
    char text[512];
    if (status != PH_ERROR_PEER)
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status,
        "no agent answers for host %s: %s; start phloem topology agent there, and try again", host->name,
        text);
}

ph_status ph__netprobe_open(const struct ph__netprobe_options *options, struct ph__netprobe_host *hosts,
    size_t num_hosts, struct ph__netprobe **probe_out)
{
    struct ph__netprobe *probe = calloc(1, sizeof *probe);
    if (probe == NULL)
        return ph__out_of_memory("a probe");
    *probe = (struct ph__netprobe){.options = options,
        .hosts = hosts,
        .secret = options->secret != NULL ? options->secret : &ph__netprobe_no_secret,
        .num_hosts = num_hosts,
        .deadline_ns =
            options->seconds > 0 ? ph__clock_ns() + (uint64_t)(options->seconds * 1e9) : UINT64_MAX,
        .links = calloc(num_hosts, sizeof *probe->links),
        .tasks = calloc(num_hosts, sizeof *probe->tasks),
        .answers = calloc(num_hosts, sizeof *probe->answers)};
    ph_status status = probe->links != NULL && probe->tasks != NULL && probe->answers != NULL
                           ? PH_OK
                           : ph__out_of_memory("a probe of %zu hosts", num_hosts);
    for (size_t i = 0; probe->links != NULL && i < num_hosts; i++)
        probe->links[i].socket = -1;
    for (size_t i = 0; i < num_hosts && status == PH_OK; i++)
        status = blame(&hosts[i], greet(probe, i, &hosts[i]));
    if (status == PH_OK)
        status = choose_first_address(probe, &hosts[0]);
    if (status == PH_OK)
        *probe_out = probe;
    else
        ph__netprobe_close(probe);
    return status;
}

void ph__netprobe_close(struct ph__netprobe *probe)
{
    if (probe == NULL)
        return;
    for (size_t i = 0; probe->links != NULL && i < probe->num_hosts; i++)
        if (probe->links[i].socket >= 0)
            close(probe->links[i].socket);
    free(probe->answers);
    free(probe->tasks);
    free(probe->links);
    free(probe);
}

uint64_t ph__netprobe_sent_bytes(const struct ph__netprobe *probe)
{
    return probe->sent_bytes;
}

/* ---- steps ---- */

/* Leaves the network alone after transfers of so many nanoseconds. */
static ph_status pause_after(const struct ph__netprobe *probe, double busy_ns)
{
    const uint64_t until_ns = ph__clock_ns() + (uint64_t)(busy_ns * (1 / probe->options->share - 1));
    while (ph__clock_ns() < until_ns) {
        usleep(1000 * (useconds_t)ph__min((size_t)ph__clock_ms_until(until_ns), PAUSE_SLICE_MS));
        if (ph__is_stopped(probe->options->stop_signal))
            return ph_fail(ph__stop_status(probe->options->stop_signal), "stopped by a signal");
        PH_TRY(ph__meanwhile(&probe->options->meanwhile));
    }
    return PH_OK;
}

/* Adds a task to the step. */
static void add_task(
    struct ph__netprobe *probe, size_t *num_tasks, size_t from, size_t to, const struct ph__netprobe_ask *ask)
{
    struct task *task = &probe->tasks[(*num_tasks)++];
    *task = (struct task){from, to, *ask};
    task->ask.id = probe->hosts[to].id;
    snprintf(task->ask.address, sizeof task->ask.address, "%s", probe->hosts[to].address);
}

/* Divides what is left of time and bytes among the tasks. PH_ERROR_DATA: not enough is left. */
static ph_status limit(struct ph__netprobe *probe, size_t num_tasks)
{
    const struct ph__netprobe_options *options = probe->options;
    const int left_ms = ph__clock_ms_until(probe->deadline_ns);
    const uint64_t left_bytes = options->bytes > probe->sent_bytes ? options->bytes - probe->sent_bytes : 0;
    if (left_ms == 0)
        return ph_fail(PH_ERROR_DATA, "the probe has reached its limit, --seconds %g", options->seconds);
    for (size_t i = 0; i < num_tasks; i++) {
        struct ph__netprobe_ask *asked = &probe->tasks[i].ask;
        asked->limit_ms = (uint32_t)ph__min(asked->limit_ms, (size_t)left_ms);
        if (options->bytes > 0)
            asked->max_bytes = ph__min(asked->max_bytes, left_bytes / num_tasks);
        if (asked->bytes > asked->max_bytes)
            return ph_fail(PH_ERROR_DATA, "the probe has reached its limit, --bytes %llu",
                (unsigned long long)options->bytes);
    }
    return PH_OK;
}

/* Does a step, whose answers `keep` takes, also those of a step that failed. */
static ph_status step(struct ph__netprobe *probe, size_t num_tasks, struct ph__netprobe_result *result,
    void (*keep)(const struct ph__netprobe *probe, size_t num_tasks, struct ph__netprobe_result *result))
{
    if (num_tasks == 0)
        return PH_OK;
    PH_TRY(ph__meanwhile(&probe->options->meanwhile));
    PH_TRY(limit(probe, num_tasks));
    const uint64_t began_ns = ph__clock_ns();
    ph_status status = run(probe, num_tasks);
    const double took_ns = (double)(ph__clock_ns() - began_ns);
    keep(probe, num_tasks, result);
    if (status == PH_ERROR_PEER && ph__clock_ms_until(probe->deadline_ns) == 0)
        status = limit(probe, num_tasks); /* no failure: the time is over */
    if (probe->options->save != NULL && status == PH_OK)
        PH_TRY(probe->options->save(probe->options->save_context));
    if (status != PH_OK)
        return status;
    return probe->tasks[0].ask.bytes > 0 ? pause_after(probe, took_ns) : PH_OK;
}

/* ---- pairs ---- */

static struct ph__netprobe_pair *pair_of(const struct ph__netprobe_result *result, size_t from, size_t to)
{
    return &result->pairs[from * result->num_hosts + to];
}

/* Takes what was measured. A bandwidth that was measured alone replaces any other; a latency, only a greater
 * one: nothing makes it seem less than it is. */
static void keep_pairs(const struct ph__netprobe *probe, size_t num_tasks, struct ph__netprobe_result *result)
{
    for (size_t i = 0; i < num_tasks; i++) {
        const struct task *task = &probe->tasks[i];
        const struct ph__netprobe_answer *answer = &probe->answers[i];
        struct ph__netprobe_pair *pair = pair_of(result, task->from, task->to);
        const double bandwidth = ph__netprobe_bandwidth(answer->marks);
        if (answer->status != PH_OK)
            continue;
        if (answer->latency_ns > 0)
            pair->latency_ns = fmin((double)answer->latency_ns, pair->latency_ns); /* fmin ignores NaN */
        if (bandwidth > 0) {
            pair->bytes_per_ns = bandwidth;
            pair->is_alone = num_tasks == 1;
        }
    }
}

/* Time that the longest transfer of a pair takes at least. */
static double least_ns(const struct ph__netprobe_pair *pair)
{
    return fmax(LEAST_NS, LEAST_ROUND_TRIPS * 2 * pair->latency_ns);
}

static void add_echoes(struct ph__netprobe *probe, size_t *num_tasks, size_t from, size_t to)
{
    const struct ph__netprobe_ask ask = {.num_echoes = probe->options->num_echoes, .limit_ms = STEP_MS};
    add_task(probe, num_tasks, from, to, &ask);
}

/* Adds transfers; retries: how many are added to those that are long enough, but not steady. */
static void add_transfer(struct ph__netprobe *probe, const struct ph__netprobe_result *result,
    size_t *num_tasks, size_t from, size_t to, uint32_t num_retries)
{
    const struct ph__netprobe_pair *pair = pair_of(result, from, to);
    const double bytes = ceil(AIM * least_ns(pair) * pair->bytes_per_ns);
    const struct ph__netprobe_ask ask = {.bytes = (uint64_t)fmax(FIRST_BYTES, bytes),
        .max_bytes = PH_NETPROBE_MAX_TRANSFER_BYTES,
        .least_us = (uint32_t)(least_ns(pair) / 1e3),
        .num_retries = num_retries,
        .limit_ms = STEP_MS};
    add_task(probe, num_tasks, from, to, &ask);
}

static ph_status run_rounds(struct ph__netprobe *probe, struct ph__netprobe_result *result, bool is_latency)
{
    const size_t n = probe->num_hosts;
    for (size_t round = 0; round + 1 < n; round++) {
        size_t num_tasks = 0;
        for (size_t i = 0; i < n; i++) {
            const size_t to = (i + round + 1) % n;
            const struct ph__netprobe_pair *pair = pair_of(result, i, to);
            if (is_latency && isnan(pair->latency_ns))
                add_echoes(probe, &num_tasks, i, to);
            else if (!is_latency && isnan(pair->bytes_per_ns))
                add_transfer(probe, result, &num_tasks, i, to, 0);
        }
        PH_TRY(step(probe, num_tasks, result, keep_pairs));
    }
    return PH_OK;
}

static void share_latencies(struct ph__netprobe_result *result)
{
    for (size_t i = 0; i < result->num_hosts; i++) {
        for (size_t k = 0; k < i; k++) {
            struct ph__netprobe_pair *there = pair_of(result, i, k), *back = pair_of(result, k, i);
            there->latency_ns = back->latency_ns = fmin(there->latency_ns, back->latency_ns);
        }
    }
}

static double least_latency(const struct ph__netprobe_result *result, size_t from)
{
    double least = HUGE_VAL;
    for (size_t to = 0; to < result->num_hosts; to++)
        if (to != from)
            least = fmin(least, pair_of(result, from, to)->latency_ns);
    return least;
}

/* Measures latencies alone that the echoes of others may have held up. */
static ph_status sweep_latencies(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    for (size_t from = 0; from < result->num_hosts; from++) {
        for (size_t to = 0; to < from; to++) {
            size_t num_tasks = 0;
            const double latency_ns = pair_of(result, from, to)->latency_ns;
            const double least_ns = fmax(least_latency(result, from), least_latency(result, to));
            if (latency_ns <= SLOW_ECHOES * least_ns || latency_ns > BUSY_NS)
                continue;
            add_echoes(probe, &num_tasks, from, to);
            PH_TRY(step(probe, num_tasks, result, keep_pairs));
        }
    }
    share_latencies(result);
    return PH_OK;
}

static bool has_no_bandwidth(const struct ph__netprobe_result *result)
{
    for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++)
        if (!isnan(result->pairs[i].bytes_per_ns))
            return false;
    return true;
}

static ph_status measure_alone(
    struct ph__netprobe *probe, struct ph__netprobe_result *result, size_t from, size_t to)
{
    size_t num_tasks = 0;
    if (pair_of(result, from, to)->is_alone)
        return PH_OK;
    add_transfer(probe, result, &num_tasks, from, to, NUM_RETRIES);
    return step(probe, num_tasks, result, keep_pairs);
}

static size_t fastest_from(const struct ph__netprobe_result *result, size_t from)
{
    size_t best = from == 0;
    for (size_t to = 0; to < result->num_hosts; to++)
        if (to != from && pair_of(result, from, to)->bytes_per_ns > pair_of(result, from, best)->bytes_per_ns)
            best = to;
    return best;
}

static double fastest_to(const struct ph__netprobe_result *result, size_t to)
{
    double best = 0;
    for (size_t from = 0; from < result->num_hosts; from++)
        if (from != to)
            best = fmax(best, pair_of(result, from, to)->bytes_per_ns);
    return best;
}

/* Measures pairs alone that others may have held up; *is_any_out: there were some. */
static ph_status sweep(struct ph__netprobe *probe, struct ph__netprobe_result *result, bool *is_any_out)
{
    *is_any_out = false;
    for (size_t to = 0; to < result->num_hosts; to++) {
        for (size_t from = 0; from < result->num_hosts; from++) {
            const struct ph__netprobe_pair *pair = pair_of(result, from, to);
            if (from == to || pair->is_alone)
                continue;
            const double out = pair_of(result, from, fastest_from(result, from))->bytes_per_ns;
            if (pair->bytes_per_ns >= HELD_UP * fmin(out, fastest_to(result, to)))
                continue;
            *is_any_out = true;
            PH_TRY(measure_alone(probe, result, from, to));
        }
    }
    return PH_OK;
}

ph_status ph__netprobe_pairs(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    bool is_any = true;
    PH_TRY(run_rounds(probe, result, true));
    share_latencies(result);
    if (has_no_bandwidth(result)) /* else a probe that is resumed has done this */
        PH_TRY(sweep_latencies(probe, result));
    PH_TRY(run_rounds(probe, result, false));
    for (size_t i = 0; i < probe->num_hosts; i++)
        PH_TRY(measure_alone(probe, result, i, fastest_from(result, i)));
    while (is_any)
        PH_TRY(sweep(probe, result, &is_any));
    return PH_OK;
}

/* ---- trunks ---- */

static void keep_trunk(const struct ph__netprobe *probe, size_t num_tasks, struct ph__netprobe_result *result)
{
    const size_t from = result->groups[probe->tasks[0].from], to = result->groups[probe->tasks[0].to];
    for (size_t i = 0; i < num_tasks; i++)
        if (probe->answers[i].status != PH_OK || probe->answers[i].sent_bytes == 0)
            return;
    result->trunks[from * result->num_groups + to] = ph__netprobe_joint_bandwidth(probe->answers, num_tasks);
}

/* Returns the next member of a group from a host on, or the number of hosts. */
static size_t next_member(const struct ph__netprobe_result *result, size_t group, size_t host)
{
    while (host < result->num_hosts && result->groups[host] != group)
        host++;
    return host;
}

static ph_status measure_trunk(
    struct ph__netprobe *probe, struct ph__netprobe_result *result, size_t a, size_t b)
{
    size_t num_tasks = 0, from = next_member(result, a, 0), to = next_member(result, b, 0);
    for (; from < result->num_hosts && to < result->num_hosts;
         from = next_member(result, a, from + 1), to = next_member(result, b, to + 1)) {
        const struct ph__netprobe_pair *pair = pair_of(result, from, to);
        const double alone_ns = fmax(TRUNK_NS, TRUNK_ROUND_TRIPS * 2 * pair->latency_ns);
        const uint64_t bytes = (uint64_t)fmax(FIRST_BYTES, alone_ns * pair->bytes_per_ns);
        const struct ph__netprobe_ask ask = {.bytes = bytes,
            .max_bytes = bytes,
            .limit_ms = (uint32_t)(STEP_MS + 2e-6 * alone_ns * (double)(num_tasks + 1))};
        add_task(probe, &num_tasks, from, to, &ask);
    }
    return step(probe, num_tasks, result, keep_trunk);
}

ph_status ph__netprobe_trunks(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    for (size_t a = 0; a < result->num_groups; a++)
        for (size_t b = 0; b < result->num_groups; b++)
            if (a != b && isnan(result->trunks[a * result->num_groups + b]))
                PH_TRY(measure_trunk(probe, result, a, b));
    return PH_OK;
}
