#include "cli/printing.h"

#include <stdio.h>

ph_status cli_print(cli_write_function *write, const void *what)
{
    struct ph_writer *writer;
    fflush(stdout); /* the writer goes past the stream */
    PH_TRY(ph__writer_open("-", &writer));
    ph_status status = write(what, writer);
    if (status == PH_OK)
        status = ph__writer_finish(writer);
    ph__writer_close(writer);
    return status;
}

void cli_print_note(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "phloem: note: %s\n", text);
}
