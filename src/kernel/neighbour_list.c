/* The sampling rules of phloem/kernel.h. */
#include "kernel/neighbour_list.h"

uint32_t ph__neighbour_stride(uint32_t seed, size_t d)
{
    static const uint32_t primes[] = {
        PH_LEAST_STRIDE, 769, 983, 1193, 1429, 1619, 1871, 2089, 2339, PH_LARGEST_STRIDE};
    enum { NUM_PRIMES = sizeof primes / sizeof *primes };
    size_t i = seed % NUM_PRIMES;
    while (d >= primes[i] && d % primes[i] == 0)
        i = (i + 1) % NUM_PRIMES;
    return primes[i] % (uint32_t)d;
}

static void place_by_stride(uint32_t seed, size_t d, size_t c, uint32_t *places)
{
    const size_t stride = ph__neighbour_stride(seed, d);
    for (size_t s = 0, at = 0; s < c; s++) {
        places[s] = (uint32_t)at;
        at += stride;
        at -= at >= d ? d : 0;
    }
}

static void place_by_residue(uint32_t seed, size_t d, size_t c, uint32_t *places)
{
    enum { PRIME = 21767 };
    const uint32_t offset = seed % PRIME;
    for (size_t s = 0; s < c; s++) {
        const uint32_t root = (uint32_t)(s % PRIME), q = (root * root + offset) % PRIME;
        places[s] = (s <= PRIME / 2 ? q : PRIME - q) % (uint32_t)d;
    }
}

static void place_by_runs(size_t d, size_t c, uint32_t *places)
{
    const size_t ratio = ph__divide_up(d, c);
    const size_t num_runs = ph__min(c, ratio <= 2 ? 4 : ratio <= 36 ? 8 : ratio <= 54 ? 16 : 32);
    for (size_t run = 0, s = 0; run < num_runs; run++) {
        const size_t length = c / num_runs + (run < c % num_runs);
        const size_t start = 1429 * run % (d - length + 1);
        for (size_t i = 0; i < length; i++)
            places[s++] = (uint32_t)(start + i);
    }
}

static void place_evenly(size_t d, size_t c, uint32_t *places)
{
    const size_t step = d / c, rest = d % c;
    for (size_t s = 0, at = 0, carry = 0; s < c; s++) {
        places[s] = (uint32_t)at;
        carry += rest;
        at += step + (carry >= c);
        carry -= carry >= c ? c : 0;
    }
}

static void place_first(size_t c, uint32_t *places)
{
    for (size_t s = 0; s < c; s++)
        places[s] = (uint32_t)s;
}

void ph__place_neighbours(const struct ph_sampling *sampling, size_t d, size_t c, uint32_t *places)
{
    switch (c < d ? sampling->strategy : PH_SAMPLING_BUCKET) {
    case PH_SAMPLING_BUCKET:
        place_first(c, places);
        break;
    case PH_SAMPLING_STRIDE:
    case PH_SAMPLING_RATE:
        place_by_stride(sampling->seed, d, c, places);
        break;
    case PH_SAMPLING_RESIDUE:
        place_by_residue(sampling->seed, d, c, places);
        break;
    case PH_SAMPLING_AES:
        place_by_runs(d, c, places);
        break;
    case PH_SAMPLING_EVEN:
        place_evenly(d, c, places);
        break;
    }
}
