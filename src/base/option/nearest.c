/* The known word that a misspelt one was probably meant to be. */
#include <string.h>

#include "base/option/option.h"

#define WORD_MAX 96 /* bytes; longer words have no neighbours */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edits that turn a into b: insert, delete, replace, swap two neighbours (optimal string alignment). Row i of the table
 * needs the two rows above it. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX + 1];
    size_t length_a = strlen(a), length_b = strlen(b);
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *second_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            size_t edits = above[j - 1] + (a[i - 1] != b[j - 1]);
            edits = least(edits, least(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                edits = least(edits, second_above[j - 2] + 1);
            row[j] = edits;
        }
    }
    return rows[length_a % 3][length_b];
}

const char *ph__nearest_word(const char *word, const char *const *known, size_t num_known)
{
    size_t length = strlen(word);
    if (length == 0 || length > WORD_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t best = length <= 3 ? 1 : least(2 + length / 8, length / 2); /* as many edits are still near */
    for (size_t i = 0; i < num_known; i++) {
        const size_t other = strlen(known[i]);
        if (other > WORD_MAX || other > length + best || length > other + best)
            continue; /* each edit changes the length by one at most */
        size_t edits = distance(word, known[i]);
        if (edits > best || (edits == best && nearest != NULL))
            continue;
        best = edits;
        nearest = known[i];
    }
    return nearest;
}
