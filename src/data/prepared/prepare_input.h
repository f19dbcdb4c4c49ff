/* The files that a preparation reads, as they were when it was begun: what is resumed must not mix in others. */
#ifndef PH_DATA_PREPARE_INPUT_H
#define PH_DATA_PREPARE_INPUT_H

#include "base/format/json.h"
#include "base/memory/arena.h"
#include "data/source/array_set.h"
#include "data/source/input_file.h"

/* What one path of a plan stands for: a text, or the arrays of a set; standard input or a pipe is none. */
struct ph__prepare_inputs {
    struct ph__input_file items[PH_ARRAY_SET_MAX_FILES];
    size_t count;
};

/* Looks at the files; the paths are the arena's or the caller's. PH_ERROR_DATA for a file that is missing. */
ph_status ph__prepare_inputs_look(
    struct ph_arena *arena, const char *path, bool is_arrays, struct ph__prepare_inputs *inputs_out);

/* An array of JSON, the caller's to destroy or give on. */
struct ph_json *ph__prepare_inputs_json(const struct ph__prepare_inputs *inputs);

/* PH_ERROR_DATA naming the file that is another one than the one kept. */
ph_status ph__prepare_inputs_compare(const struct ph__prepare_inputs *inputs, const struct ph_json *saved);

#endif
