/* Numbers of the rows of trainable tables (struct ph__table_rows), a vector at a time: read, and written as
 * their format rounds them. Same bits as ref.
 *
 * Random words are drawn by blocks of eight numbers (base/rng.h). Philox runs in lanes of 64 bits, because
 * its products then need no shuffles, and in two vectors at once, because one would wait for its own
 * products. Narrow rows are drawn several at a time, so no lane is idle. */
#ifndef PH_KERNEL_TABLE_NUMBERS_H
#define PH_KERNEL_TABLE_NUMBERS_H

#include <string.h>

#include "kernel/simd/simd.h"
#include "tensor/row_format.h"

enum {
    BLOCK_NUMBERS = 8,
    COLUMN_STEP = 4, /* parts of rows begin at its multiples: at or amid a block of random words */
    DRAWN_BLOCKS = 2 * VU_BLOCKS,
    DRAWN_WORDS = BLOCK_NUMBERS * DRAWN_BLOCKS,
};

/* ---- random words ---- */

/* The generator of the slice that the latest rows lie in, a pair of keys per round, and the random words of
 * the rows drawn together: `together` rows, each with `row_words`. Of a wider row a part is drawn, and
 * `together` is 0. Words stand where the numbers do: words of the first block before the slice's first column
 * are dropped. */
struct chance {
    const struct ph__table_rows *table;
    size_t zero_row;     /* place in the table of row 0 of the whole slice, modulo 2^64 */
    size_t end_row;      /* end of the slice's rows */
    size_t first_block;  /* the block of column 0 */
    int begins_in_block; /* set when column 0 is in the middle of that block */
    uint64_t step;
    uint64_t keys[2 * PH_PHILOX_ROUNDS];
    size_t together, row_words;
    vu row[2], block[2];                    /* per lane: number of the row among those drawn, and its block */
    uint16_t words[DRAWN_WORDS + VF_WIDTH]; /* a vector of the last row may end behind its words */
};

PH_INLINE int is_by_chance(enum ph_row_format format)
{
    return format == PH_ROWS_FP16 || format == PH_ROWS_BF16;
}

/* Returns the most blocks that a row of any slice takes. */
static size_t count_row_blocks(const struct ph__table_rows *table)
{
    size_t numbers = table->dim > 0 ? table->dim : 1, before = 0;
    for (size_t i = 0; i < table->num_slices; i++)
        before |= table->slices[i].first_column % BLOCK_NUMBERS;
    return (before + numbers - 1) / BLOCK_NUMBERS + 1;
}

static void start(struct chance *chance, const struct ph__table_rows *table)
{
    const size_t row_blocks = count_row_blocks(table);
    chance->table = table;
    chance->end_row = 0; /* so the first row enters its slice */
    chance->together = row_blocks <= DRAWN_BLOCKS ? DRAWN_BLOCKS / row_blocks : 0;
    chance->row_words = row_blocks * BLOCK_NUMBERS;
    for (size_t v = 0; v < 2; v++) {
        uint32_t row[VF_WIDTH] = {0};
        uint64_t block[VU_BLOCKS];
        for (size_t lane = 0; lane < VU_BLOCKS; lane++) {
            const size_t number = v * VU_BLOCKS + vu_wide_number(lane);
            row[lane] = chance->together > 0 ? (uint32_t)(number / row_blocks) : 0;
            block[lane] = chance->together > 0 ? number % row_blocks : number;
        }
        chance->row[v] = vu_load(row);
        chance->block[v] = vu_load((const uint32_t *)(const void *)block);
    }
}

/* Enters the slice of a row, the first slice that ends behind it; bisects [slice, last]. */
static void enter_slice(struct chance *chance, size_t row)
{
    const struct ph__table_rows *table = chance->table;
    size_t slice = 0, last = table->num_slices - 1;
    while (slice < last) {
        const size_t middle = slice + (last - slice) / 2;
        if (table->slices[middle].end_row <= row)
            slice = middle + 1;
        else
            last = middle;
    }
    const struct ph__row_slice *entered = &table->slices[slice];
    const struct ph__rng_key key = {table->seed, table->step, entered->stream};
    const struct ph__rng_philox philox = ph__rng_philox(&key);
    for (uint32_t round = 0; round < PH_PHILOX_ROUNDS; round++) {
        chance->keys[2 * round] = philox.key[0] + round * PH_PHILOX_WEYL_0;
        chance->keys[2 * round + 1] = philox.key[1] + round * PH_PHILOX_WEYL_1;
    }
    chance->step = philox.step;
    chance->zero_row = (slice > 0 ? entered[-1].end_row : 0) - entered->first_row;
    chance->end_row = entered->end_row;
    chance->first_block = entered->first_column / BLOCK_NUMBERS;
    chance->begins_in_block = entered->first_column % BLOCK_NUMBERS != 0;
}

/* Generates the words of blocks, counted from the slice's first, of rows counted in the whole slice. */
static void generate(struct chance *chance, const vu row[2], const vu block[2])
{
    vu word[2][4];
    PH_UNROLL
    for (size_t v = 0; v < 2; v++) {
        word[v][0] = row[v];
        word[v][1] = vu_wide(0);
        word[v][2] = vu_wide_add(block[v], vu_wide(chance->first_block));
        word[v][3] = vu_wide(chance->step);
    }
    PH_UNROLL
    for (size_t round = 0; round < PH_PHILOX_ROUNDS; round++) {
        PH_UNROLL
        for (size_t v = 0; v < 2; v++) {
            const vu first = vu_wide_multiply(word[v][0], vu_wide(PH_PHILOX_MULTIPLIER_0));
            const vu second = vu_wide_multiply(word[v][2], vu_wide(PH_PHILOX_MULTIPLIER_1));
            word[v][0] = vu_xor3(vu_wide_high(second), word[v][1], vu_wide(chance->keys[2 * round]));
            word[v][1] = second;
            word[v][2] = vu_xor3(vu_wide_high(first), word[v][3], vu_wide(chance->keys[2 * round + 1]));
            word[v][3] = first;
        }
    }
    vu_store_blocks(chance->words, word[0]);
    vu_store_blocks(chance->words + DRAWN_WORDS / 2, word[1]);
}

/* Drops the words of the first half block, when the first number is in the middle of its block. */
static void leave_out_first(struct chance *chance)
{
    memmove(chance->words, chance->words + COLUMN_STEP, DRAWN_WORDS * sizeof *chance->words);
}

/* Draws the words of the first of `count` rows, which ascend; returns the rows drawn. Not for wide rows. */
static size_t draw_rows(struct chance *chance, const uint32_t *rows, size_t count)
{
    size_t drawn = count < chance->together ? count : chance->together;
    if (rows[0] >= chance->end_row)
        enter_slice(chance, rows[0]);
    while (rows[drawn - 1] >= chance->end_row)
        drawn--;
    const vu numbers = vu_sub(vu_load_first(rows, drawn), vu_set1((uint32_t)chance->zero_row));
    const vu row[2] = {vu_widen_lanes(numbers, chance->row[0]), vu_widen_lanes(numbers, chance->row[1])};
    generate(chance, row, chance->block);
    if (chance->begins_in_block)
        leave_out_first(chance);
    return drawn;
}

/* Draws DRAWN_WORDS words of the numbers of a wide row from `column` on, a multiple of DRAWN_WORDS. */
static void draw_columns(struct chance *chance, size_t row, size_t column)
{
    if (row >= chance->end_row)
        enter_slice(chance, row);
    const size_t logical_row = row - chance->zero_row, block = column / BLOCK_NUMBERS;
    const vu number = vu_wide(logical_row), first = vu_wide(block);
    const vu rows[2] = {number, number};
    const vu blocks[2] = {vu_wide_add(first, chance->block[0]), vu_wide_add(first, chance->block[1])};
    generate(chance, rows, blocks);
    if (!chance->begins_in_block)
        return;
    const struct ph__rng_philox philox = {
        {(uint32_t)chance->keys[0], (uint32_t)chance->keys[1]}, (uint32_t)chance->step};
    const struct ph__rng_block last =
        ph__rng_philox_block(&philox, logical_row, (uint32_t)(chance->first_block + block + DRAWN_BLOCKS));
    memcpy(chance->words + DRAWN_WORDS, last.word, sizeof last.word);
    leave_out_first(chance);
}

/* ---- rounding to 16 bits ---- */

/* Rounds as ph__bfloat_by_chance does. */
PH_INLINE vu bfloats_by_chance(vf x, vu random)
{
    return vu_where_nan(x, vu_set1(0x7fc0), vu_right(vu_add(vu_bits(x), random), 16));
}

/* Rounds as ph__half_by_chance does. */
PH_INLINE vu halves_by_chance(vf x, vu random)
{
    const vu bits = vu_bits(x), exponent = vu_and(vu_right(bits, 23), vu_set1(0xff));
    const vu base = vu_more(exponent, vu_set1(113));
    const vu significand = vu_left(vu_or(vu_and(bits, vu_set1(0x7fffff)), vu_set1(0x800000)), 3);
    const vu units = vu_add(vu_right_by(significand, vu_sub(base, exponent)), random);
    const vu half = vu_add(vu_left(vu_sub(base, vu_set1(113)), 10), vu_right(units, 16));
    const vu magnitude = vu_where_nan(x, vu_set1(0x7e00), vu_less(half, vu_set1(0x7c00)));
    return vu_or(magnitude, vu_and(vu_right(bits, 16), vu_set1(0x8000)));
}

/* ---- vectors of a row ---- */

/* Numbers of the table from one place on: all of a vector, or the first n. */
struct numbers {
    float *real;
    uint16_t *word, *low;
};

PH_INLINE struct numbers numbers_at(
    const struct ph__table_rows *table, enum ph_row_format format, size_t place)
{
    if (format == PH_ROWS_FP32)
        return (struct numbers){.real = (float *)table->memory + place};
    return (struct numbers){
        .word = (uint16_t *)table->memory + place,
        .low = format == PH_ROWS_BF16_SPLIT ? table->low + place : NULL,
    };
}

PH_INLINE vf load_all(enum ph_row_format format, const struct numbers *from, size_t i)
{
    if (format == PH_ROWS_FP32)
        return vf_load(from->real + i);
    const unsigned char *words = (const unsigned char *)(from->word + i);
    if (format == PH_ROWS_FP16)
        return vf_load_halves(words);
    if (format == PH_ROWS_BF16)
        return vf_load_bfloats(words);
    return vf_of_bits(vu_add(vu_bits(vf_load_bfloats(words)), vu_load_signed_words(from->low + i)));
}

PH_INLINE vf load_first(enum ph_row_format format, const struct numbers *from, size_t i, size_t n)
{
    if (format == PH_ROWS_FP32)
        return vf_load_mask(from->real + i, vf_first(n));
    const unsigned char *words = (const unsigned char *)(from->word + i);
    if (format == PH_ROWS_FP16)
        return vf_load_first_halves(words, n);
    if (format == PH_ROWS_BF16)
        return vf_load_first_bfloats(words, n);
    return vf_of_bits(
        vu_add(vu_bits(vf_load_first_bfloats(words, n)), vu_load_first_signed_words(from->low + i, n)));
}

/* Returns x's words, and in low_out those below them where the format keeps them; random: for a format that
 * rounds by chance. */
PH_INLINE vu round_vector(enum ph_row_format format, vf x, const uint16_t *random, vu *low_out)
{
    if (format == PH_ROWS_FP16)
        return halves_by_chance(x, vu_load_words(random));
    if (format == PH_ROWS_BF16)
        return bfloats_by_chance(x, vu_load_words(random));
    const vu bits = vu_where_nan(x, vu_set1(0x7fc00000), vu_bits(x));
    *low_out = vu_and(bits, vu_set1(0xffff));
    return vu_right(vu_add(bits, vu_set1(0x8000)), 16);
}

PH_INLINE void store_all(
    enum ph_row_format format, const struct numbers *to, size_t i, vf x, const uint16_t *random)
{
    if (format == PH_ROWS_FP32) {
        vf_store(to->real + i, x);
        return;
    }
    vu low;
    vu_store_words(to->word + i, round_vector(format, x, random, &low));
    if (format == PH_ROWS_BF16_SPLIT)
        vu_store_words(to->low + i, low);
}

PH_INLINE void store_first(
    enum ph_row_format format, const struct numbers *to, size_t i, size_t n, vf x, const uint16_t *random)
{
    if (format == PH_ROWS_FP32) {
        vf_store_mask(to->real + i, vf_first(n), x);
        return;
    }
    vu low;
    vu_store_first_words(to->word + i, n, round_vector(format, x, random, &low));
    if (format == PH_ROWS_BF16_SPLIT)
        vu_store_first_words(to->low + i, n, low);
}

/* ---- many numbers ---- */

PH_INLINE void load_numbers(
    const struct ph__table_rows *table, enum ph_row_format format, size_t place, size_t count, float *out)
{
    const struct numbers from = numbers_at(table, format, place);
    size_t i = 0;
    for (; i + VF_WIDTH <= count; i += VF_WIDTH)
        vf_store(out + i, load_all(format, &from, i));
    if (i < count)
        vf_store_mask(out + i, vf_first(count - i), load_first(format, &from, i, count - i));
}

PH_INLINE void store_split(
    const struct ph__table_rows *table, size_t place, size_t count, const float *numbers)
{
    const struct numbers to = numbers_at(table, PH_ROWS_BF16_SPLIT, place);
    size_t i = 0;
    for (; i + VF_WIDTH <= count; i += VF_WIDTH)
        store_all(PH_ROWS_BF16_SPLIT, &to, i, vf_load(numbers + i), NULL);
    if (i < count)
        store_first(
            PH_ROWS_BF16_SPLIT, &to, i, count - i, vf_load_mask(numbers + i, vf_first(count - i)), NULL);
}

/* Stores one row. random: its words; NULL: the row is too wide, and they are drawn here. */
PH_INLINE void store_row(struct chance *chance, enum ph_row_format format, size_t row, const float *numbers,
    const uint16_t *random)
{
    const size_t dim = chance->table->dim;
    const struct numbers to = numbers_at(chance->table, format, row * dim);
    for (size_t d = 0; d < dim; d += VF_WIDTH) {
        if (random == NULL && d % DRAWN_WORDS == 0)
            draw_columns(chance, row, d);
        const uint16_t *words = random != NULL ? random + d : chance->words + d % DRAWN_WORDS;
        if (d + VF_WIDTH <= dim)
            store_all(format, &to, d, vf_load(numbers + d), words);
        else
            store_first(format, &to, d, dim - d, vf_load_mask(numbers + d, vf_first(dim - d)), words);
    }
}

#endif
