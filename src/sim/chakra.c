#include "sim/chakra.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "base/format/protobuf.h"
#include "base/memory/memory.h"
#include "comm/collective/comm.h"

#define SCHEMA_VERSION "0.0.4" /* as the generators of Chakra's repository write it */

enum { FLUSH_BYTES = 256 << 10, MOST_JOINED = 16 };

/* ---- fields of et_def.proto ---- */

enum { METADATA_VERSION = 1, METADATA_ATTRIBUTE = 2 };
enum { ATTRIBUTE_NAME = 1, INT32_VALUE = 7, INT64_VALUE = 9, UINT64_VALUE = 13, BOOL_VALUE = 27 };
enum { STRING_VALUE = 29 };
enum node_type { COMP_NODE = 4, COMM_SEND_NODE = 5, COMM_RECV_NODE = 6 };
enum node_field {
    NODE_ID = 1,
    NODE_NAME = 2,
    NODE_TYPE = 3,
    NODE_DATA_DEPS = 5,
    NODE_START_MICROS = 6,
    NODE_DURATION_MICROS = 7,
    NODE_ATTRIBUTE = 10
};

/* ---- what is traced ---- */

/* Nodes that something waits for. When there are too many, a "wait" joins them into one. */
struct joint {
    size_t count;
    uint64_t ids[MOST_JOINED];
};

/* Operations of one channel: what their next message, or the wait for them, depends on. */
struct channel {
    uint32_t number;
    struct joint joint;
};

struct ph__chakra_rank {
    struct ph__chakra *chakra;
    size_t index;
    bool is_counting, has_file;
    uint64_t num_steps, num_nodes;
    uint64_t latest; /* operator or "wait"; 0: none */
    struct joint waited;
    struct channel *channels;
    size_t num_channels, channels_capacity;
    size_t moved;           /* channel whose message was done last, since the latest operator; or NONE */
    struct ph__buffer text; /* nodes that are not in the file */
};

/* A message that is posted, and what it depends on. */
struct posted {
    bool is_there;
    struct ph__letter letter;
    uint64_t dependencies[2]; /* 0: none */
};

struct posted_list {
    struct posted *items; /* by the message's number */
    size_t count, capacity;
};

struct ph__chakra {
    struct ph__chakra_options options;
    struct ph__chakra_rank *ranks;
    struct posted_list receives, sends;
    struct ph__buffer node, part;
    ph_status status; /* of the first failure, with its text */
    char error[1024];
};

#define NONE SIZE_MAX

static void note(struct ph__chakra *chakra, ph_status status)
{
    if (chakra->status != PH_OK || status == PH_OK)
        return;
    chakra->status = status;
    snprintf(chakra->error, sizeof chakra->error, "%s", ph_error_text());
}

/* ---- files ---- */

static ph_status write_file(struct ph__chakra_rank *rank)
{
    const char *folder = rank->chakra->options.folder;
    char path[1152];
    snprintf(path, sizeof path, "%s/rank.%zu.et", folder, rank->index);
    if (!rank->has_file)
        PH_TRY(ph__directory_create(folder));
    FILE *file = fopen(path, rank->has_file ? "ab" : "wb");
    if (file == NULL)
        return ph__file_cannot_write(path);
    const size_t written = fwrite(rank->text.bytes, 1, rank->text.size, file);
    if (fclose(file) != 0 || written != rank->text.size)
        return ph__file_cannot_write(path);
    rank->has_file = true;
    return PH_OK;
}

static void flush(struct ph__chakra_rank *rank)
{
    if (rank->text.has_failed)
        note(rank->chakra, ph__out_of_memory("the trace of rank %zu", rank->index));
    else if (rank->chakra->status == PH_OK && rank->text.size > 0)
        note(rank->chakra, write_file(rank));
    ph__buffer_recycle(&rank->text);
}

/* Appends the message behind its length, and empties it. */
static void append_message(struct ph__chakra_rank *rank)
{
    struct ph__buffer *node = &rank->chakra->node;
    ph__protobuf_varint(&rank->text, node->size);
    ph__protobuf_encoded(&rank->text, node);
    ph__buffer_clear(node);
    if (rank->text.size >= FLUSH_BYTES || rank->text.has_failed)
        flush(rank);
}

/* ---- nodes ---- */

static void add_attribute(struct ph__chakra *chakra, const char *name, uint32_t field, uint64_t value)
{
    ph__protobuf_text(&chakra->part, ATTRIBUTE_NAME, name);
    ph__protobuf_integer(&chakra->part, field, value);
    ph__protobuf_message(&chakra->node, NODE_ATTRIBUTE, &chakra->part);
}

static void add_dependency(struct ph__chakra *chakra, uint64_t id)
{
    if (id != 0)
        ph__protobuf_varint(&chakra->part, id);
}

/* Appends a field that is left out where it is 0, as protobuf's writers do. */
static void add_number(struct ph__buffer *node, enum node_field field, uint64_t value)
{
    if (value != 0)
        ph__protobuf_integer(node, field, value);
}

static uint64_t whole_micros(double ns)
{
    return (uint64_t)(ns / 1e3);
}

/* Begins a node, which depends on what has been added; returns its id. */
static uint64_t begin_node(
    struct ph__chakra_rank *rank, enum node_type type, const char *name, double begin_ns, double end_ns)
{
    struct ph__chakra *chakra = rank->chakra;
    struct ph__buffer *node = &chakra->node;
    const uint64_t start = whole_micros(begin_ns);
    ph__protobuf_integer(node, NODE_ID, ++rank->num_nodes);
    ph__protobuf_text(node, NODE_NAME, name);
    ph__protobuf_integer(node, NODE_TYPE, type);
    if (chakra->part.size > 0)
        ph__protobuf_message(node, NODE_DATA_DEPS, &chakra->part);
    add_number(node, NODE_START_MICROS, start);
    add_number(node, NODE_DURATION_MICROS, whole_micros(end_ns) - start);
    return rank->num_nodes;
}

static uint64_t at_least_one(double amount)
{
    return amount > 1 ? (uint64_t)amount : 1;
}

static uint64_t add_work(
    struct ph__chakra_rank *rank, const struct ph__chakra_work *work, double begin_ns, double end_ns)
{
    struct ph__chakra *chakra = rank->chakra;
    const uint64_t id = begin_node(rank, COMP_NODE, work->name, begin_ns, end_ns);
    add_attribute(chakra, "is_cpu_op", BOOL_VALUE, false);
    add_attribute(chakra, "num_ops", INT64_VALUE, at_least_one(work->flops));
    add_attribute(chakra, "tensor_size", UINT64_VALUE, at_least_one(work->bytes));
    append_message(rank);
    return id;
}

static const char *name_message(bool is_send, size_t bytes)
{
    static const char *const names[2][2] = {{"receive", "send"}, {"empty receive", "empty send"}};
    return names[bytes == 0][is_send];
}

static uint64_t add_message(
    struct ph__chakra_rank *rank, bool is_send, const struct posted *posted, double now_ns)
{
    struct ph__chakra *chakra = rank->chakra;
    const struct ph__letter *letter = &posted->letter;
    add_dependency(chakra, posted->dependencies[0]);
    add_dependency(chakra, posted->dependencies[1]);
    const uint64_t id = begin_node(rank, is_send ? COMM_SEND_NODE : COMM_RECV_NODE,
        name_message(is_send, letter->bytes), letter->at_ns, now_ns);
    add_attribute(chakra, "is_cpu_op", BOOL_VALUE, false);
    add_attribute(chakra, "comm_src", INT32_VALUE, letter->from);
    add_attribute(chakra, "comm_dst", INT32_VALUE, letter->to);
    add_attribute(chakra, "comm_tag", INT32_VALUE, (uint64_t)letter->tag);
    add_attribute(chakra, "comm_size", INT64_VALUE, at_least_one((double)letter->bytes));
    append_message(rank);
    return id;
}

/* ---- nodes that come together ---- */

static void add_dependencies(struct ph__chakra *chakra, const struct joint *joint)
{
    for (size_t i = 0; i < joint->count; i++)
        add_dependency(chakra, joint->ids[i]);
}

static uint64_t join(struct ph__chakra_rank *rank, struct joint *joint, double now_ns)
{
    static const struct ph__chakra_work wait = {.name = "wait"};
    add_dependencies(rank->chakra, joint);
    *joint = (struct joint){1, {add_work(rank, &wait, now_ns, now_ns)}};
    return joint->ids[0];
}

static void put(struct ph__chakra_rank *rank, struct joint *joint, uint64_t id, double now_ns)
{
    if (joint->count == MOST_JOINED)
        (void)join(rank, joint, now_ns);
    joint->ids[joint->count++] = id;
}

/* ---- channels ---- */

static size_t find_channel(struct ph__chakra_rank *rank, int tag)
{
    const uint32_t number = ph__comm_channel_of(tag);
    for (size_t i = 0; i < rank->num_channels; i++)
        if (rank->channels[i].number == number)
            return i;
    const ph_status status = ph__array_reserve(
        (void **)&rank->channels, &rank->channels_capacity, rank->num_channels + 1, sizeof *rank->channels);
    note(rank->chakra, status);
    if (status != PH_OK)
        return NONE;
    rank->channels[rank->num_channels] = (struct channel){.number = number};
    return rank->num_channels++;
}

/* Gives what the next message of a channel depends on. */
static void find_dependencies(
    struct ph__chakra_rank *rank, struct joint *joint, double now_ns, uint64_t ids_out[2])
{
    if (rank->waited.count > 0) {
        add_dependency(rank->chakra, rank->latest);
        rank->latest = join(rank, &rank->waited, now_ns);
        rank->waited.count = 0;
    }
    if (joint->count > 1)
        (void)join(rank, joint, now_ns);
    ids_out[0] = rank->latest;
    ids_out[1] = joint->count > 0 ? joint->ids[0] : 0;
}

static struct posted_list *list_of(struct ph__chakra *chakra, bool is_send)
{
    return is_send ? &chakra->sends : &chakra->receives;
}

static void keep(struct ph__chakra *chakra, bool is_send, const struct posted *posted, uint32_t message)
{
    struct posted_list *list = list_of(chakra, is_send);
    const ph_status status =
        ph__array_reserve((void **)&list->items, &list->capacity, (size_t)message + 1, sizeof *list->items);
    note(chakra, status);
    if (status != PH_OK)
        return;
    while (list->count <= message)
        list->items[list->count++].is_there = false;
    list->items[message] = *posted;
}

/* ---- what a rank does ---- */

struct ph__chakra_rank *ph__chakra_rank(struct ph__chakra *chakra, size_t rank)
{
    return chakra != NULL ? &chakra->ranks[rank] : NULL;
}

static void begin_file(struct ph__chakra_rank *rank)
{
    struct ph__chakra *chakra = rank->chakra;
    ph__protobuf_text(&chakra->node, METADATA_VERSION, SCHEMA_VERSION);
    ph__protobuf_text(&chakra->part, ATTRIBUTE_NAME, "source");
    ph__protobuf_text(&chakra->part, STRING_VALUE, "phloem sim");
    ph__protobuf_message(&chakra->node, METADATA_ATTRIBUTE, &chakra->part);
    append_message(rank);
}

void ph__chakra_count(struct ph__chakra_rank *rank, bool is_counting)
{
    if (rank == NULL)
        return;
    rank->is_counting = is_counting && rank->num_steps < rank->chakra->options.num_steps;
    rank->num_steps += rank->is_counting;
    if (rank->is_counting && rank->num_steps == 1)
        begin_file(rank);
}

void ph__chakra_compute(
    struct ph__chakra_rank *rank, const struct ph__chakra_work *work, double begin_ns, double end_ns)
{
    if (rank == NULL || !rank->is_counting)
        return;
    add_dependency(rank->chakra, rank->latest);
    if (work->is_sum && rank->moved != NONE) {
        struct joint *joint = &rank->channels[rank->moved].joint;
        add_dependencies(rank->chakra, joint);
        *joint = (struct joint){1, {add_work(rank, work, begin_ns, end_ns)}};
        return;
    }
    add_dependencies(rank->chakra, &rank->waited);
    rank->latest = add_work(rank, work, begin_ns, end_ns);
    rank->waited.count = 0;
    rank->moved = NONE;
}

void ph__chakra_message(
    struct ph__chakra_rank *rank, bool is_send, const struct ph__letter *letter, uint32_t message)
{
    if (rank == NULL || !rank->is_counting)
        return;
    struct posted posted = {true, *letter, {0, 0}};
    const size_t channel = find_channel(rank, letter->tag);
    if (channel == NONE)
        return;
    find_dependencies(rank, &rank->channels[channel].joint, letter->at_ns, posted.dependencies);
    if (message == PH_MAIL_DONE)
        (void)add_message(rank, is_send, &posted, letter->at_ns);
    else
        keep(rank->chakra, is_send, &posted, message);
}

void ph__chakra_done(struct ph__chakra_rank *rank, bool is_send, uint32_t message, double now_ns)
{
    if (rank == NULL)
        return;
    const struct posted_list *list = list_of(rank->chakra, is_send);
    if (message >= list->count || !list->items[message].is_there)
        return;
    struct posted *posted = &list->items[message];
    const uint64_t id = add_message(rank, is_send, posted, now_ns);
    posted->is_there = false;
    rank->moved = find_channel(rank, posted->letter.tag);
    if (rank->moved != NONE)
        put(rank, &rank->channels[rank->moved].joint, id, now_ns);
}

void ph__chakra_waited(struct ph__chakra_rank *rank, uint32_t channel, double now_ns)
{
    for (size_t i = 0; rank != NULL && i < rank->num_channels; i++) {
        struct joint *joint = &rank->channels[i].joint;
        if (rank->channels[i].number != channel)
            continue;
        for (size_t k = 0; k < joint->count; k++)
            put(rank, &rank->waited, joint->ids[k], now_ns);
        joint->count = 0;
        rank->moved = NONE;
    }
}

/* ---- creating and finishing ---- */

ph_status ph__chakra_create(const struct ph__chakra_options *options, struct ph__chakra **chakra_out)
{
    struct ph__chakra *chakra = calloc(1, sizeof *chakra);
    struct ph__chakra_rank *ranks = calloc(options->world_size, sizeof *ranks);
    if (chakra == NULL || ranks == NULL) {
        free(chakra);
        free(ranks);
        return ph__out_of_memory("traces of %zu ranks", options->world_size);
    }
    *chakra = (struct ph__chakra){.options = *options, .ranks = ranks};
    for (size_t i = 0; i < options->world_size; i++)
        ranks[i] = (struct ph__chakra_rank){.chakra = chakra, .index = i, .moved = NONE};
    *chakra_out = chakra;
    return PH_OK;
}

ph_status ph__chakra_finish(struct ph__chakra *chakra)
{
    for (size_t i = 0; i < chakra->options.world_size; i++)
        flush(&chakra->ranks[i]);
    return chakra->status == PH_OK ? PH_OK : ph_fail(chakra->status, "%s", chakra->error);
}

void ph__chakra_destroy(struct ph__chakra *chakra)
{
    if (chakra == NULL)
        return;
    for (size_t i = 0; i < chakra->options.world_size; i++) {
        ph__buffer_fini(&chakra->ranks[i].text);
        free(chakra->ranks[i].channels);
    }
    free(chakra->ranks);
    free(chakra->receives.items);
    free(chakra->sends.items);
    ph__buffer_fini(&chakra->node);
    ph__buffer_fini(&chakra->part);
    free(chakra);
}
