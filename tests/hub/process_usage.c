/* See process_usage.h. */
#include "hub/process_usage.h"

#include <dirent.h>
#include <stdio.h>

#include "support/test_support.h"

/* ---- a process ---- */

static FILE *open_file(pid_t id, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)id, name);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        fail_msg("cannot open %s", path);
    return file;
}

static size_t count_entries(pid_t id, const char *name)
{
    char path[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)id, name);
    DIR *folder = opendir(path);
    if (folder == NULL)
        fail_msg("cannot open %s", path);
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

static size_t count_lines(pid_t id, const char *name)
{
    FILE *file = open_file(id, name);
    size_t count = 0;
    for (int character; (character = getc(file)) != EOF;)
        count += character == '\n';
    fclose(file);
    return count;
}

static uint64_t read_bytes(pid_t id)
{
    static const char *const parts[] = {"Anonymous: %llu kB", "Swap: %llu kB", "Pss_Shmem: %llu kB"};
    FILE *file = open_file(id, "smaps_rollup");
    unsigned long long kilobytes, sum = 0;
    char line[256];
    while (fgets(line, sizeof line, file) != NULL) {
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            if (sscanf(line, parts[i], &kilobytes) == 1)
                sum += kilobytes;
        }
    }
    fclose(file);
    assert_true(sum > 0);
    return sum * 1024;
}

void process_usage_read(pid_t id, struct process_usage *usage_out)
{
    *usage_out = (struct process_usage){.num_descriptors = count_entries(id, "fd"),
        .num_threads = count_entries(id, "task"),
        .num_mappings = count_lines(id, "maps"),
        .bytes = read_bytes(id)};
}

/* ---- growth ---- */

void usage_history_add(struct usage_history *history, const struct usage_sample *sample)
{
    if (history->num_added++ % (1ull << history->num_thinnings) != 0)
        return;
    if (history->count == MAX_USAGE_SAMPLES) {
        history->count /= 2;
        for (size_t i = 0; i < history->count; i++)
            history->samples[i] = history->samples[2 * i];
        history->num_thinnings++;
    }
    history->samples[history->count++] = *sample;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The jobs that there had been before the quarter, and the least of all else in it. */
static struct usage_sample least_of_quarter(const struct usage_history *history, size_t quarter)
{
    const size_t first = history->count * quarter / 4, end = history->count * (quarter + 1) / 4;
    struct usage_sample least = history->samples[first];
    for (size_t i = first + 1; i < end; i++) {
        const struct usage_sample *sample = &history->samples[i];
        least.num_mappings = least_of(least.num_mappings, sample->num_mappings);
        least.bytes = least_of(least.bytes, sample->bytes);
    }
    return least;
}

static void check_growth(
    const char *process, const char *what, uint64_t before, uint64_t after, uint64_t jobs, uint64_t limit)
{
    print_message("%s: %s: %llu, and %llu after %llu more jobs (up to %llu more is nothing)\n", process, what,
        (unsigned long long)before, (unsigned long long)after, (unsigned long long)jobs,
        (unsigned long long)limit);
    if (after > before + limit)
        fail_msg("the %s of %s grow with its jobs", what, process);
}

void usage_history_check(
    const struct usage_history *history, const char *process, const struct usage_limits *limits)
{
    assert_true(history->count >= MIN_USAGE_SAMPLES);
    const struct usage_sample before = least_of_quarter(history, 1), after = least_of_quarter(history, 3);
    const uint64_t jobs = after.num_jobs - before.num_jobs;
    check_growth(process, "mappings", before.num_mappings, after.num_mappings, jobs,
        limits->mappings + jobs / limits->jobs_per_mapping);
    check_growth(
        process, "bytes", before.bytes, after.bytes, jobs, limits->bytes + jobs * limits->bytes_per_job);
}
