/* What a preparation has to do: which files there are, and how they are cut into tasks that threads work on
 * beside each other. It follows from the files alone, never from the number of threads; it is kept beside the
 * prepared data, so that a preparation that is resumed is known to be the same. */
#ifndef PH_DATA_PREPARE_PLAN_H
#define PH_DATA_PREPARE_PLAN_H

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "data/source/input_file.h"
#include "phloem/data.h"

struct ph__prepare_file {
    const char *path;
    enum ph__split split;
    size_t number;                 /* among the split's files */
    struct ph__input_files inputs; /* as they were when it was begun; standard input or a pipe: none */
    uint64_t num_bytes;            /* of a text, as it lies; 0: standard input, arrays */
    bool is_cut;                   /* into parts that are made beside each other: plain text */
};

/* One part of a file that is cut, else all parts of a file, one after the other. */
struct ph__prepare_task {
    const struct ph__prepare_file *file;
    size_t part;
    uint64_t begin, end; /* lines that begin there; 0 and 0: all of the file */
};

struct ph__prepare_plan {
    struct ph__arena arena;
    struct ph_prepare_settings cut; /* by its part_bytes and block_rows parts and their blocks are cut */
    struct ph__prepare_file *files;
    size_t num_files;
    struct ph__prepare_task *tasks; /* split by split, file by file, part by part */
    size_t num_tasks;
};

/* Errors: PH_ERROR_DATA for files that are missing. To be fini'ed also on failure. */
ph_status ph__prepare_plan_init(
    struct ph__prepare_plan *plan, const struct ph_data_settings *settings, struct ph_prepare_settings cut);
void ph__prepare_plan_fini(struct ph__prepare_plan *plan);

/* The text of the first num_tasks tasks; 0: not known, since some of it is compressed or is no text. */
uint64_t ph__prepare_plan_text_bytes(const struct ph__prepare_plan *plan, size_t num_tasks);

/* The byte at which the first line of a task begins, of a file that is cut: at `begin` or behind it. */
ph_status ph__prepare_task_first_line(const struct ph__prepare_task *task, uint64_t *byte_out);

ph_status ph__prepare_plan_save(
    const struct ph__prepare_plan *plan, const char *path); /* sealed JSON, atomic */

/* PH_ERROR_DATA naming what differs from the plan that was saved (input_file.h says what is noticed of a
 * file), or when that is of another version. */
ph_status ph__prepare_plan_compare(const struct ph__prepare_plan *plan, const char *path);

#endif
