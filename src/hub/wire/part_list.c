/* Lists parts, decides which to keep, and reads and writes their frames; see part_list.h. */
#include "hub/wire/part_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "hub/wire/protocol.h"

#define MAX_SLACK (1u << 20)
#define SLACK_PART 64 /* share of slack taken off at a time: it doubles far sooner than it halves */
#define LEFT_OUT ", ..."

/* ---- lists ---- */

bool ph__parts_has(const struct ph__parts *parts, uint64_t iteration)
{
    bool is_there = parts->kept == iteration;
    for (size_t i = 0; i < parts->num_open; i++)
        is_there |= parts->open[i] == iteration;
    return is_there && iteration != PH_NO_ITERATION;
}

void ph__parts_add(struct ph__parts *parts, uint64_t iteration)
{
    size_t at = parts->num_open;
    if (ph__parts_has(parts, iteration) || parts->num_open == PH_HUB_MAX_OPEN_PARTS)
        return;
    for (; at > 0 && parts->open[at - 1] > iteration; at--)
        parts->open[at] = parts->open[at - 1];
    parts->open[at] = iteration;
    parts->num_open++;
}

void ph__parts_keep(struct ph__parts *parts, uint64_t iteration, uint64_t settled_end)
{
    size_t num_left = 0;
    if (ph__parts_has(parts, iteration))
        parts->kept = iteration;
    for (size_t i = 0; i < parts->num_open; i++) {
        if (parts->open[i] >= settled_end && parts->open[i] != parts->kept)
            parts->open[num_left++] = parts->open[i];
    }
    parts->num_open = num_left;
}

/* Appends an iteration. false: it does not fit together with LEFT_OUT. */
static bool append(char *text, uint64_t iteration)
{
    char more[sizeof "of iteration " + 20]; /* most digits */
    const size_t used = strlen(text);
    snprintf(more, sizeof more, "%s %" PRIu64, used > 0 ? "," : "of iteration", iteration);
    if (used + strlen(more) + sizeof LEFT_OUT > PH_PARTS_TEXT_BYTES)
        return false;
    strcpy(text + used, more);
    return true;
}

void ph__parts_describe(const struct ph__parts *parts, char text_out[PH_PARTS_TEXT_BYTES])
{
    bool has_room = true;
    text_out[0] = '\0';
    if (parts->kept != PH_NO_ITERATION)
        has_room = append(text_out, parts->kept);
    for (size_t i = 0; i < parts->num_open && has_room; i++)
        has_room = append(text_out, parts->open[i]);
    if (text_out[0] == '\0')
        strcpy(text_out, "none");
    else if (!has_room)
        strcat(text_out, LEFT_OUT);
}

/* ---- all hubs together ---- */

static bool have_all(const struct ph__saved *saved, size_t num_hubs, uint64_t iteration)
{
    bool have = true;
    for (size_t hub = 0; hub < num_hubs; hub++)
        have &= ph__parts_has(&saved[hub].parts, iteration);
    return have;
}

uint64_t ph__parts_newest_common(const struct ph__saved *saved, size_t num_hubs)
{
    const struct ph__parts *first = &saved[0].parts;
    uint64_t newest = have_all(saved, num_hubs, first->kept) ? first->kept : PH_NO_ITERATION;
    for (size_t i = 0; i < first->num_open; i++) {
        const bool is_newer = newest == PH_NO_ITERATION || first->open[i] > newest;
        if (is_newer && have_all(saved, num_hubs, first->open[i]))
            newest = first->open[i];
    }
    return newest;
}

static uint64_t find_next(const struct ph__saved *saved, size_t num_hubs, uint64_t slack)
{
    uint64_t most = 0;
    for (size_t hub = 0; hub < num_hubs; hub++)
        most = ph__max(most, saved[hub].most);
    return saved[0].every > 0 ? ph__round_up(most + slack, saved[0].every) : PH_NO_ITERATION;
}

/* Returns true if the hub has chunks, and so passes iterations. */
static bool has_chunks(const struct ph__saved *saved)
{
    return saved->settled_end != PH_NO_ITERATION;
}

static bool have_all_with_chunks(const struct ph__saved *saved, size_t num_hubs, uint64_t iteration)
{
    bool have = true;
    for (size_t hub = 0; hub < num_hubs; hub++)
        have &= !has_chunks(&saved[hub]) || ph__parts_has(&saved[hub].parts, iteration);
    return have;
}

/* Returns the oldest iteration of open parts that only hubs without chunks lack, or PH_NO_ITERATION. */
static uint64_t oldest_to_become_whole(const struct ph__saved *saved, size_t num_hubs, uint64_t newest_common)
{
    size_t hub = 0;
    while (hub + 1 < num_hubs && !has_chunks(&saved[hub]))
        hub++;
    const struct ph__parts *parts = &saved[hub].parts;
    for (size_t i = 0; i < parts->num_open; i++) {
        const bool is_newer = newest_common == PH_NO_ITERATION || parts->open[i] > newest_common;
        if (is_newer && have_all_with_chunks(saved, num_hubs, parts->open[i]))
            return parts->open[i];
    }
    return PH_NO_ITERATION;
}

static uint64_t find_settled_end(const struct ph__saved *saved, size_t num_hubs, uint64_t newest_common)
{
    uint64_t settled_end = PH_NO_ITERATION;
    bool is_full = false;
    for (size_t hub = 0; hub < num_hubs; hub++) {
        settled_end = ph__min(settled_end, saved[hub].settled_end);
        is_full |= saved[hub].parts.num_open == PH_HUB_MAX_OPEN_PARTS;
    }
    const uint64_t oldest = oldest_to_become_whole(saved, num_hubs, newest_common);
    if (oldest != PH_NO_ITERATION)
        settled_end = ph__min(settled_end, oldest + is_full);
    return newest_common == PH_NO_ITERATION ? settled_end : ph__max(settled_end, newest_common + 1);
}

static uint64_t adapt_slack(const struct ph__saved *saved, size_t num_hubs, uint64_t slack)
{
    bool is_late = false;
    for (size_t hub = 0; hub < num_hubs; hub++)
        is_late |= saved[hub].is_late;
    if (is_late)
        return ph__min(2 * slack, MAX_SLACK);
    return slack > 1 ? slack - ph__divide_up(slack - 1, SLACK_PART) : 1;
}

struct ph__keep ph__parts_decide(const struct ph__saved *saved, size_t num_hubs, uint64_t *slack)
{
    const uint64_t newest_common = ph__parts_newest_common(saved, num_hubs);
    *slack = adapt_slack(saved, num_hubs, *slack);
    return (struct ph__keep){.iteration = newest_common,
        .settled_end = find_settled_end(saved, num_hubs, newest_common),
        .next = find_next(saved, num_hubs, *slack)};
}

/* ---- in frames ---- */

static ph_status check_iteration(uint64_t iteration)
{
    if (iteration <= PH_HUB_MAX_ITERATION || iteration == PH_NO_ITERATION)
        return PH_OK;
    return ph_fail(PH_ERROR_PEER, "iteration %" PRIu64 " is out of range", iteration);
}

void ph__put_iteration(struct ph__wire_writer *writer, uint64_t iteration)
{
    ph__wire_put_u64(writer, iteration);
}

ph_status ph__get_iteration(const void *body, size_t size, uint64_t *iteration_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    *iteration_out = ph__wire_get_u64(&reader);
    PH_TRY(ph__body_finish(&reader, "iteration"));
    return check_iteration(*iteration_out);
}

void ph__put_parts(struct ph__wire_writer *writer, const struct ph__parts *parts)
{
    ph__wire_put_u64(writer, parts->kept);
    ph__wire_put_u8(writer, (uint8_t)parts->num_open);
    for (size_t i = 0; i < parts->num_open; i++)
        ph__wire_put_u64(writer, parts->open[i]);
}

static struct ph__parts read_parts(struct ph__wire_reader *reader)
{
    struct ph__parts parts = {.kept = ph__wire_get_u64(reader)};
    parts.num_open = ph__wire_get_u8(reader);
    for (size_t i = 0; i < parts.num_open && i < PH_HUB_MAX_OPEN_PARTS; i++)
        parts.open[i] = ph__wire_get_u64(reader);
    return parts;
}

static ph_status check_parts(const struct ph__parts *parts)
{
    PH_TRY(check_iteration(parts->kept));
    if (parts->num_open > PH_HUB_MAX_OPEN_PARTS)
        return ph_fail(PH_ERROR_PEER, "the hub reports %zu open parts of checkpoints, which are too many",
            parts->num_open);
    for (size_t i = 0; i < parts->num_open; i++) {
        if (parts->open[i] > PH_HUB_MAX_ITERATION || (i > 0 && parts->open[i] <= parts->open[i - 1]))
            return ph_fail(PH_ERROR_PEER, "the hub sent an invalid list of its parts");
    }
    return PH_OK;
}

ph_status ph__get_parts(const void *body, size_t size, struct ph__parts *parts_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    *parts_out = read_parts(&reader);
    PH_TRY(ph__body_finish(&reader, "parts"));
    return check_parts(parts_out);
}

void ph__put_saved(struct ph__wire_writer *writer, const struct ph__saved *saved)
{
    ph__put_parts(writer, &saved->parts);
    ph__wire_put_u64(writer, saved->most);
    ph__wire_put_u64(writer, saved->settled_end);
    ph__wire_put_u64(writer, saved->every);
    ph__wire_put_u8(writer, saved->is_late);
}

ph_status ph__get_saved(const void *body, size_t size, struct ph__saved *saved_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    saved_out->parts = read_parts(&reader);
    saved_out->most = ph__wire_get_u64(&reader);
    saved_out->settled_end = ph__wire_get_u64(&reader);
    saved_out->every = ph__wire_get_u64(&reader);
    saved_out->is_late = ph__wire_get_u8(&reader) != 0;
    PH_TRY(ph__body_finish(&reader, "saved"));
    PH_TRY(check_parts(&saved_out->parts));
    if (has_chunks(saved_out) && saved_out->settled_end > PH_HUB_MAX_ITERATION + 1) /* an exclusive end */
        return ph_fail(PH_ERROR_PEER,
            "the hub reports settled parts up to iteration %" PRIu64 ", which is out of range",
            saved_out->settled_end);
    if (saved_out->most > PH_HUB_MAX_ITERATION / 2 || saved_out->every > PH_HUB_MAX_PERIOD)
        return ph_fail(PH_ERROR_PEER,
            "the hub reports iteration %" PRIu64 ", with checkpoints every %" PRIu64 ": out of range",
            saved_out->most, saved_out->every);
    return PH_OK;
}

void ph__put_keep(struct ph__wire_writer *writer, const struct ph__keep *keep)
{
    ph__wire_put_u64(writer, keep->iteration);
    ph__wire_put_u64(writer, keep->settled_end);
    ph__wire_put_u64(writer, keep->next);
}

ph_status ph__get_keep(const void *body, size_t size, struct ph__keep *keep_out)
{
    struct ph__wire_reader reader;
    ph__wire_reader_init(&reader, body, size);
    keep_out->iteration = ph__wire_get_u64(&reader);
    keep_out->settled_end = ph__wire_get_u64(&reader);
    keep_out->next = ph__wire_get_u64(&reader);
    PH_TRY(ph__body_finish(&reader, "keep"));
    PH_TRY(check_iteration(keep_out->iteration));
    return check_iteration(keep_out->next);
}
