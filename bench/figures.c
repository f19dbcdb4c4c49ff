#include "figures.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_check(ph_status status)
{
    if (status == PH_OK)
        return;
    fprintf(stderr, "bench: %s\n", ph_error_text());
    exit(ph_status_exit_code(status));
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Returns the value below which `part` of the values lie, interpolated between neighbours. */
static double quantile(const double *values, size_t count, double part)
{
    double sorted[BENCH_MAX_ROUNDS];
    for (size_t i = 0; i < count; i++) {
        if (isnan(values[i]))
            return (double)NAN;
        sorted[i] = values[i];
    }
    qsort(sorted, count, sizeof *sorted, ascending);
    const double place = part * (double)(count - 1);
    const size_t below = (size_t)place, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (place - (double)below) * (sorted[above] - sorted[below]);
}

double bench_median(const double *values, size_t count)
{
    return quantile(values, count, 0.5);
}

double bench_spread(const double *values, size_t count)
{
    return (quantile(values, count, 0.75) - quantile(values, count, 0.25)) / bench_median(values, count);
}

static void set_if_told(struct ph__json *entry, const char *key, double number)
{
    if (number != 0)
        ph__json_set_number(entry, key, number);
}

static void set_text_if_told(struct ph__json *entry, const char *key, const char *text)
{
    if (text != NULL)
        ph__json_set_text(entry, key, text);
}

void bench_record(struct ph__json *figures, const struct bench_figure *figure)
{
    struct ph__json *entry = ph__json_object();
    ph__json_set_text(entry, "name", figure->name);
    ph__json_set_text(entry, "unit", figure->unit);
    ph__json_set_number(entry, "value", figure->value);
    ph__json_set_text(entry, "peer", figure->peer);
    ph__json_set_number(entry, "peer_value", figure->peer != NULL ? figure->peer_value : (double)NAN);
    ph__json_set_number(entry, "ratio", figure->peer != NULL ? figure->ratio : (double)NAN);
    ph__json_set_text(entry, "limit", figure->limit);
    ph__json_set_number(entry, "of_limit", figure->limit != NULL ? figure->of_limit : (double)NAN);
    ph__json_set_text(entry, "label", "measured");
    set_if_told(entry, "spread", figure->spread);
    set_text_if_told(entry, "placement", figure->placement);
    set_text_if_told(entry, "congestion", figure->congestion);
    if (figure->of_rounds > 0) {
        ph__json_set_integer(entry, "rounds", (int64_t)figure->rounds);
        ph__json_set_integer(entry, "of_rounds", (int64_t)figure->of_rounds);
    }
    if (figure->sweep != NULL) {
        ph__json_set_text(entry, "sweep", figure->sweep);
        ph__json_set_text(entry, "series", figure->series);
        ph__json_set_number(entry, "at", figure->at);
    }
    set_if_told(entry, "flops", figure->flops);
    set_if_told(entry, "bytes", figure->bytes);
    set_if_told(entry, "seconds", figure->seconds);
    set_text_if_told(entry, "of_step", figure->of_step);
    set_if_told(entry, "share", figure->share);
    ph__json_append(figures, entry);
}

void bench_finish(struct ph__json *figures, const char *path)
{
    if (ph__json_size(figures) == 0) {
        fprintf(stderr, "bench: nothing was measured: no case has that name\n");
        exit(2);
    }
    if (path != NULL)
        bench_check(ph__json_write(figures, path));
    ph__json_destroy(figures);
}

void bench_make_folder(const char *name, char *folder_out, size_t size)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder_out, size, "%s/%s-XXXXXX", parent != NULL && parent[0] != '\0' ? parent : "/tmp", name);
    if (mkdtemp(folder_out) == NULL)
        bench_check(ph_fail(PH_ERROR_DISK, "%s: cannot make a folder like %s", name, folder_out));
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    remove(path);
    return 0;
}

void bench_remove_folder(const char *folder)
{
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
