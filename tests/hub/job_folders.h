/* The folders of two hubs that share a job's keys, and the parts of its checkpoints in them: as they are
 * found, and as a hub that was killed has left them. */
#ifndef PH_TEST_JOB_FOLDERS_H
#define PH_TEST_JOB_FOLDERS_H

#include "hub/kept_job.h"
#include "hub/several_hubs.h"
#include "hub/wire/part_list.h"

enum { NUM_HUBS = 2 };

struct folders {
    char paths[NUM_HUBS][300];
};

struct folders fresh_folders(void);
void folders_begin_hubs(struct several_hubs *hubs, struct kept_job *trial, const struct folders *folders);

/* The job up to this iteration, with a checkpoint of it. */
void folders_run_until(struct kept_job *trial, const struct folders *folders, uint64_t iteration);
/* It does not begin; both hubs are named where `part` is NULL. */
void folders_fail(struct kept_job *trial, const struct folders *folders, ph_status status, const char *part);

/* ---- parts, by hub; the iteration PH_NO_ITERATION stands for the settings alone ---- */

bool folder_has_open(const char *folder, uint64_t iteration);
bool folder_has_kept(const char *folder, uint64_t iteration);
ph_status folder_count_files(const char *folder, size_t *count_out); /* any thread */

/* Parts of iterations 5 and 9 of a job, and its settings, of both hubs, set aside. */
struct folders parts_set_aside(const struct kept_job *like);
void put_kept(const struct folders *aside, struct folders *folders, uint32_t hub, uint64_t iteration);
void put_open(const struct folders *aside, struct folders *folders, uint32_t hub, uint64_t iteration);

#endif
