/* Learns the ids of a run column by column. The whole run is checked before the first id is counted: of a bad
 * row nothing may be learnt. */
#include "data/encode/fit.h"
#include "data/source/arrow_run.h"

/* Returns true when ids of the cell are counted in a vocabulary. */
static bool is_counted(const struct ph__arrow_cell *cell)
{
    return cell->column->kind == PH_FIELD_ID && cell->column->encoding == PH_ENCODING_VOCABULARY;
}

/* Returns true when a run of the cell teaches what its rows teach one by one: not where values are
 * gathered. */
static bool may_learn(const struct ph__arrow_cell *cell)
{
    const struct ph__column *column = cell->column;
    if (is_counted(cell))
        return !column->is_group && (ph__run_has_keys(cell) || ph__run_has_words(cell));
    return !(column->kind == PH_FIELD_DENSE && ph__column_is_standardised(column)) &&
           !(column->kind == PH_FIELD_ID && column->num_buckets > 0);
}

/* Returns true when columns share a vocabulary, whose words come in the order of the rows. */
static bool has_shared_words(const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < encoder->num_columns; i++)
        if (encoder->columns[i].kind == PH_FIELD_ID && encoder->columns[i].shares != NULL)
            return true;
    return false;
}

bool ph__run_may_learn(const struct ph__arrow_rows *rows, const struct ph_encoder *encoder)
{
    for (size_t i = 0; i < rows->num_cells; i++)
        if (!may_learn(&rows->cells[i]))
            return false;
    return !has_shared_words(encoder);
}

static struct ph__vocabulary *learnt_vocabulary(const struct ph__run *run, const struct ph__arrow_cell *cell)
{
    return &run->row->fit->columns[cell->column->owner].vocabulary;
}

static ph_status check_texts(const struct ph__run *run, const struct ph__arrow_cell *cell,
    const struct ph__run_text texts[PH_ARROW_RUN_ROWS])
{
    const struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    for (size_t i = 0; i < run->num_rows; i++)
        if (texts[i].length > 0 &&
            ph__vocabulary_row(vocabulary, texts[i].text, texts[i].length, texts[i].hash) == 0)
            PH_TRY(ph__encoder_check_word(cell->column, texts[i].text, texts[i].length));
    return PH_OK;
}

/* Checks values of a dictionary that have not been counted. */
static ph_status check_keys(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    struct ph__lookups *lookups = &run->row->lookups;
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        const int64_t key = ph__run_is_null(cell->from, at) ? 0 : ph__run_integer(cell->from, at);
        if (ph__run_is_null(cell->from, at) || ph__run_knows(ph__run_slot(cell->memo, key), key))
            continue;
        lookups->count = 0;
        PH_TRY(ph__run_give_cell(run, cell, i));
        if (lookups->count > 0)
            PH_TRY(ph__encoder_check_word(
                cell->column, ph__lookup_word(&lookups->items[0]), lookups->items[0].length));
    }
    return PH_OK;
}

static ph_status check_column(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    struct ph__run_text texts[PH_ARROW_RUN_ROWS];
    if (!is_counted(cell))
        return ph__run_encode_column(run, cell);
    if (cell->from->kind == PH_ARROW_TEXT) {
        PH_TRY(ph__run_read_texts(run, cell, learnt_vocabulary(run, cell), texts));
        return check_texts(run, cell, texts);
    }
    PH_TRY(ph__run_make_memo(run, cell));
    return cell->from->kind == PH_ARROW_DICTIONARY ? check_keys(run, cell) : PH_OK;
}

static ph_status count_texts(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    struct ph__run_text texts[PH_ARROW_RUN_ROWS];
    PH_TRY(ph__run_read_texts(run, cell, vocabulary, texts));
    for (size_t i = 0; i < run->num_rows; i++)
        if (texts[i].length > 0)
            PH_TRY(ph__vocabulary_count(vocabulary, texts[i].text, texts[i].length, 1, texts[i].hash, NULL));
    return PH_OK;
}

/* Counts an id that the memo does not hold. *row_out: its row, 0 for a blank. */
static ph_status count_new(
    const struct ph__run *run, struct ph__arrow_cell *cell, size_t i, uint32_t *row_out)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    run->row->lookups.count = 0;
    PH_TRY(ph__run_give_cell(run, cell, i));
    *row_out = 0;
    if (run->row->lookups.count == 0)
        return PH_OK;
    const struct ph__lookup *lookup = &run->row->lookups.items[0];
    const char *word = ph__lookup_word(lookup);
    PH_TRY(ph__vocabulary_count(vocabulary, word, lookup->length, 1, lookup->hash, NULL));
    *row_out = ph__vocabulary_row(vocabulary, word, lookup->length, lookup->hash);
    return PH_OK;
}

static ph_status count_keys(const struct ph__run *run, struct ph__arrow_cell *cell)
{
    struct ph__vocabulary *vocabulary = learnt_vocabulary(run, cell);
    for (size_t i = 0; i < run->num_rows; i++) {
        const int64_t at = run->first + (int64_t)i;
        if (ph__run_is_null(cell->from, at))
            continue;
        const int64_t key = ph__run_integer(cell->from, at);
        struct ph__arrow_known *slot = ph__run_slot(cell->memo, key);
        if (ph__run_knows(slot, key)) {
            if (slot->word > 0)
                ph__vocabulary_count_row(vocabulary, slot->word, 1);
            continue;
        }
        uint32_t row;
        PH_TRY(count_new(run, cell, i, &row));
        *slot = (struct ph__arrow_known){key, row, true};
    }
    return PH_OK;
}

ph_status ph__run_learn(struct ph__arrow_rows *rows, const struct ph__run *run)
{
    for (size_t i = 0; i < rows->num_cells; i++)
        PH_TRY(check_column(run, &rows->cells[i]));
    for (size_t i = 0; i < rows->num_cells; i++) {
        struct ph__arrow_cell *cell = &rows->cells[i];
        if (is_counted(cell))
            PH_TRY(cell->from->kind == PH_ARROW_TEXT ? count_texts(run, cell) : count_keys(run, cell));
    }
    run->row->fit->num_rows += run->num_rows;
    return PH_OK;
}
