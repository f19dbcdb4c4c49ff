#include "train/ranks/job_agreement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/stream.h"
#include "base/sum/checksum.h"
#include "base/thread/cpu.h"
#include "comm/collective/comm.h"
#include "data/encode/encoder.h"
#include "plan/plan_units.h"
#include "train/config/run_key.h"
#include "train/job_rows.h"

#define BLOCK_BYTES 65536u
#define NUM_BLOCKS 4 /* read of each file, the first and the last among them */

#define MOST_BYTES ((size_t)1 << 30) /* of a text */

/* Lines "name=value" for ph__comm_agree. */
struct lines {
    struct ph__writer *writer; /* into memory */
    struct ph__arena arena;    /* of what is written */
};

static ph_status begin(struct lines *lines)
{
    *lines = (struct lines){0};
    return ph__writer_open_memory("values that ranks must share", MOST_BYTES, &lines->writer);
}

static ph_status add(struct lines *lines, const char *name, const char *value)
{
    return ph__writer_printf(lines->writer, "%s=%s\n", name, value);
}

static ph_status add_lines(struct lines *lines, const char *more)
{
    return ph__writer_write(lines->writer, more, strlen(more));
}

static ph_status compare(struct lines *lines, struct ph_comm *comm)
{
    size_t size;
    PH_TRY(ph__writer_write(lines->writer, "", 1));
    PH_TRY(ph__writer_finish(lines->writer));
    char *text = ph__writer_take(lines->writer, &size);
    const ph_status status = ph__comm_agree(comm, text);
    free(text);
    return status;
}

/* Compares what was written, if all of it was, and frees the lines. */
static ph_status end(struct lines *lines, struct ph_comm *comm, ph_status status)
{
    if (status == PH_OK)
        status = compare(lines, comm);
    ph__writer_close(lines->writer);
    ph__arena_fini(&lines->arena);
    return status;
}

/* Adds the first digits of a sum, which are enough for people to tell two apart. */
static ph_status add_sum(struct lines *lines, const char *name, const char hex[65])
{
    char digits[17] = "";
    memcpy(digits, hex, sizeof digits - 1);
    return add(lines, name, digits);
}

static ph_status add_number(struct lines *lines, const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return add(lines, name, text);
}

static ph_status add_place(struct lines *lines, const char *folder, bool is_resumed)
{
    PH_TRY(add(lines, "the output folder", folder));
    return add(lines, "--resume", is_resumed ? "yes" : "no");
}

/* ---- data ---- */

/* A sample of all the files that a path stands for. */
struct sample {
    size_t num_files;
    uint64_t num_bytes;
    uint64_t sums[1 + NUM_BLOCKS]; /* [0]: of all files so far; then of the current file's blocks */
};

static ph_status sample_blocks(
    int descriptor, const char *path, uint64_t num_bytes, unsigned char *block, struct sample *sample)
{
    const size_t size = num_bytes < BLOCK_BYTES ? (size_t)num_bytes : BLOCK_BYTES;
    for (size_t i = 0; i < NUM_BLOCKS; i++) {
        const uint64_t place = (num_bytes - size) / (NUM_BLOCKS - 1) * i;
        const uint64_t at = i + 1 < NUM_BLOCKS ? place : num_bytes - size;
        PH_TRY(ph__file_read_at(descriptor, path, at, block, size));
        sample->sums[1 + i] = ph__checksum(block, size);
    }
    sample->sums[0] = ph__checksum(sample->sums, sizeof sample->sums);
    sample->num_bytes += num_bytes;
    sample->num_files++;
    return PH_OK;
}

static ph_status sample_file(const char *path, unsigned char *block, struct sample *sample)
{
    int descriptor;
    uint64_t num_bytes;
    if (!ph__file_exists(path))
        return PH_OK;
    PH_TRY(ph__file_open(path, &descriptor, &num_bytes));
    const ph_status status = sample_blocks(descriptor, path, num_bytes, block, sample);
    close(descriptor);
    return status;
}

static ph_status add_files(struct lines *lines, const char *name, const char *path)
{
    struct sample sample = {0};
    const char **paths;
    size_t num_paths;
    char text[96];
    unsigned char *block = ph__arena_alloc(&lines->arena, BLOCK_BYTES);
    if (block == NULL)
        return PH_ERROR_MEMORY;
    PH_TRY(ph__input_list_all(&lines->arena, path, &paths, &num_paths));
    for (size_t i = 0; i < num_paths; i++)
        PH_TRY(sample_file(paths[i], block, &sample));
    snprintf(text, sizeof text, "files: %zu, bytes: %" PRIu64 ", sum: %016" PRIx64, sample.num_files,
        sample.num_bytes, sample.sums[0]);
    return add(lines, name, text);
}

static ph_status add_rows(struct lines *lines, const char *name, struct ph__rows_origin rows)
{
    if (!ph__job_rows_exist(rows))
        return add(lines, name, "none");
    if (rows.dataset != NULL)
        return add_number(lines, name, ph_dataset_num_rows(rows.dataset));
    if (ph__job_rows_flow(rows))
        return add(lines, name, "read once");
    return add_files(lines, name, rows.path);
}

static ph_status add_data(struct lines *lines, const struct ph__train_job *job)
{
    PH_TRY(add_rows(lines, "data.train", ph__job_train(job)));
    PH_TRY(add_rows(lines, "data.valid", ph__job_valid(job)));
    return add_rows(lines, "data.test", ph__job_test(job));
}

/* ---- plan ---- */

static ph_status add_table(struct lines *lines, const struct ph__plan_table *table)
{
    PH_TRY(
        ph__writer_printf(lines->writer, "the plan of %s=%s", table->name, ph__shard_kind_name(table->kind)));
    for (size_t i = 0; i < table->num_places; i++)
        PH_TRY(ph__writer_printf(lines->writer, " %u", table->places[i]));
    return add_lines(lines, "\n");
}

static ph_status add_tower(struct lines *lines, const struct ph__plan_tower *tower)
{
    PH_TRY(ph__writer_printf(lines->writer, "the host of tower '%s'=%u", tower->of.name, tower->host));
    return add_lines(lines, "\n");
}

/* ---- runs, jobs and plans ---- */

/* Adds the instruction set. Sums over all of a gradient, as for clipping, round as the kernels add: with
 * another set a rank's copy of replicated parameters would drift away from the others'. */
static ph_status add_isa(struct lines *lines)
{
    enum ph__isa isa;
    PH_TRY(ph__cpu_isa(&isa));
    return add(lines, "the instruction set (PHLOEM_ISA sets it)", ph__isa_name(isa));
}

static ph_status describe_run(
    struct lines *lines, const struct ph_config *config, const char *folder, bool is_resumed)
{
    const char *common;
    char program[65];
    PH_TRY(add_isa(lines));
    PH_TRY(ph__program_digest(program));
    PH_TRY(add_sum(lines, "the program", program));
    PH_TRY(add_place(lines, folder, is_resumed));
    PH_TRY(ph__job_config_common(config, &lines->arena, &common));
    return add_lines(lines, common);
}

static ph_status describe_job(struct lines *lines, const struct ph__train_job *job)
{
    const struct ph__key_filter filter = {.without = PH_KEY_PER_RANK};
    const char *values;
    char encoder[65];
    PH_TRY(add_isa(lines));
    PH_TRY(add_place(lines, job->options.folder, job->options.is_resumed));
    PH_TRY(add(lines, "--trace", job->options.trace_path != NULL ? "given" : "not given"));
    PH_TRY(ph__job_values(job, filter, &lines->arena, &values));
    PH_TRY(add_lines(lines, values));
    PH_TRY(add_data(lines, job));
    PH_TRY(ph__encoder_digest(job->encoder, encoder));
    return add_sum(lines, "the encoder", encoder);
}

ph_status ph__agree_on_run(
    struct ph_comm *comm, const struct ph_config *config, const char *folder, bool is_resumed)
{
    struct lines lines;
    ph_status status = begin(&lines);
    if (status == PH_OK)
        status = describe_run(&lines, config, folder, is_resumed);
    return end(&lines, comm, status);
}

ph_status ph__agree_on_job(const struct ph__train_job *job)
{
    struct lines lines;
    ph_status status = begin(&lines);
    if (status == PH_OK)
        status = describe_job(&lines, job);
    return end(&lines, job->options.comm, status);
}

/* Adds "unit top.0.weight=full, 2 parameters, 16384 of 65536 numbers on its first rank, fp32". */
static ph_status add_unit(
    struct lines *lines, const struct ph__plan_units *units, const struct ph__plan_unit *unit)
{
    const char *name = ph__arena_printf(&lines->arena, "dense unit %s", unit->name);
    const char *text = ph__arena_printf(&lines->arena,
        "%s of %zu ranks, %zu parameters, %zu of %zu numbers on the first, wire %d, prefetch %zu, %s",
        ph__dense_mode_name(units->settings.mode), units->settings.group_size, unit->num_parameters,
        ph__unit_own_numbers(unit, 0), ph__unit_numbers(unit), (int)unit->wire, units->settings.prefetch,
        units->settings.reduces_often ? "every" : "once");
    return name != NULL && text != NULL ? add(lines, name, text) : PH_ERROR_MEMORY;
}

ph_status ph__agree_on_plan(struct ph_comm *comm, const struct ph__plan *plan)
{
    struct lines lines;
    ph_status status = begin(&lines);
    for (size_t i = 0; i < plan->num_tables && status == PH_OK; i++)
        status = add_table(&lines, &plan->tables[i]);
    for (size_t i = 0; i < plan->units.num_units && status == PH_OK; i++)
        status = add_unit(&lines, &plan->units, &plan->units.units[i]);
    for (size_t i = 0; i < plan->num_towers && status == PH_OK; i++)
        status = add_tower(&lines, &plan->towers[i]);
    return end(&lines, comm, status);
}
