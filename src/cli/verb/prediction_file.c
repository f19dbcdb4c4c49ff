#include "cli/verb/prediction_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"

#define NPY_HEADER_BYTES 128 /* of version 1.0, padded: room for any number of rows */

static ph_status cannot_write(const struct cli_prediction_file *file)
{
    return ph__file_cannot_write(file->path);
}

static ph_status write_npy_header(const struct cli_prediction_file *file)
{
    char header[NPY_HEADER_BYTES];
    char text[NPY_HEADER_BYTES];
    int length =
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %zu), }",
            file->num_rows, file->num_tasks);
    memset(header, ' ', sizeof header);
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = NPY_HEADER_BYTES - 10;
    header[9] = 0;
    memcpy(header + 10, text, (size_t)length);
    header[NPY_HEADER_BYTES - 1] = '\n';
    return fwrite(header, 1, NPY_HEADER_BYTES, file->file) == NPY_HEADER_BYTES ? PH_OK : cannot_write(file);
}

static ph_status write_csv_header(const struct cli_prediction_file *file)
{
    bool is_fine = true;
    if (file->num_tasks == 1)
        is_fine = fprintf(file->file, "prediction\n") > 0;
    for (size_t task = 0; file->num_tasks > 1 && task < file->num_tasks; task++)
        is_fine = fprintf(file->file, "%sprediction_%zu%s", task > 0 ? "," : "", task,
                      task + 1 == file->num_tasks ? "\n" : "") > 0 &&
                  is_fine;
    return is_fine ? PH_OK : cannot_write(file);
}

const char *cli_prediction_file_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

static ph_status open_stream(struct cli_prediction_file *file)
{
    if (file->is_standard_output) {
        file->file = stdout;
        return PH_OK;
    }
    if (ph__directory_exists(file->path))
        errno = EISDIR;
    else
        file->file = fopen(file->temporary_path, "wb");
    return file->file != NULL ? PH_OK : cannot_write(file);
}

ph_status cli_prediction_file_open(const char *path, size_t num_tasks, struct cli_prediction_file *file_out)
{
    struct cli_prediction_file file = {.is_npy = ph__path_ends_in(path, ".npy"),
        .is_standard_output = strcmp(path, "-") == 0,
        .num_tasks = num_tasks};
    if (!file.is_npy && !file.is_standard_output && !ph__path_ends_in(path, ".csv"))
        return ph_fail(PH_ERROR_USAGE,
            "%s: the name must end in .csv or .npy, or be - for CSV on standard output", path);
    if (strlen(path) >= sizeof file.path)
        return ph_fail(PH_ERROR_USAGE, "the name of the output file is too long: %s", path);
    snprintf(file.path, sizeof file.path, "%s", cli_prediction_file_name(path));
    snprintf(file.temporary_path, sizeof file.temporary_path, "%s.tmp", path);
    PH_TRY(open_stream(&file));
    ph_status status = file.is_npy ? write_npy_header(&file) : write_csv_header(&file);
    if (status == PH_OK)
        *file_out = file;
    else
        cli_prediction_file_abandon(&file);
    return status;
}

ph_status cli_prediction_file_row(struct cli_prediction_file *file, const float *probabilities)
{
    file->num_rows++;
    if (file->is_npy) {
        size_t written = fwrite(probabilities, sizeof *probabilities, file->num_tasks, file->file);
        return written == file->num_tasks ? PH_OK : cannot_write(file);
    }
    for (size_t task = 0; task < file->num_tasks; task++)
        if (fprintf(file->file, "%s%.9g", task > 0 ? "," : "", (double)probabilities[task]) < 0)
            return cannot_write(file);
    return fputc('\n', file->file) == '\n' ? PH_OK : cannot_write(file);
}

ph_status cli_prediction_file_finish(struct cli_prediction_file *file)
{
    ph_status status = PH_OK;
    if (file->is_npy)
        status = fseek(file->file, 0, SEEK_SET) == 0 ? write_npy_header(file) : cannot_write(file);
    FILE *stream = file->file;
    file->file = NULL;
    if (file->is_standard_output)
        return fflush(stream) == 0 ? PH_OK : cannot_write(file);
    if (fclose(stream) != 0 && status == PH_OK)
        status = cannot_write(file);
    if (status == PH_OK && rename(file->temporary_path, file->path) != 0)
        status = cannot_write(file);
    if (status != PH_OK)
        unlink(file->temporary_path);
    return status;
}

void cli_prediction_file_abandon(struct cli_prediction_file *file)
{
    if (file->file == NULL || file->is_standard_output)
        return;
    fclose(file->file);
    file->file = NULL;
    unlink(file->temporary_path);
}
