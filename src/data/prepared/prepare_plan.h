/* The plan of a preparation: its files, and the tasks that they are cut into for threads to work on in
 * parallel. The plan follows from the files alone, never from the number of threads; it is saved beside the
 * prepared data, so that a resumed preparation is known to be the same. */
#ifndef PH_DATA_PREPARE_PLAN_H
#define PH_DATA_PREPARE_PLAN_H

#include "base/memory/arena.h"
#include "data/data_options.h"
#include "data/source/input_file.h"
#include "phloem/data.h"

struct ph__prepare_file {
    const char *path;
    enum ph__split split;
    size_t number;                 /* number among the split's files */
    struct ph__input_files inputs; /* files as they were at the beginning; standard input or a pipe: none */
    uint64_t num_bytes;            /* size of a text file on disk; 0: standard input, arrays */
    bool is_cut;                   /* true: plain text, cut into parts that are made in parallel */
};

/* One part of a file that is cut, or all parts of another file, one after the other. */
struct ph__prepare_task {
    const struct ph__prepare_file *file;
    size_t part;
    uint64_t begin, end; /* lines that begin there; 0 and 0: the whole file */
};

struct ph__prepare_plan {
    struct ph__arena arena;
    struct ph_prepare_settings cut; /* part_bytes and block_rows: sizes of parts and blocks */
    struct ph__prepare_file *files;
    size_t num_files;
    struct ph__prepare_task *tasks; /* split by split, file by file, part by part */
    size_t num_tasks;
};

/* Makes the plan of the settings' files. PH_ERROR_DATA for files that are missing. Free the plan also on
 * failure. */
ph_status ph__prepare_plan_init(
    struct ph__prepare_plan *plan, const struct ph_data_settings *settings, struct ph_prepare_settings cut);
void ph__prepare_plan_fini(struct ph__prepare_plan *plan);

/* Returns the bytes of text of the first num_tasks tasks; 0: unknown, because some of it is compressed or not
 * text. */
uint64_t ph__prepare_plan_text_bytes(const struct ph__prepare_plan *plan, size_t num_tasks);

/* Gives the byte at which the first line of a task begins, at or after `begin`; only for files that are
 * cut. */
ph_status ph__prepare_task_first_line(const struct ph__prepare_task *task, uint64_t *byte_out);

ph_status ph__prepare_plan_save(
    const struct ph__prepare_plan *plan, const char *path); /* sealed JSON, atomic */

/* PH_ERROR_DATA naming the difference from the saved plan (input_file.h lists what is compared of a file), or
 * when the saved plan is of another version. */
ph_status ph__prepare_plan_compare(const struct ph__prepare_plan *plan, const char *path);

#endif
