/* Scores rows with a model that phloem train left in a folder:
 *
 *   score DIR COLUMN=TEXT...   one row; columns that are not named are blank
 *   score DIR <rows            one row a line, in the format of the training data, with or without labels
 *
 * Prints one probability a line (of the first task). score_row is all that a program needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phloem/phloem.h"

/* Sets the row's cell of a column from "COLUMN=TEXT". */
static ph_status set_cell(const struct ph_session *session, const char *argument, struct ph_cell *cells)
{
    const char *equals = strchr(argument, '=');
    char name[256];
    if (equals == NULL || (size_t)(equals - argument) >= sizeof name)
        return ph_fail(PH_ERROR_USAGE, "'%s' is not COLUMN=TEXT", argument);
    snprintf(name, sizeof name, "%.*s", (int)(equals - argument), argument);
    size_t column = ph_session_find_column(session, name);
    if (column == SIZE_MAX)
        return ph_fail(PH_ERROR_USAGE, "the model has no column '%s'", name);
    cells[column] = (struct ph_cell){.kind = PH_CELL_TEXT, .text = equals + 1, .length = strlen(equals + 1)};
    return PH_OK;
}

static ph_status score_row(struct ph_session *session, int count, char **arguments)
{
    float *probabilities = calloc(ph_session_num_tasks(session), sizeof *probabilities);
    struct ph_cell *cells = calloc(ph_session_num_columns(session), sizeof *cells); /* blank */
    ph_status status = cells == NULL || probabilities == NULL ? PH_ERROR_MEMORY : PH_OK;
    for (int i = 0; status == PH_OK && i < count; i++)
        status = set_cell(session, arguments[i], cells);
    if (status == PH_OK)
        status = ph_session_score(session, 1, cells, probabilities);
    if (status == PH_OK)
        printf("%.9g\n", (double)probabilities[0]);
    free(cells);
    free(probabilities);
    return status;
}

static ph_status score_lines(struct ph_session *session)
{
    static char line[1 << 16];
    float *probabilities = calloc(ph_session_num_tasks(session), sizeof *probabilities);
    ph_status status = probabilities == NULL ? PH_ERROR_MEMORY : PH_OK;
    while (status == PH_OK && fgets(line, sizeof line, stdin) != NULL) {
        size_t num_rows = 0;
        status = ph_session_score_text(session, line, strlen(line), probabilities, 1, &num_rows);
        if (status == PH_OK && num_rows == 1)
            printf("%.9g\n", (double)probabilities[0]);
    }
    free(probabilities);
    return status;
}

int main(int argc, char **argv)
{
    struct ph_session *session = NULL;
    if (argc < 2) {
        fprintf(stderr, "usage: score DIR [COLUMN=TEXT...] [<rows]\n");
        return 2;
    }
    ph_status status = ph_session_open(argv[1], NULL, &session);
    if (status == PH_OK)
        status = argc > 2 ? score_row(session, argc - 2, argv + 2) : score_lines(session);
    ph_session_close(session);
    if (status != PH_OK)
        fprintf(stderr, "score: %s\n", ph_error_text());
    return ph_status_exit_code(status);
}
