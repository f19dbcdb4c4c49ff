#include "recipe_choice.h"

#include <stdio.h>

#include "figures.h"
#include "train/probe/sites.h"

static enum ph_recipe choose(const struct ph_site *site, const struct ph_backend *backend,
    const struct ph__site_wish *wish, bool is_backward)
{
    struct ph__site timed = {.weight = site->weight,
        .is_backward = is_backward,
        .out_features = site->out_features,
        .in_features = site->in_features};
    bench_check(ph__site_time(&timed, backend, wish));
    ph__site_choose(&timed, wish->threshold, wish);
    return timed.recipe;
}

void recipe_choice_make(struct recipe_choice *choice, const struct ph_program *program, size_t threads,
    size_t rows, bool is_training)
{
    const struct ph__site_wish wish = {.threshold = 1, .speed_up = 1.05, .rows = rows, .backward_rows = rows};
    const struct ph_backend_options options = {.size = sizeof options, .num_threads = threads};
    struct ph_backend *backend = NULL;
    bench_check(ph_backend_create(&options, &backend));
    choice->count = ph_program_num_sites(program);
    if (choice->count > BENCH_MOST_SITES)
        bench_check(ph_fail(PH_ERROR_BUG, "the model has %zu products", choice->count));
    for (size_t i = 0; i < choice->count; i++) {
        const struct ph_site site = ph_program_site(program, i);
        choice->recipes[i] = (struct ph_site_recipe){site.weight, choose(&site, backend, &wish, false),
            is_training ? choose(&site, backend, &wish, true) : PH_RECIPE_FP32};
    }
    ph_backend_destroy(backend);
}

void recipe_choice_print(const struct recipe_choice *choice)
{
    for (size_t i = 0; i < choice->count; i++)
        if (choice->recipes[i].forward != PH_RECIPE_FP32 || choice->recipes[i].backward != PH_RECIPE_FP32)
            printf("   %-24s %s/%s\n", choice->recipes[i].weight, ph_recipe_name(choice->recipes[i].forward),
                ph_recipe_name(choice->recipes[i].backward));
}
