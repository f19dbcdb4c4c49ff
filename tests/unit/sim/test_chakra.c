#include "sim/chakra.h"

#include <stdio.h>
#include <string.h>

#include "base/file/file.h"
#include "comm/collective/comm.h"
#include "support/test_support.h"

/* ---- a decoder of its own ---- */

enum { MOST_NODES = 200, MOST_DEPENDENCIES = 20, COMP = 4, SEND = 5, RECEIVE = 6 };

struct node {
    uint64_t id, type, start, duration;
    char name[32];
    size_t num_dependencies;
    uint64_t dependencies[MOST_DEPENDENCIES];
    uint64_t num_ops, tensor_size, from, to, tag, bytes;
};

struct trace {
    char version[16];
    size_t count;
    struct node nodes[MOST_NODES];
};

struct span {
    const unsigned char *at, *end;
};

struct field {
    uint64_t number, value; /* value: of a varint */
    struct span bytes;      /* else */
};

static uint64_t read_varint(struct span *span)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(span->at < span->end);
        value |= (uint64_t)(*span->at & 127) << shift;
        if (*span->at++ < 128)
            return value;
    }
}

static struct span read_bytes(struct span *span)
{
    const uint64_t size = read_varint(span);
    const struct span bytes = {span->at, span->at + size};
    assert_true(size <= (uint64_t)(span->end - span->at));
    span->at += size;
    return bytes;
}

static bool read_field(struct span *span, struct field *field)
{
    if (span->at == span->end)
        return false;
    const uint64_t tag = read_varint(span);
    *field = (struct field){.number = tag >> 3};
    assert_true((tag & 7) == 0 || (tag & 7) == 2);
    if ((tag & 7) == 0)
        field->value = read_varint(span);
    else
        field->bytes = read_bytes(span);
    return true;
}

static void copy_text(struct span bytes, char *text, size_t size)
{
    assert_true((size_t)(bytes.end - bytes.at) < size);
    memcpy(text, bytes.at, (size_t)(bytes.end - bytes.at));
    text[bytes.end - bytes.at] = '\0';
}

/* Reads an attribute, whose value must have the type that ASTRA-sim's readers ask for. */
static void read_attribute(struct span span, struct node *node)
{
    struct field name, value;
    char text[32];
    assert_true(read_field(&span, &name) && read_field(&span, &value) && span.at == span.end);
    assert_int_equal(name.number, 1);
    copy_text(name.bytes, text, sizeof text);
    const struct {
        const char *name;
        uint64_t field, *value;
    } known[] = {{"num_ops", 9, &node->num_ops}, {"tensor_size", 13, &node->tensor_size},
        {"comm_src", 7, &node->from}, {"comm_dst", 7, &node->to}, {"comm_tag", 7, &node->tag},
        {"comm_size", 9, &node->bytes}, {"is_cpu_op", 27, &(uint64_t){0}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0) {
            assert_int_equal(value.number, known[i].field);
            *known[i].value = value.value;
            return;
        }
    fail_msg("unknown attribute '%s'", text);
}

static void read_node(struct span span, struct node *node)
{
    struct field field;
    while (read_field(&span, &field)) {
        if (field.number == 1)
            node->id = field.value;
        else if (field.number == 2)
            copy_text(field.bytes, node->name, sizeof node->name);
        else if (field.number == 3)
            node->type = field.value;
        else if (field.number == 5)
            while (field.bytes.at < field.bytes.end)
                node->dependencies[node->num_dependencies++] = read_varint(&field.bytes);
        else if (field.number == 6)
            node->start = field.value;
        else if (field.number == 7)
            node->duration = field.value;
        else if (field.number == 10)
            read_attribute(field.bytes, node);
        else
            fail_msg("unknown field %u", (unsigned)field.number);
    }
}

/* Reads a rank's trace, whose nodes must be numbered from 1 on and depend on earlier ones. */
static void read_trace(const char *folder, size_t rank, struct trace *trace)
{
    char path[1100];
    struct ph__mapped_file file;
    struct field version;
    snprintf(path, sizeof path, "%s/rank.%zu.et", folder, rank);
    assert_ok(ph__mapped_file_open(path, PH_ERROR_DATA, &file));
    struct span span = {file.bytes, file.bytes + file.size};
    struct span metadata = read_bytes(&span);
    memset(trace, 0, sizeof *trace);
    assert_true(read_field(&metadata, &version));
    copy_text(version.bytes, trace->version, sizeof trace->version);
    while (span.at < span.end) {
        struct node *node = &trace->nodes[trace->count++];
        assert_true(trace->count < MOST_NODES);
        read_node(read_bytes(&span), node);
        assert_int_equal(node->id, trace->count);
        for (size_t i = 0; i < node->num_dependencies; i++)
            assert_in_range(node->dependencies[i], 1, node->id - 1);
    }
    ph__mapped_file_close(&file);
}

/* ---- traces to look at ---- */

static struct ph__chakra *begin(const char *folder, uint64_t num_steps)
{
    const struct ph__chakra_options options = {folder, 2, num_steps};
    struct ph__chakra *chakra;
    assert_ok(ph__chakra_create(&options, &chakra));
    return chakra;
}

static void end(struct ph__chakra *chakra, const char *folder, struct trace *trace)
{
    assert_ok(ph__chakra_finish(chakra));
    ph__chakra_destroy(chakra);
    read_trace(folder, 0, trace);
}

static void compute(struct ph__chakra_rank *rank, const char *name, double begin_us, double end_us)
{
    const struct ph__chakra_work work = {name, 2000, 300, false};
    ph__chakra_compute(rank, &work, begin_us * 1e3, end_us * 1e3);
}

static void sum(struct ph__chakra_rank *rank, double begin_us, double end_us)
{
    const struct ph__chakra_work work = {"sum", 0, 0, true};
    ph__chakra_compute(rank, &work, begin_us * 1e3, end_us * 1e3);
}

static void post(struct ph__chakra_rank *rank, bool is_send, int tag, double at_us, uint32_t message)
{
    const struct ph__letter letter = {!is_send, is_send, tag, 1000, at_us * 1e3, false, false};
    ph__chakra_message(rank, is_send, &letter, message);
}

static void assert_depends(const struct node *node, size_t count, const uint64_t *ids)
{
    assert_int_equal(node->num_dependencies, count);
    assert_memory_equal(node->dependencies, ids, count * sizeof *ids);
}
#define assert_on(node, ...) \
    assert_depends(          \
        (node), sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (const uint64_t[]){__VA_ARGS__})

/* Tags of two stages of an operation, and of another one. */
enum { FIRST = 8, SECOND = 9, OTHER = 12 };

/* ---- tests ---- */

static void work_depends_on_the_messages_that_were_waited_for(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 1);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    ph__chakra_count(rank, true);
    compute(rank, "a", 0, 1.5); /* 1 */
    post(rank, false, FIRST, 1.5, 7);
    post(rank, true, FIRST, 2, PH_MAIL_DONE); /* 2 */
    post(rank, true, FIRST, 3, 8);
    compute(rank, "b", 3, 5.5);           /* 3 */
    ph__chakra_done(rank, false, 7, 6e3); /* 4, found by a poll */
    compute(rank, "c", 6, 7.5);           /* 5 */
    ph__chakra_done(rank, true, 8, 8e3);  /* 6 */
    ph__chakra_waited(rank, ph__comm_channel_of(FIRST), 8e3);
    compute(rank, "d", 8, 9); /* 7 */
    end(chakra, folder, &trace);
    assert_string_equal(trace.version, "0.0.4");
    assert_int_equal(trace.count, 7);
    assert_int_equal(trace.nodes[0].num_dependencies, 0);
    assert_on(&trace.nodes[1], 1);
    assert_on(&trace.nodes[2], 1);
    assert_on(&trace.nodes[3], 1);
    assert_on(&trace.nodes[4], 3);
    assert_on(&trace.nodes[5], 1);
    assert_on(&trace.nodes[6], 5, 4, 6);
    const struct node *send = &trace.nodes[1], *receive = &trace.nodes[3];
    assert_true(send->type == SEND && receive->type == RECEIVE && trace.nodes[6].type == COMP);
    assert_true(send->from == 0 && send->to == 1 && send->tag == FIRST && send->bytes == 1000);
    assert_true(receive->from == 1 && receive->to == 0 && receive->start == 1 && receive->duration == 5);
    assert_true(trace.nodes[2].num_ops == 2000 && trace.nodes[2].tensor_size == 300);
    assert_string_equal(trace.nodes[6].name, "d");
}

static void a_stage_depends_on_the_one_before_it_alone(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 1);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    ph__chakra_count(rank, true);
    compute(rank, "a", 0, 1); /* 1 */
    post(rank, false, OTHER, 1, 2);
    post(rank, false, FIRST, 1, 3);
    post(rank, false, FIRST, 1, 4);
    ph__chakra_done(rank, false, 2, 2e3);      /* 2 */
    ph__chakra_done(rank, false, 3, 2e3);      /* 3 */
    ph__chakra_done(rank, false, 4, 2e3);      /* 4 */
    sum(rank, 2, 3);                           /* 5 */
    post(rank, true, SECOND, 3, PH_MAIL_DONE); /* 6 */
    post(rank, true, OTHER, 4, PH_MAIL_DONE);  /* 7 */
    compute(rank, "b", 4, 5);                  /* 8 */
    sum(rank, 5, 6);                           /* 9: of numbers to be sent, as no message has come since */
    end(chakra, folder, &trace);
    assert_int_equal(trace.count, 9);
    assert_on(&trace.nodes[4], 1, 3, 4);
    assert_on(&trace.nodes[5], 1, 5);
    assert_on(&trace.nodes[6], 1, 2);
    assert_on(&trace.nodes[7], 1);
    assert_on(&trace.nodes[8], 8);
    assert_true(trace.nodes[4].num_ops == 1 && trace.nodes[4].tensor_size == 1);
}

static void an_empty_message_is_named_so(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 1);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    const struct ph__letter out = {0, 1, FIRST, 0, 0, false, false}, in = {1, 0, FIRST, 0, 0, false, false};
    ph__chakra_count(rank, true);
    ph__chakra_message(rank, true, &out, PH_MAIL_DONE);
    ph__chakra_message(rank, false, &in, 3);
    ph__chakra_done(rank, false, 3, 1e3);
    end(chakra, folder, &trace);
    assert_string_equal(trace.nodes[0].name, "empty send");
    assert_string_equal(trace.nodes[1].name, "empty receive");
    assert_true(trace.nodes[0].bytes == 1 && trace.nodes[1].bytes == 1);
}

/* Marks the nodes that a node depends on, by whatever way. */
static void mark(const struct trace *trace, uint64_t id, bool *is_before)
{
    const struct node *node = &trace->nodes[id - 1];
    for (size_t i = 0; i < node->num_dependencies; i++) {
        is_before[node->dependencies[i] - 1] = true;
        mark(trace, node->dependencies[i], is_before);
    }
}

static void many_messages_come_together_in_waits(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 1);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    bool is_before[MOST_NODES] = {false};
    ph__chakra_count(rank, true);
    for (uint32_t i = 0; i < 60; i++)
        post(rank, false, FIRST, 1, i);
    for (uint32_t i = 0; i < 60; i++)
        ph__chakra_done(rank, false, i, 2e3);
    ph__chakra_waited(rank, ph__comm_channel_of(FIRST), 3e3);
    post(rank, true, OTHER, 4, PH_MAIL_DONE);
    end(chakra, folder, &trace);
    assert_int_equal(trace.nodes[trace.count - 1].type, SEND);
    assert_int_equal(trace.nodes[trace.count - 1].num_dependencies, 1);
    assert_string_equal(trace.nodes[trace.count - 2].name, "wait");
    mark(&trace, trace.count, is_before);
    for (size_t i = 0; i + 1 < trace.count; i++)
        assert_true(is_before[i]);
}

static void steps_beyond_the_first_and_what_is_between_them_are_left_out(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 2);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    for (uint32_t step = 0; step < 4; step++) {
        compute(rank, "between", 0, 1);
        ph__chakra_count(rank, true);
        compute(rank, "within", 0, 1);
        post(rank, false, FIRST, 1, step);
        ph__chakra_count(rank, false);
        ph__chakra_done(rank, false, step, 2e3); /* its step has it */
    }
    ph__chakra_message(NULL, true, NULL, 0);
    end(chakra, folder, &trace);
    assert_int_equal(trace.count, 4);
    for (size_t i = 0; i < trace.count; i++)
        assert_string_equal(trace.nodes[i].name, i % 2 == 0 ? "within" : "receive");
}

static void durations_add_up_to_what_has_passed(void **state)
{
    (void)state;
    const char *folder = test_fresh_folder();
    struct ph__chakra *chakra = begin(folder, 1);
    struct ph__chakra_rank *rank = ph__chakra_rank(chakra, 0);
    struct trace trace;
    uint64_t total = 0;
    ph__chakra_count(rank, true);
    for (int i = 0; i < 100; i++)
        compute(rank, "short", i * .37, (i + 1) * .37);
    end(chakra, folder, &trace);
    for (size_t i = 0; i < trace.count; i++)
        total += trace.nodes[i].duration;
    assert_int_equal(total, 37);
}

static void a_folder_that_cannot_be_made_fails_the_end(void **state)
{
    (void)state;
    struct ph__chakra *chakra = begin(test_write_file("file", ""), 1);
    ph__chakra_count(ph__chakra_rank(chakra, 1), true);
    assert_fails(ph__chakra_finish(chakra), PH_ERROR_USAGE, "file");
    ph__chakra_destroy(chakra);
    assert_null(ph__chakra_rank(NULL, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_depends_on_the_messages_that_were_waited_for),
        cmocka_unit_test(a_stage_depends_on_the_one_before_it_alone),
        cmocka_unit_test(an_empty_message_is_named_so),
        cmocka_unit_test(many_messages_come_together_in_waits),
        cmocka_unit_test(steps_beyond_the_first_and_what_is_between_them_are_left_out),
        cmocka_unit_test(durations_add_up_to_what_has_passed),
        cmocka_unit_test(a_folder_that_cannot_be_made_fails_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
