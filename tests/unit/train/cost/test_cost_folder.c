/* Learnt costs come back from a folder to the bit, and only where they were learnt. */
#include "train/cost/cost_folder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/test_support.h"

static struct ph__cost_facts save(const char *folder, const char *processor, const char *isa)
{
    struct ph__cost_nets *nets;
    struct ph__cost_facts facts = {.labels = 7, .mape = .03, .tau = .9, .repeat_error = .02};
    assert_ok(ph__cost_nets_create(test_seed(), 512, &nets));
    assert_ok(ph__cost_facts_here(&facts));
    if (processor != NULL)
        snprintf(facts.processor, sizeof facts.processor, "%s", processor);
    if (isa != NULL)
        snprintf(facts.isa, sizeof facts.isa, "%s", isa);
    nets->lookup_share = .375;
    assert_ok(ph__cost_save(nets, folder, &facts));
    ph__cost_nets_destroy(nets);
    return facts;
}

static void price(struct ph__cost_nets *nets, double ms_out[3])
{
    const struct ph__cost_model model = ph__cost_nets_model(nets);
    const struct ph__cost_part part = {16, 1000, 2, 1e5, NULL};
    const struct ph__topology topology = {2, 1};
    float set[PH_COST_MOST_WIDTH];
    assert_ok(model.describe(model.context, &part, 1, set));
    assert_ok(model.compute(model.context, set, 1, ms_out));
    assert_ok(model.exchange(
        model.context, PH_EXCHANGE_FORWARD, &topology, (double[]){16, 4}, (double[]){0, 1}, ms_out + 1));
}

static void loaded_costs_give_the_same_bits(void **state)
{
    (void)state;
    struct ph__cost_nets *before, *after;
    struct ph__cost_facts facts;
    double ms[2][3];
    const char *folder = test_path("costs");
    const struct ph__cost_facts saved = save(folder, NULL, NULL);
    assert_ok(ph__cost_nets_create(test_seed(), 512, &before));
    assert_ok(ph__cost_load(folder, false, &after, &facts));
    price(before, ms[0]);
    price(after, ms[1]);
    assert_memory_equal(ms[0], ms[1], sizeof ms[0]);
    assert_int_equal(facts.batch_size, 512);
    assert_true(ph__cost_nets_model(after).lookup_share == .375);
    assert_int_equal(facts.labels, 7);
    assert_true(facts.mape == .03 && facts.tau == .9 && facts.repeat_error == .02);
    assert_string_equal(facts.date, saved.date);
    ph__cost_nets_destroy(before);
    ph__cost_nets_destroy(after);
}

static void costs_of_another_machine_are_refused_unless_asked_for(void **state)
{
    (void)state;
    struct ph__cost_nets *nets;
    const char *other = test_path("other"), *isa = test_path("isa");
    save(other, "Abacus 3000", NULL);
    save(isa, NULL, "beads");
    assert_fails(ph__cost_load(other, false, &nets, NULL), PH_ERROR_CONFIG, "learnt on 'Abacus 3000'");
    assert_fails(ph__cost_load(isa, false, &nets, NULL), PH_ERROR_CONFIG, "give --foreign-cost");
    assert_ok(ph__cost_load(other, true, &nets, NULL));
    ph__cost_nets_destroy(nets);
}

static void missing_and_damaged_files_are_named(void **state)
{
    (void)state;
    struct ph__cost_nets *nets;
    char path[512];
    const char *folder = test_path("damaged");
    assert_fails(ph__cost_load(folder, true, &nets, NULL), PH_ERROR_CHECKPOINT, "cost.json");
    save(folder, NULL, NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    test_write_text(path, "no tensors");
    assert_fails(ph__cost_load(folder, true, &nets, NULL), PH_ERROR_CHECKPOINT, "model.safetensors");
    unlink(path);
    assert_fails(ph__cost_load(folder, true, &nets, NULL), PH_ERROR_CHECKPOINT, "model.safetensors");
    snprintf(path, sizeof path, "%s/cost.json", folder);
    test_write_text(path, "{\"version\": 1, \"machine\": \"here\"}");
    assert_fails(ph__cost_load(folder, true, &nets, NULL), PH_ERROR_CHECKPOINT, "'processor' is missing");
    test_write_text(path, "{\"version\": 9}");
    assert_fails(ph__cost_load(folder, true, &nets, NULL), PH_ERROR_CHECKPOINT, "version 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded_costs_give_the_same_bits),
        cmocka_unit_test(costs_of_another_machine_are_refused_unless_asked_for),
        cmocka_unit_test(missing_and_damaged_files_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
