#include "data/source/libffm.h"

#include <stdint.h>
#include <string.h>

#include "base/file/stream.h"
#include "data/encode/decimal.h"

#define MAX_FIELDS 4096 /* a larger number is no field */

static void count_line(const char *line, size_t *num_fields)
{
    for (const char *word = line + strspn(line, " \t"); *word != '\0' && *word != '#';) {
        size_t length = strcspn(word, " \t#");
        const char *colon = memchr(word, ':', length);
        uint64_t field;
        if (colon != NULL && ph__decimal_parse_id(word, (size_t)(colon - word), &field) &&
            field < MAX_FIELDS && field >= *num_fields)
            *num_fields = (size_t)field + 1;
        word += length;
        word += strspn(word, " \t");
    }
}

static ph_status count_file(struct ph_reader *reader, size_t *num_fields)
{
    for (;;) {
        char *line;
        size_t length;
        PH_TRY(ph__reader_line(reader, &line, &length));
        if (line == NULL)
            return PH_OK;
        count_line(line, num_fields);
    }
}

ph_status ph__libffm_count_fields(const char *const *paths, size_t num_paths, size_t *num_fields_out)
{
    size_t num_fields = 0;
    for (size_t i = 0; i < num_paths; i++) {
        struct ph_reader *reader;
        PH_TRY(ph__reader_open(paths[i], &reader));
        ph_status status = count_file(reader, &num_fields);
        ph__reader_close(reader);
        PH_TRY(status);
    }
    if (num_fields == 0)
        return ph_fail(PH_ERROR_DATA, "%s: no row has a field, written field:id:value",
            num_paths > 0 ? paths[0] : "data.train");
    *num_fields_out = num_fields;
    return PH_OK;
}
