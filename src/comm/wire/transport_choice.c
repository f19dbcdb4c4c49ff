/* Chooses the transport: see transport_open.h. */
#include "comm/wire/transport_open.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/number.h"

/* Tried in this order, since one launcher may run inside of another, or speak several protocols. Hydra, which
 * numbers the processes of a host itself, and srun both speak PMI. */
static const struct {
    const char *present, *count; /* variables: set in each process; the number of processes */
    const char *places[2];       /* number the processes of a host from 0; the first that is set counts */
    const char *transport;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_LOCAL_RANK", NULL}, "openmpi"},
    {"PMI_RANK", "PMI_SIZE", {"MPI_LOCALRANKID", "SLURM_LOCALID"}, "mpich"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", {"SLURM_LOCALID", NULL}, "openmpi"},
};

/* Launchers that start processes without telling them how to meet. */
static const struct {
    const char *count;
    const char *places[2]; /* as in launchers */
    const char *instead;
} strangers[] = {
    {"SLURM_STEP_NUM_TASKS", {"SLURM_LOCALID", NULL},
        "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)"},
    {"LOCAL_WORLD_SIZE", {"LOCAL_RANK", NULL}, "mpirun"},
};

static const char *const transports[] = {"self", "openmpi", "mpich"};

/* Returns 0 when the variable is not set, or not a positive number. */
static size_t read_count(const char *variable)
{
    int64_t count = 0;
    const char *text = getenv(variable);
    return text != NULL && ph__integer_parse(text, &count) && count > 0 ? (size_t)count : 0;
}

static ph_status find_transport(const char *wanted, const char *said_by, const char **name_out)
{
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        if (strcmp(transports[i], wanted) == 0) {
            *name_out = transports[i];
            return PH_OK;
        }
    return ph_fail(PH_ERROR_USAGE, "%s must be auto, self, openmpi or mpich, not '%s'", said_by, wanted);
}

/* Returns the transport of the launcher that started this process; NULL when no known one did. */
static const char *find_launched(struct ph__transport_choice *choice)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].present) != NULL) {
            choice->num_ranks = read_count(launchers[i].count);
            choice->counted_by = choice->num_ranks > 0 ? launchers[i].count : NULL;
            return choice->num_ranks == 1 ? "self" : launchers[i].transport;
        }
    return NULL;
}

static ph_status refuse_strangers(void)
{
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        const size_t count = read_count(strangers[i].count);
        if (count > 1)
            return ph_fail(PH_ERROR_USAGE,
                "%s=%zu: several processes were started without MPI: use %s, or PHLOEM_MPI=self for "
                "independent runs",
                strangers[i].count, count, strangers[i].instead);
    }
    return PH_OK;
}

static bool is_automatic(const char *wanted)
{
    return wanted == NULL || strcmp(wanted, "auto") == 0;
}

ph_status ph__transport_choose(const char *wanted, struct ph__transport_choice *choice_out)
{
    struct ph__transport_choice choice = {0};
    const char *launched = find_launched(&choice), *named = getenv("PHLOEM_MPI");
    if (!is_automatic(wanted)) {
        PH_TRY(find_transport(wanted, "transport", &choice.name));
    } else if (!is_automatic(named)) {
        PH_TRY(find_transport(named, "PHLOEM_MPI", &choice.name));
    } else if (launched != NULL) {
        choice.name = launched;
    } else {
        PH_TRY(refuse_strangers());
        choice.name = "self";
    }
    *choice_out = choice;
    return PH_OK;
}

/* Returns true also when nothing numbers the host's processes: an error reported several times is better than
 * one not reported. */
static bool is_first_place(const char *const places[2])
{
    const char *place = getenv(places[0]) != NULL ? places[0] : places[1];
    return place == NULL || read_count(place) == 0;
}

bool ph__transport_is_first_of_host(void)
{
    const char *named = getenv("PHLOEM_MPI");
    if (named != NULL && strcmp(named, "self") == 0)
        return true;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++)
        if (getenv(launchers[i].present) != NULL)
            return is_first_place(launchers[i].places);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        if (read_count(strangers[i].count) > 1)
            return is_first_place(strangers[i].places);
    return true;
}
