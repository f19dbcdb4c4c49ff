#include "base/format/csv.h"

#include <math.h>
#include <string.h>

#include "base/text/number.h"

ph_status ph__csv_write_text(struct ph_writer *writer, const char *text)
{
    PH_TRY(ph__writer_write(writer, "\"", 1));
    while (*text != '\0') {
        const size_t length = strcspn(text, "\"");
        PH_TRY(ph__writer_write(writer, text, length));
        text += length;
        if (*text == '"') {
            PH_TRY(ph__writer_write(writer, "\"\"", 2));
            text++;
        }
    }
    return ph__writer_write(writer, "\"", 1);
}

ph_status ph__csv_write_number(struct ph_writer *writer, double number)
{
    char text[PH_NUMBER_TEXT_BYTES];
    if (!isfinite(number))
        return PH_OK;
    ph__number_format(number, text);
    return ph__writer_write(writer, text, strlen(text));
}
