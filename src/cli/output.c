#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "data/source/input_file.h"

static bool find_input(const char *input, struct stat *status)
{
    return strcmp(input, "-") == 0 ? fstat(STDIN_FILENO, status) == 0 : stat(input, status) == 0;
}

/* Compares the files that the paths lead to, so that links and other spellings of a path count, too. */
static bool is_same_file(const char *written, const char *input)
{
    struct stat of_written, of_input;
    return stat(written, &of_written) == 0 && S_ISREG(of_written.st_mode) && find_input(input, &of_input) &&
           of_written.st_dev == of_input.st_dev && of_written.st_ino == of_input.st_ino;
}

static ph_status spare_file(struct ph__arena *arena, const char *path, const char *input)
{
    const char *temporary = ph__arena_printf(arena, "%s.tmp", path);
    if (temporary == NULL)
        return PH_ERROR_MEMORY;
    if (!is_same_file(path, input) && !is_same_file(temporary, input))
        return PH_OK;
    return ph_fail(PH_ERROR_USAGE, "writing %s would overwrite the input %s: choose another name", path,
        strcmp(input, "-") == 0 ? "standard input" : input);
}

static ph_status spare_inputs(struct ph__arena *arena, const char *path, const char *input)
{
    const char **inputs = NULL;
    size_t num_inputs = 0;
    PH_TRY(ph__input_list_around(arena, input, &inputs, &num_inputs));
    for (size_t i = 0; i < num_inputs; i++)
        PH_TRY(spare_file(arena, path, inputs[i]));
    return PH_OK;
}

ph_status cli_output_spare_input(const char *path, const char *input)
{
    struct ph__arena arena = {0};
    if (strcmp(path, "-") == 0)
        return PH_OK;
    ph_status status = spare_inputs(&arena, path, input);
    ph__arena_fini(&arena);
    return status;
}

/* Context: a folder whose files are read, and the path that is written. */
struct sparing {
    struct ph__arena arena;
    const char *path, *folder;
};

static ph_status spare_entry(void *argument, const char *name)
{
    struct sparing *sparing = argument;
    const char *file = ph__path_join(&sparing->arena, sparing->folder, name);
    return file != NULL ? spare_file(&sparing->arena, sparing->path, file) : PH_ERROR_MEMORY;
}

/* Checks the weights: a file, or the folder that several ranks have written in its place. */
static ph_status spare_weights(struct sparing *sparing)
{
    const char *weights = ph__path_join(&sparing->arena, sparing->folder, "model.safetensors");
    if (weights == NULL)
        return PH_ERROR_MEMORY;
    if (!ph__directory_exists(weights))
        return spare_file(&sparing->arena, sparing->path, weights);
    sparing->folder = weights;
    return ph__directory_visit(weights, spare_entry, sparing);
}

ph_status cli_output_spare_model(const char *path, const char *folder)
{
    struct sparing sparing = {.path = path, .folder = folder};
    if (strcmp(path, "-") == 0)
        return PH_OK;
    ph_status status = spare_entry(&sparing, "config.yaml");
    if (status == PH_OK)
        status = spare_entry(&sparing, "encoder.json");
    if (status == PH_OK)
        status = spare_weights(&sparing);
    ph__arena_fini(&sparing.arena);
    return status;
}

ph_status cli_output_try(const char *path)
{
    if (ph__file_is_pipe(path))
        return PH_OK;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return ph__file_cannot_write(path);
    close(descriptor);
    return PH_OK;
}

/* ---- printing ---- */

ph_status cli_print(cli_write_function *write, const void *what)
{
    struct ph__writer *writer;
    PH_TRY(ph__writer_open("-", &writer));
    return ph__writer_end(writer, write(what, writer));
}

static ph_status write_table(const void *table, struct ph__writer *writer)
{
    return ph__text_table_write(table, writer);
}

ph_status cli_print_table(const struct ph__text_table *table)
{
    return cli_print(write_table, table);
}

ph_status cli_print_json(const struct ph__json *json)
{
    char *text;
    PH_TRY(ph__json_text(json, 2, &text));
    printf("%s\n", text);
    free(text);
    return PH_OK;
}

void cli_print_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "phloem: note: %s\n", text);
}
