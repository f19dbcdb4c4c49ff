#include "comm/probe/probe_control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/sizes.h"
#include "base/thread/clock.h"
#include "comm/probe/probe_measure.h"
#include "net/link/socket.h"

#define CONNECT_MS 5000
#define ONE_OF_SEVERAL_MS 1000 /* to connect where a host may be at other addresses */
#define STEP_MS 15000          /* an agent gives up then */
#define GRACE_MS 2000          /* for its answer */
#define FIRST_BYTES (1 << 17)  /* of a pair of which nothing is known */
#define LEAST_NS 2e7           /* of the longest transfer */
#define LEAST_ROUND_TRIPS 8.   /* of it, too */
#define AIM 1.25               /* length of the first transfer, as a multiple of the least */
#define NUM_RETRIES 2          /* of a transfer alone that is not steady */
#define TRUNK_NS 4e8           /* that the flows of a trunk would take one after another, */
#define LEAST_FLOWS 4          /* if they are as many; fewer flows have an equal part each */
#define TRUNK_ROUND_TRIPS 24.
#define HELD_UP .8     /* share of what its ends can do below which a flow is held up */
#define NUM_SAMPLES 3u /* pairs that speak for all that are held up between two groups, */
#define ALIKE .9       /* if the slowest has at least this share of the fastest's bandwidth */
#define PAUSE_SLICE_MS 100

struct task {
    size_t from, to;
    struct ph__netprobe_ask ask;
    bool has_failed;
};

/* All pairs from one group to another. */
struct course {
    size_t num_held_up, num_passed;
    double least, most; /* nanoseconds a byte of pairs that were measured alone */
};

struct ph__netprobe {
    const struct ph__netprobe_options *options; /* borrowed */
    const struct ph__netprobe_host *hosts;      /* (num_hosts) borrowed */
    size_t num_hosts, num_tasks;
    uint64_t deadline_ns;
    struct ph__netprobe_link *links;     /* (num_hosts) to the agents; socket -1: none */
    struct task *tasks;                  /* (num_tasks) of the current step */
    struct ph__netprobe_answer *answers; /* (num_tasks) zeros where there is none */
    bool *is_busy;                       /* (num_hosts) in the current step */
    bool *is_wanted;                     /* (num_hosts, num_hosts) pairs to measure */
    double *best_out, *best_in;          /* (num_hosts) the least nanoseconds a byte from a host, to it */
    struct course *courses;              /* (num_groups, num_groups); as large as is_wanted */
};

/* ---- results ---- */

ph_status ph__netprobe_result_init(
    size_t num_hosts, struct ph__arena *arena, struct ph__netprobe_result *result_out)
{
    const size_t num_pairs = num_hosts * num_hosts;
    double *matrices = ph__arena_alloc_array(arena, 3 * num_pairs, sizeof *matrices);
    uint32_t *groups = ph__arena_alloc_array(arena, num_hosts, sizeof *groups);
    char *ways = ph__arena_alloc(arena, num_pairs + 1);
    if (matrices == NULL || groups == NULL || ways == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < 3 * num_pairs; i++)
        matrices[i] = (double)NAN;
    memset(ways, PH_NETPROBE_UNKNOWN, num_pairs);
    *result_out = (struct ph__netprobe_result){
        num_hosts, 1, groups, matrices, matrices + num_pairs, matrices + 2 * num_pairs, ways, 0};
    return PH_OK;
}

size_t ph__netprobe_result_count(const struct ph__netprobe_result *result, enum ph__netprobe_way way)
{
    size_t count = 0;
    for (size_t i = 0; i < result->num_hosts * result->num_hosts; i++)
        count += result->ways[i] == (char)way && i % (result->num_hosts + 1) != 0;
    return count;
}

/* ---- some pairs at once ---- */

static void add_task(struct ph__netprobe *probe, size_t from, size_t to, struct ph__netprobe_ask ask)
{
    struct task *task = &probe->tasks[probe->num_tasks];
    probe->answers[probe->num_tasks++] = (struct ph__netprobe_answer){.error = ""};
    *task = (struct task){from, to, ask, false};
    task->ask.id = probe->hosts[to].id;
    memcpy(task->ask.address, probe->hosts[to].address, PH_ADDRESS_BYTES);
}

/* Divides what is left of time and bytes among the tasks. PH_ERROR_DATA: not enough is left. */
static ph_status limit(struct ph__netprobe *probe, const struct ph__netprobe_result *result)
{
    const struct ph__netprobe_options *options = probe->options;
    const uint64_t left_ms = (uint64_t)ph__clock_ms_until(probe->deadline_ns);
    const uint64_t left_bytes = options->bytes > result->sent_bytes ? options->bytes - result->sent_bytes : 0;
    if (left_ms == 0)
        return ph_fail(PH_ERROR_DATA, "the probe has reached its limit, --seconds %g", options->seconds);
    for (size_t i = 0; i < probe->num_tasks; i++) {
        struct ph__netprobe_ask *ask = &probe->tasks[i].ask;
        ask->limit_ms = ph__min(ask->limit_ms, left_ms);
        ask->max_bytes = ph__min(ask->max_bytes, left_bytes / probe->num_tasks);
        if (ask->bytes > ask->max_bytes)
            return ph_fail(PH_ERROR_DATA, "the probe has reached its limit, --bytes %llu",
                (unsigned long long)options->bytes);
    }
    return PH_OK;
}

static ph_status ask(struct ph__netprobe *probe, const struct task *task)
{
    struct ph__netprobe_link *link = &probe->links[task->from];
    link->deadline_ns = ph__clock_deadline((uint32_t)task->ask.limit_ms + GRACE_MS);
    return ph__netprobe_say(link, PH_NETPROBE_ASK, &task->ask);
}

static ph_status hear_answer(
    struct ph__netprobe *probe, const struct task *task, struct ph__netprobe_answer *answer_out)
{
    struct ph__netprobe_answer answer;
    PH_TRY(ph__netprobe_expect(&probe->links[task->from], PH_NETPROBE_ANSWER, &answer));
    answer_out->sent_bytes = answer.sent_bytes;
    if (answer.error[0] != '\0')
        return ph_fail(PH_ERROR_PEER, "%s", answer.error);
    *answer_out = answer;
    return PH_OK;
}

/* Runs the tasks at once: asks all, then hears all. The first failure counts, and names its pair. */
static ph_status run(struct ph__netprobe *probe)
{
    char text[900] = "";
    ph_status first = PH_OK;
    for (size_t i = 0; i < 2 * probe->num_tasks; i++) {
        struct task *task = &probe->tasks[i % probe->num_tasks];
        if (task->has_failed)
            continue;
        const ph_status status = i < probe->num_tasks
                                     ? ask(probe, task)
                                     : hear_answer(probe, task, &probe->answers[i - probe->num_tasks]);
        task->has_failed = status != PH_OK;
        if (status == PH_OK || first != PH_OK)
            continue;
        first = ph__is_stop_status(status) ? status : PH_ERROR_PEER;
        snprintf(text, sizeof text, "host %s could not measure the way to host %s: %s",
            probe->hosts[task->from].name, probe->hosts[task->to].name, ph_error_text());
    }
    if (ph__is_stop_status(first))
        return ph_fail(first, "stopped by a signal");
    return first == PH_OK ? PH_OK : ph_fail(first, "%s", text);
}

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

/* Does the tasks as a step. `keep` takes their answers, also those of a step that failed. */
static ph_status step(struct ph__netprobe *probe, struct ph__netprobe_result *result,
    void (*keep)(const struct ph__netprobe *probe, struct ph__netprobe_result *result))
{
    if (probe->num_tasks == 0)
        return PH_OK;
    PH_TRY(ph__meanwhile(&probe->options->meanwhile));
    PH_TRY(limit(probe, result));
    const uint64_t began_ns = ph__clock_ns();
    const ph_status status = run(probe);
    const double took_ns = (double)(ph__clock_ns() - began_ns);
    for (size_t i = 0; i < probe->num_tasks; i++)
        result->sent_bytes += probe->answers[i].sent_bytes;
    keep(probe, result);
    if (status == PH_ERROR_PEER && ph__clock_ms_until(probe->deadline_ns) == 0)
        return limit(probe, result); /* no failure: the time is over */
    PH_TRY(status);
    return probe->tasks[0].ask.bytes > 0 ? pause_after(probe, took_ns) : PH_OK;
}

/* ---- hosts ---- */

/* Connects to the host's agent at an address. PH_ERROR_USAGE: that is an earlier host's agent. */
static ph_status greet_at(
    struct ph__netprobe *probe, struct ph__netprobe_host *host, uint32_t timeout_ms, uint64_t *id_out)
{
    const size_t index = (size_t)(host - probe->hosts);
    const struct ph__timeout timeout = {.ms = timeout_ms, .stop_signal = probe->options->stop_signal};
    struct ph__netprobe_link *link = &probe->links[index];
    link->deadline_ns = ph__clock_deadline(timeout_ms);
    memcpy(link->peer, host->address, sizeof link->peer);
    if (link->socket >= 0)
        close(link->socket);
    link->socket = -1;
    PH_TRY(ph__socket_connect_while(host->address, timeout, -1, &link->socket));
    PH_TRY(ph__netprobe_greet(link, probe->options->secret, id_out));
    for (size_t i = 0; i < index; i++)
        if (probe->hosts[i].id == *id_out)
            return ph_fail(PH_ERROR_USAGE, "%s and %s are one agent", probe->hosts[i].address, host->address);
    return PH_OK;
}

/* Connects at the first address that leads to the host's agent. */
static ph_status greet(struct ph__netprobe *probe, struct ph__netprobe_host *host)
{
    char text[600], *left = ph__arena_strdup(probe->options->arena, host->addresses), *address;
    const uint32_t timeout_ms = strchr(host->addresses, ' ') == NULL ? CONNECT_MS : ONE_OF_SEVERAL_MS;
    ph_status status = left != NULL ? PH_ERROR_PEER : PH_ERROR_MEMORY;
    while ((status == PH_ERROR_PEER || status == PH_ERROR_USAGE) && (address = strsep(&left, " ")) != NULL) {
        snprintf(host->address, sizeof host->address, "%s", address);
        status = greet_at(probe, host, timeout_ms, &host->id);
    }
    if (status != PH_ERROR_PEER)
        return status;
    snprintf(text, sizeof text, "%s", ph_error_text());
    return ph_fail(status,
        "no agent answers for host %s: %s; start phloem topology agent there, and try again", host->name,
        text);
}

/* Sets the first host's address where it has several, and this process runs there: others reach it at the
 * address from which it reaches them. */
static ph_status find_own_address(const struct ph__netprobe *probe, struct ph__netprobe_host *first)
{
    char own[PH_ADDRESS_BYTES];
    if (strchr(first->addresses, ' ') == NULL)
        return PH_OK;
    PH_TRY(ph__socket_address(probe->links[1].socket, own));
    snprintf(first->address, sizeof first->address, "%.*s%s", (int)(strrchr(own, ':') - own), own,
        strrchr(first->addresses, ':'));
    return PH_OK;
}

static ph_status open_links(struct ph__netprobe *probe, struct ph__netprobe_host *hosts)
{
    for (size_t i = 0; i < probe->num_hosts; i++)
        PH_TRY(greet(probe, &hosts[i]));
    return find_own_address(probe, &hosts[0]);
}

ph_status ph__netprobe_open(const struct ph__netprobe_options *options, struct ph__netprobe_host *hosts,
    size_t num_hosts, struct ph__netprobe **probe_out)
{
    struct ph__arena *arena = options->arena;
    struct ph__netprobe *probe = ph__arena_alloc(arena, sizeof *probe);
    if (probe == NULL)
        return PH_ERROR_MEMORY;
    *probe = (struct ph__netprobe){.options = options,
        .hosts = hosts,
        .num_hosts = num_hosts,
        .deadline_ns = ph__clock_ns() + (uint64_t)(options->seconds * 1e9),
        .links = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->links),
        .tasks = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->tasks),
        .answers = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->answers),
        .is_busy = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->is_busy),
        .is_wanted = ph__arena_alloc_array(arena, num_hosts * num_hosts, sizeof *probe->is_wanted),
        .best_out = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->best_out),
        .best_in = ph__arena_alloc_array(arena, num_hosts, sizeof *probe->best_in),
        .courses = ph__arena_alloc_array(arena, num_hosts * num_hosts, sizeof *probe->courses)};
    if (probe->links == NULL || probe->tasks == NULL || probe->answers == NULL || probe->is_busy == NULL ||
        probe->is_wanted == NULL || probe->best_out == NULL || probe->best_in == NULL ||
        probe->courses == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < num_hosts; i++)
        probe->links[i] =
            (struct ph__netprobe_link){.socket = -1, .watched = -1, .stop_signal = options->stop_signal};
    const ph_status status = open_links(probe, hosts);
    if (status == PH_OK)
        *probe_out = probe;
    else
        ph__netprobe_close(probe);
    return status;
}

void ph__netprobe_close(struct ph__netprobe *probe)
{
    for (size_t i = 0; i < probe->num_hosts; i++)
        if (probe->links[i].socket >= 0)
            close(probe->links[i].socket);
}

/* ---- wanted pairs ---- */

static void keep_pairs(const struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    bool is_steady;
    for (size_t i = 0; i < probe->num_tasks; i++) {
        const size_t from = probe->tasks[i].from, to = probe->tasks[i].to,
                     pair = from * probe->num_hosts + to;
        const struct ph__netprobe_answer *answer = &probe->answers[i];
        const double bandwidth = ph__netprobe_bandwidth(answer->marks, &is_steady);
        if (answer->latency_ns > 0)
            result->latency_ns[pair] = result->latency_ns[to * probe->num_hosts + from] =
                (double)answer->latency_ns;
        if (bandwidth > 0) {
            result->ns_per_byte[pair] = 1 / bandwidth;
            result->ways[pair] = probe->num_tasks == 1 ? PH_NETPROBE_ALONE : PH_NETPROBE_TOGETHER;
        }
    }
}

static struct ph__netprobe_ask transfer_of(
    const struct ph__netprobe_result *result, size_t pair, uint32_t num_retries)
{
    const double least_ns = fmax(LEAST_NS, LEAST_ROUND_TRIPS * 2 * result->latency_ns[pair]);
    return (struct ph__netprobe_ask){
        .bytes = (uint64_t)fmax(FIRST_BYTES, ceil(AIM * least_ns / result->ns_per_byte[pair])), /* not NaN */
        .max_bytes = PH_NETPROBE_MAX_TRANSFER_BYTES,
        .least_ns = (uint64_t)least_ns,
        .num_retries = num_retries,
        .limit_ms = STEP_MS};
}

enum manner { ECHOES, TRANSFERS, TRANSFERS_ALONE };

/* Fills a step with wanted pairs that share no host, or with one of them. Neighbours in the order of hosts
 * come first. */
static void fill_step(
    struct ph__netprobe *probe, const struct ph__netprobe_result *result, enum manner manner)
{
    const size_t n = probe->num_hosts, most = manner == TRANSFERS_ALONE ? 1 : n;
    const struct ph__netprobe_ask echoes = {.num_echoes = probe->options->num_echoes, .limit_ms = STEP_MS};
    probe->num_tasks = 0;
    memset(probe->is_busy, 0, n * sizeof *probe->is_busy);
    for (size_t i = 0; i < n * (n - 1) && probe->num_tasks < most; i++) {
        const size_t from = i % n, to = (from + 1 + i / n) % n, pair = from * n + to;
        if (!probe->is_wanted[pair] || probe->is_busy[from] || probe->is_busy[to])
            continue;
        probe->is_busy[from] = probe->is_busy[to] = true;
        probe->is_wanted[pair] = false;
        add_task(probe, from, to,
            manner == ECHOES ? echoes : transfer_of(result, pair, manner == TRANSFERS ? 0 : NUM_RETRIES));
    }
}

static ph_status measure_wanted(
    struct ph__netprobe *probe, struct ph__netprobe_result *result, enum manner manner)
{
    do {
        fill_step(probe, result, manner);
        PH_TRY(step(probe, result, keep_pairs));
    } while (probe->num_tasks > 0);
    return PH_OK;
}

/* Finds each host's fastest flows, and wants the one from each host alone. */
static void want_fastest(struct ph__netprobe *probe, const struct ph__netprobe_result *result)
{
    const size_t n = probe->num_hosts;
    const double *ns_per_byte = result->ns_per_byte;
    for (size_t i = 0; i < n; i++) {
        size_t best = i * n + (i == 0);
        probe->best_in[i] = HUGE_VAL;
        for (size_t k = 0; k < n; k++) {
            probe->best_in[i] = fmin(probe->best_in[i], ns_per_byte[k * n + i]); /* ignores NaN */
            best = ns_per_byte[i * n + k] < ns_per_byte[best] ? i * n + k : best;
        }
        probe->best_out[i] = ns_per_byte[best];
        probe->is_wanted[best] = result->ways[best] == PH_NETPROBE_TOGETHER;
    }
}

ph_status ph__netprobe_rounds(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    const size_t n = probe->num_hosts;
    for (size_t i = 0; i < n * n; i++)
        probe->is_wanted[i] = i / n < i % n && isnan(result->latency_ns[i]);
    PH_TRY(measure_wanted(probe, result, ECHOES));
    for (size_t i = 0; i < n * n; i++)
        probe->is_wanted[i] = i / n != i % n && isnan(result->ns_per_byte[i]);
    PH_TRY(measure_wanted(probe, result, TRANSFERS));
    want_fastest(probe, result);
    return measure_wanted(probe, result, TRANSFERS_ALONE);
}

/* ---- pairs that are held up ---- */

/* Returns the nanoseconds a byte that both ends of a pair can do. */
static double ends_ns(const struct ph__netprobe *probe, size_t pair)
{
    return fmax(probe->best_out[pair / probe->num_hosts], probe->best_in[pair % probe->num_hosts]);
}

static bool is_held_up(
    const struct ph__netprobe *probe, const struct ph__netprobe_result *result, size_t pair)
{
    return result->ways[pair] == PH_NETPROBE_TOGETHER &&
           HELD_UP * result->ns_per_byte[pair] > ends_ns(probe, pair);
}

static struct course *course_of(
    const struct ph__netprobe *probe, const struct ph__netprobe_result *result, size_t pair)
{
    const size_t n = probe->num_hosts;
    return &probe->courses[result->groups[pair / n] * result->num_groups + result->groups[pair % n]];
}

/* Wants some pairs of each course, evenly spread, or all of few. */
static void want_samples(struct ph__netprobe *probe, const struct ph__netprobe_result *result)
{
    const size_t num_pairs = probe->num_hosts * probe->num_hosts;
    memset(probe->courses, 0, result->num_groups * result->num_groups * sizeof *probe->courses);
    for (size_t i = 0; i < num_pairs; i++)
        course_of(probe, result, i)->num_held_up += is_held_up(probe, result, i);
    for (size_t i = 0; i < num_pairs; i++) {
        struct course *course = course_of(probe, result, i);
        if (!is_held_up(probe, result, i))
            continue;
        probe->is_wanted[i] |= course->num_held_up <= NUM_SAMPLES ||
                               NUM_SAMPLES * course->num_passed % course->num_held_up < NUM_SAMPLES;
        course->num_passed++;
    }
}

/* Gives pairs that are still held up the value of those of their course that were measured alone, where
 * these are alike; wants them all where these are not. */
static void take_samples(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    const size_t num_pairs = probe->num_hosts * probe->num_hosts;
    for (size_t i = 0; i < num_pairs; i++) {
        struct course *course = course_of(probe, result, i);
        const double ns = result->ns_per_byte[i];
        if (result->ways[i] != PH_NETPROBE_ALONE)
            continue;
        course->least = course->least > 0 ? fmin(course->least, ns) : ns;
        course->most = fmax(course->most, ns);
    }
    for (size_t i = 0; i < num_pairs; i++) {
        const struct course *course = course_of(probe, result, i);
        if (!is_held_up(probe, result, i))
            continue;
        probe->is_wanted[i] = course->least < ALIKE * course->most;
        if (probe->is_wanted[i])
            continue;
        result->ns_per_byte[i] = (course->least + course->most) / 2;
        result->ways[i] = PH_NETPROBE_ALIKE;
    }
}

/* Gives flows that nothing holds up the value of their ends. An order of hosts must not be chosen by the
 * noise of single transfers. */
static void take_from_ends(const struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    const size_t n = probe->num_hosts;
    for (size_t i = 0; i < n * n; i++)
        if (i / n != i % n && HELD_UP * result->ns_per_byte[i] <= ends_ns(probe, i))
            result->ns_per_byte[i] = ends_ns(probe, i);
}

ph_status ph__netprobe_held_up(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    bool is_any = true;
    while (is_any) { /* again, since what hosts can do may turn out to be more */
        want_fastest(probe, result);
        want_samples(probe, result);
        is_any = memchr(probe->is_wanted, true, probe->num_hosts * probe->num_hosts) != NULL;
        PH_TRY(measure_wanted(probe, result, TRANSFERS_ALONE));
        take_samples(probe, result);
        PH_TRY(measure_wanted(probe, result, TRANSFERS_ALONE));
    }
    take_from_ends(probe, result);
    return PH_OK;
}

/* ---- trunks ---- */

static void keep_trunk(const struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    const size_t from = result->groups[probe->tasks[0].from], to = result->groups[probe->tasks[0].to];
    for (size_t i = 0; i < probe->num_tasks; i++)
        if (probe->tasks[i].has_failed)
            return;
    result->trunks[from * result->num_groups + to] =
        1 / ph__netprobe_joint_bandwidth(probe->answers, probe->num_tasks);
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
    const size_t n = result->num_hosts;
    size_t from = next_member(result, a, 0), to = next_member(result, b, 0);
    for (probe->num_tasks = 0; from < n && to < n;
         from = next_member(result, a, from + 1), to = next_member(result, b, to + 1))
        add_task(probe, from, to, (struct ph__netprobe_ask){.limit_ms = STEP_MS});
    for (size_t i = 0; i < probe->num_tasks; i++) {
        const struct task *task = &probe->tasks[i];
        const size_t pair = task->from * n + task->to;
        const double least_ns = fmax(LEAST_NS, TRUNK_NS / (double)ph__max(LEAST_FLOWS, probe->num_tasks));
        const double alone_ns = fmax(least_ns, TRUNK_ROUND_TRIPS * 2 * result->latency_ns[pair]);
        struct ph__netprobe_ask *ask = &probe->tasks[i].ask;
        ask->bytes = ask->max_bytes = (uint64_t)fmax(FIRST_BYTES, alone_ns / result->ns_per_byte[pair]);
        ask->limit_ms += (uint64_t)(2e-6 * alone_ns * (double)probe->num_tasks);
    }
    return step(probe, result, keep_trunk);
}

ph_status ph__netprobe_trunks(struct ph__netprobe *probe, struct ph__netprobe_result *result)
{
    for (size_t a = 0; a < result->num_groups; a++)
        for (size_t b = 0; b < result->num_groups; b++)
            if (a != b && isnan(result->trunks[a * result->num_groups + b]))
                PH_TRY(measure_trunk(probe, result, a, b));
    return PH_OK;
}
