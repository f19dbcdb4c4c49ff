#include "load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/memory.h"
#include "base/rng.h"
#include "base/thread/clock.h"
#include "figures.h"
#include "load_wire.h"

struct load {
    const struct load_options *options;
    struct load_result *result;
    struct load_wire wire;
    struct load_client *clients, *free_clients;
    double *due; /* a ring of requests that are due and wait for a client */
    size_t due_first, due_count, due_capacity;
    size_t num_in_flight, next_body, times_capacity, errors_capacity;
};

static double now_s(void)
{
    return (double)ph__clock_ns() * 1e-9;
}

/* ---- answers ---- */

static bool has_numbers(const char *text, const float *wanted, size_t count, float tolerance)
{
    for (size_t i = 0; i < count; i++) {
        char *end;
        const float number = strtof(text, &end);
        if (end == text || !(fabsf(number - wanted[i]) <= tolerance))
            return false;
        text = end + 1; /* behind the comma */
    }
    return true;
}

/* Compares the scores of an answer, which a NUL follows, with those of either model. */
static bool is_right(const struct load_body *body, const char *answer, size_t size)
{
    const size_t wanted_bytes = body->num_scores * sizeof(float);
    const char *list = body->is_text ? strrchr(answer, '[') : NULL;
    bool is_equal = body->num_scores == 0;
    for (size_t i = 0; i < 2 && body->scores[i] != NULL && !is_equal; i++)
        is_equal =
            body->is_text
                ? list != NULL && has_numbers(list + 1, body->scores[i], body->num_scores, body->tolerance)
                : size >= wanted_bytes &&
                      memcmp(answer + size - wanted_bytes, body->scores[i], wanted_bytes) == 0;
    return is_equal;
}

static void add_time(struct load *load, double seconds)
{
    struct load_result *result = load->result;
    bench_check(ph__array_reserve(
        (void **)&result->times, &load->times_capacity, result->num_answered + 1, sizeof *result->times));
    result->times[result->num_answered++] = seconds;
}

static void add_error(struct load *load, const struct load_client *client, int code, const char *text)
{
    struct load_result *result = load->result;
    bench_check(ph__array_reserve(
        (void **)&result->errors, &load->errors_capacity, result->num_errors + 1, sizeof *result->errors));
    result->errors[result->num_errors++] = (struct load_error){client->sent_ns, ph__clock_ns(), code};
    if (code == 503 || code == 14 || code == 4) {
        result->num_refused++;
        return;
    }
    if (result->num_wrong + result->num_failed == 0)
        snprintf(result->error, sizeof result->error, "%d: %.150s", code, text);
    if (code == LOAD_WRONG)
        result->num_wrong++;
    else
        result->num_failed++;
}

static void answered(void *context, struct load_client *client, int code, const char *bytes, size_t size)
{
    struct load *load = context;
    if (code == 0 && !is_right(client->body, bytes, size))
        add_error(load, client, LOAD_WRONG, "wrong scores");
    else if (code != 0)
        add_error(load, client, code, bytes);
    else
        add_time(load, now_s() - client->due_s);
    load->num_in_flight--;
    client->next = load->free_clients;
    load->free_clients = client;
}

/* ---- requests ---- */

static void send_one(struct load *load, double due_s)
{
    struct load_client *client = load->free_clients;
    load->free_clients = client->next;
    client->due_s = due_s;
    client->sent_ns = ph__clock_ns();
    client->body = &load->options->bodies[load->next_body++ % load->options->num_bodies];
    load->num_in_flight++;
    load->result->num_sent++;
    load_wire_send(&load->wire, client);
}

static void push_due(struct load *load, double due_s)
{
    if (load->due_count == load->due_capacity) {
        const size_t capacity = load->due_capacity > 0 ? 2 * load->due_capacity : 1024;
        double *due = calloc(capacity, sizeof *due);
        if (due == NULL)
            bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu requests", capacity));
        for (size_t i = 0; i < load->due_count; i++)
            due[i] = load->due[(load->due_first + i) % load->due_capacity];
        free(load->due);
        load->due = due;
        load->due_first = 0;
        load->due_capacity = capacity;
    }
    load->due[(load->due_first + load->due_count++) % load->due_capacity] = due_s;
}

static double pop_due(struct load *load)
{
    const double due_s = load->due[load->due_first];
    load->due_first = (load->due_first + 1) % load->due_capacity;
    load->due_count--;
    return due_s;
}

/* ---- the loop ---- */

static void init(struct load *load, const struct load_options *options, struct load_result *result)
{
    *load = (struct load){.options = options, .result = result};
    load->wire = (struct load_wire){.options = options, .answered = answered, .context = load};
    load->clients = calloc(options->num_clients, sizeof *load->clients);
    if (load->clients == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu clients", options->num_clients));
    for (size_t i = 0; i < options->num_clients; i++) {
        load->clients[i].next = load->free_clients;
        load->free_clients = &load->clients[i];
    }
    load_wire_open(&load->wire, load->clients);
}

static void fini(struct load *load)
{
    load_wire_close(&load->wire);
    for (size_t i = 0; i < load->options->num_clients; i++)
        ph__buffer_fini(&load->clients[i].answer);
    free(load->clients);
    free(load->due);
}

/* Sends a request by each client, uncounted: the server has accepted all connections then. */
static void warm_up(struct load *load)
{
    for (size_t i = 0; i < load->options->num_clients; i++)
        send_one(load, now_s());
    while (load->num_in_flight > 0)
        load_wire_poll(&load->wire);
    load_result_fini(load->result);
    load->times_capacity = load->errors_capacity = 0;
}

static bool is_over(const struct load_options *options, double end_s)
{
    return now_s() >= end_s ||
           (options->is_over != NULL && atomic_load_explicit(options->is_over, memory_order_acquire));
}

#define LEAST_PAUSE_S 3e-3

/* Notes a turn of the loop that took longer than its work can. */
static void note_pause(struct load_result *result, double seconds)
{
    if (seconds < LEAST_PAUSE_S)
        return;
    result->paused_s += seconds;
    result->longest_pause_s = fmax(result->longest_pause_s, seconds);
}

static void run(struct load *load)
{
    const struct load_options *options = load->options;
    struct ph__rng_sequence random = {.key.seed = options->seed};
    const double end_s = now_s() + options->seconds;
    double next_s = now_s(), former_s = next_s;
    bool must_end = false;
    while (!must_end || load->num_in_flight > 0 || load->due_count > 0) {
        const double at_s = now_s();
        note_pause(load->result, at_s - former_s);
        former_s = at_s;
        must_end = must_end || is_over(options, end_s);
        for (; options->rate > 0 && next_s <= at_s && !must_end;
             next_s -= log(1 - ph__rng_next_uniform(&random)) / options->rate)
            push_due(load, next_s);
        while (load->free_clients != NULL && load->due_count > 0)
            send_one(load, pop_due(load));
        for (size_t i = options->rate > 0 || must_end ? 0 : options->num_clients - load->num_in_flight; i > 0;
             i--)
            send_one(load, now_s());
        load_wire_poll(&load->wire);
    }
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort_times(struct load_result *result)
{
    if (result->num_answered > 0)
        qsort(result->times, result->num_answered, sizeof *result->times, ascending);
}

void load_run(const struct load_options *options, struct load_result *result_out)
{
    struct load load;
    *result_out = (struct load_result){0};
    init(&load, options, result_out);
    warm_up(&load);
    if (options->has_begun != NULL)
        atomic_store_explicit(options->has_begun, true, memory_order_release);
    const double begin_s = now_s();
    run(&load);
    result_out->seconds = now_s() - begin_s;
    fini(&load);
    sort_times(result_out);
}

/* ---- results ---- */

void load_result_fini(struct load_result *result)
{
    free(result->times);
    free(result->errors);
    *result = (struct load_result){0};
}

static void *append(void *to, size_t count, const void *from, size_t from_count, size_t size)
{
    void *all = realloc(to, (count + from_count + 1) * size);
    if (all == NULL)
        bench_check(ph_fail(PH_ERROR_MEMORY, "out of memory: %zu times", count + from_count));
    if (from_count > 0)
        memcpy((char *)all + count * size, from, from_count * size);
    return all;
}

void load_result_add(struct load_result *sum, struct load_result *result)
{
    sum->times =
        append(sum->times, sum->num_answered, result->times, result->num_answered, sizeof *sum->times);
    sum->errors =
        append(sum->errors, sum->num_errors, result->errors, result->num_errors, sizeof *sum->errors);
    if (sum->error[0] == '\0')
        memcpy(sum->error, result->error, sizeof sum->error);
    sum->num_sent += result->num_sent;
    sum->num_answered += result->num_answered;
    sum->num_refused += result->num_refused;
    sum->num_wrong += result->num_wrong;
    sum->num_failed += result->num_failed;
    sum->num_errors += result->num_errors;
    sum->seconds += result->seconds;
    sum->paused_s += result->paused_s;
    sum->longest_pause_s = fmax(sum->longest_pause_s, result->longest_pause_s);
    load_result_fini(result);
    sort_times(sum);
}

double load_quantile(const struct load_result *result, double share)
{
    if (result->num_answered == 0)
        return (double)NAN;
    return result->times[(size_t)ceil(share * (double)result->num_answered) - 1];
}
