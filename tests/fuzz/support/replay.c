/* Runs a fuzz target without libFuzzer: every file of its corpus, then a number of mutations of them, always
 * the same ones for the same seed. So any compiler's sanitizers see each target in every test run; looking
 * for new paths is left to libFuzzer (./run fuzz).
 *
 * usage: replay_<target> MUTATIONS FINDING [FILE|FOLDER...]
 * An input that ends the process is left in the file FINDING. $PH_TEST_SEED chooses other mutations. */
#include <dirent.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "support/fuzz_support.h"

#define MAX_INPUT_BYTES 4096
#define DEFAULT_SEED 20260101

struct input {
    uint8_t *bytes;
    size_t size;
};

struct corpus {
    struct input *inputs;
    size_t num_inputs;
};

/* ---- the input that runs, for whoever ends the process ---- */

static struct input running;
static const char *finding;

static void keep_finding(void)
{
    FILE *file = fopen(finding, "wb");
    if (file == NULL)
        return;
    fwrite(running.bytes, 1, running.size, file);
    fclose(file);
    fprintf(stderr, "replay: the input is left in %s\n", finding);
}

static void on_abort(int number)
{
    keep_finding();
    signal(number, SIG_DFL);
    raise(number);
}

/* The input is copied: a target that reads behind its end is seen to. */
static void run(const uint8_t *bytes, size_t size)
{
    running = (struct input){malloc(size > 0 ? size : 1), size};
    fuzz_require(running.bytes != NULL);
    memcpy(running.bytes, bytes, size);
    LLVMFuzzerTestOneInput(running.bytes, size);
    free(running.bytes);
}

/* ---- the corpus ---- */

static void add_file(struct corpus *corpus, const char *path)
{
    struct input *grown = realloc(corpus->inputs, (corpus->num_inputs + 1) * sizeof *grown);
    fuzz_require(grown != NULL);
    corpus->inputs = grown;
    struct input *input = &grown[corpus->num_inputs++];
    input->bytes = (uint8_t *)fuzz_read(path, &input->size);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By name, so that the mutations are the same wherever the files lie. */
static void add_path(struct corpus *corpus, const char *path)
{
    struct dirent **entries = NULL;
    const int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0)
        add_file(corpus, path);
    for (int i = 0; i < count; i++) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        add_file(corpus, name);
        free(entries[i]);
    }
    free(entries);
}

/* ---- mutations ---- */

/* Below `bound`, which is at least 1. */
static size_t draw(struct ph__rng_sequence *random, size_t bound)
{
    return (size_t)ph__rng_below(random, bound);
}

/* Puts `count` bytes of `from` into the input at `at`, as far as there is room. */
static void insert(struct input *input, size_t at, const uint8_t *from, size_t count)
{
    if (count > MAX_INPUT_BYTES - input->size)
        count = MAX_INPUT_BYTES - input->size;
    memmove(input->bytes + at + count, input->bytes + at, input->size - at);
    memcpy(input->bytes + at, from, count);
    input->size += count;
}

static void erase(struct input *input, size_t at, size_t count)
{
    memmove(input->bytes + at, input->bytes + at + count, input->size - at - count);
    input->size -= count;
}

static void mutate(struct input *input, const struct corpus *corpus, struct ph__rng_sequence *random)
{
    static const uint8_t odd[] = {0, 0x7f, 0x80, 0xff, '\n', '\r', '"', '\\', ',', '\t', '-', '9'};
    const struct input *other = &corpus->inputs[draw(random, corpus->num_inputs)];
    const size_t at = draw(random, input->size + 1), left = input->size - at;
    uint8_t byte = odd[draw(random, sizeof odd)];
    switch (draw(random, 6)) {
    case 0: /* a bit */
        if (left > 0)
            input->bytes[at] ^= (uint8_t)(1u << draw(random, 8));
        break;
    case 1:
        if (left > 0)
            input->bytes[at] = byte;
        break;
    case 2:
        insert(input, at, &byte, 1);
        break;
    case 3:
        erase(input, at, draw(random, left + 1));
        break;
    case 4:
        erase(input, at, left < 8 ? left : draw(random, 8));
        break;
    default: { /* a piece of another file */
        const size_t from = draw(random, other->size + 1);
        insert(input, at, other->bytes + from, draw(random, other->size - from + 1));
    }
    }
}

static void run_mutations(const struct corpus *corpus, size_t count)
{
    const char *seed = getenv("PH_TEST_SEED");
    static uint8_t bytes[MAX_INPUT_BYTES];
    struct ph__rng_sequence random = {.key.seed = seed != NULL ? strtoull(seed, NULL, 10) : DEFAULT_SEED};
    for (size_t i = 0; i < count; i++) {
        const struct input *parent = &corpus->inputs[draw(&random, corpus->num_inputs)];
        struct input input = {bytes, parent->size < MAX_INPUT_BYTES ? parent->size : MAX_INPUT_BYTES};
        memcpy(bytes, parent->bytes, input.size);
        for (size_t changes = 1 + draw(&random, 4); changes > 0; changes--)
            mutate(&input, corpus, &random);
        run(input.bytes, input.size);
    }
}

int main(int argc, char **argv)
{
    struct corpus corpus = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: %s MUTATIONS FINDING [FILE|FOLDER...]\n", argv[0]);
        return 2;
    }
    finding = argv[2];
    __sanitizer_set_death_callback(keep_finding);
    signal(SIGABRT, on_abort);
    for (int i = 3; i < argc; i++)
        add_path(&corpus, argv[i]);
    run((const uint8_t *)"", 0);
    for (size_t i = 0; i < corpus.num_inputs; i++)
        run(corpus.inputs[i].bytes, corpus.inputs[i].size);
    const size_t count = corpus.num_inputs > 0 ? strtoul(argv[1], NULL, 10) : 0;
    run_mutations(&corpus, count);
    printf("replay: %zu files and %zu mutations of them\n", corpus.num_inputs, count);
    for (size_t i = 0; i < corpus.num_inputs; i++)
        free(corpus.inputs[i].bytes);
    free(corpus.inputs);
    return 0;
}
