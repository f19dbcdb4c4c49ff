/* See job_folders.h. */
#include "hub/job_folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/directory.h"
#include "base/file/file.h"
#include "hub/keep/job_checkpoint.h"
#include "support/test_support.h"

struct folders fresh_folders(void)
{
    struct folders folders;
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        snprintf(folders.paths[i], sizeof folders.paths[i], "%s", test_fresh_folder());
    return folders;
}

void folders_begin_hubs(struct several_hubs *hubs, struct kept_job *trial, const struct folders *folders)
{
    struct ph_hub_server_options options[NUM_HUBS] = {0};
    for (uint32_t i = 0; i < NUM_HUBS; i++)
        options[i].checkpoint_folder = folders->paths[i];
    several_hubs_begin(hubs, NUM_HUBS, options);
    trial->hub = &hubs->all;
}

void folders_run_until(struct kept_job *trial, const struct folders *folders, uint64_t iteration)
{
    struct several_hubs hubs;
    folders_begin_hubs(&hubs, trial, folders);
    trial->stop_at = iteration;
    trial->is_saved = true;
    assert_ok(kept_job_run(trial));
    several_hubs_end(&hubs);
}

void folders_fail(struct kept_job *trial, const struct folders *folders, ph_status status, const char *part)
{
    struct several_hubs hubs;
    folders_begin_hubs(&hubs, trial, folders);
    assert_fails(kept_job_run(trial), status, part != NULL ? part : hubs.hubs[0].options.address);
    if (part == NULL)
        assert_non_null(strstr(ph_error_text(), hubs.hubs[1].options.address));
    several_hubs_end(&hubs);
}

/* ---- parts ---- */

static const char *open_path(const char *folder, uint64_t iteration)
{
    static char path[4096];
    char *part;
    assert_ok(ph__job_part_path(kept_job_file(folder), iteration, &part));
    snprintf(path, sizeof path, "%s", part);
    free(part);
    return path;
}

bool folder_has_open(const char *folder, uint64_t iteration)
{
    return ph__file_exists(open_path(folder, iteration));
}

bool folder_has_kept(const char *folder, uint64_t iteration)
{
    struct ph__job_checkpoint_head head;
    if (!ph__file_exists(kept_job_file(folder)))
        return false;
    assert_ok(ph__job_checkpoint_read_head(kept_job_file(folder), &head));
    return head.num_keys > 0 ? head.iteration == iteration : iteration == PH_NO_ITERATION;
}

static ph_status count_one(void *count, const char *name)
{
    const size_t used = strlen(name);
    const bool is_temporary = used > 4 && strcmp(name + used - 4, ".tmp") == 0;
    *(size_t *)count += !is_temporary && strstr(name, PH_CHECKPOINT_ENDING) != NULL;
    return PH_OK;
}

ph_status folder_count_files(const char *folder, size_t *count_out)
{
    *count_out = 0;
    return ph__directory_visit(folder, count_one, count_out);
}

static void link_file(const char *from, const char *to)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", from);
    assert_ok(ph__file_link(copy, to));
}

/* Wherever it is. As an open part of the folder `aside`. */
static void set_aside(const char *folder, const char *aside, uint64_t iteration)
{
    char to[4096];
    snprintf(to, sizeof to, "%s", open_path(aside, iteration));
    link_file(folder_has_kept(folder, iteration) ? kept_job_file(folder) : open_path(folder, iteration), to);
}

static void create_alone(const struct kept_job *trial)
{
    struct ph_hub_service service = trial->service;
    service.optimizers = &trial->optimizer;
    service.num_optimizers = 1;
    assert_ok(ph_hub_create_service(&trial->hub->options, &service));
}

struct folders parts_set_aside(const struct kept_job *like)
{
    struct kept_job trial = *like;
    struct several_hubs hubs;
    const struct folders folders = fresh_folders(), aside = fresh_folders();
    folders_begin_hubs(&hubs, &trial, &folders);
    create_alone(&trial);
    several_hubs_end(&hubs);
    for (uint32_t hub = 0; hub < NUM_HUBS; hub++) {
        char to[4096];
        snprintf(to, sizeof to, "%s", kept_job_file(aside.paths[hub]));
        link_file(kept_job_file(folders.paths[hub]), to);
    }
    for (uint64_t iteration = 5; iteration <= 9; iteration += 4) {
        folders_run_until(&trial, &folders, iteration);
        for (uint32_t hub = 0; hub < NUM_HUBS; hub++)
            set_aside(folders.paths[hub], aside.paths[hub], iteration);
    }
    return aside;
}

static const char *part_aside(const struct folders *aside, uint32_t hub, uint64_t iteration)
{
    return iteration == PH_NO_ITERATION ? kept_job_file(aside->paths[hub])
                                        : open_path(aside->paths[hub], iteration);
}

void put_kept(const struct folders *aside, struct folders *folders, uint32_t hub, uint64_t iteration)
{
    char from[4096];
    snprintf(from, sizeof from, "%s", part_aside(aside, hub, iteration));
    link_file(from, kept_job_file(folders->paths[hub]));
}

void put_open(const struct folders *aside, struct folders *folders, uint32_t hub, uint64_t iteration)
{
    char from[4096];
    snprintf(from, sizeof from, "%s", part_aside(aside, hub, iteration));
    link_file(from, open_path(folders->paths[hub], iteration));
}
