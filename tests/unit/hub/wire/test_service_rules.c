/* What a service may be: see hub/wire/protocol.h. */
#include "support/test_support.h"

#include <math.h>
#include <string.h>

#include "hub/wire/protocol.h"

static struct ph_hub_service service_with(const struct ph_hub_optimizer *optimizer)
{
    return (struct ph_hub_service){.size = sizeof(struct ph_hub_service),
        .name = "ruled",
        .num_workers = 2,
        .optimizers = optimizer,
        .num_optimizers = optimizer != NULL ? 1 : 0};
}

static void refused(struct ph_hub_optimizer optimizer, const char *text)
{
    const struct ph_hub_service service = service_with(&optimizer);
    assert_fails(ph__service_check(&service), PH_ERROR_USAGE, text);
}

static const struct ph_hub_optimizer adam = {.rule.kind = PH_ADAM,
    .learning_rate = .1F,
    .rule.beta1 = .9F,
    .rule.beta2 = .999F,
    .rule.epsilon = 1e-8F};

static void numbers_that_cannot_be_are_named(void **state)
{
    (void)state;
    struct ph_hub_optimizer wrong = adam;
    wrong.rule.beta1 = 1;
    refused(wrong, "service 'ruled': optimizer 0: beta1 is 1; it must be at least 0 and below 1");
    wrong = adam;
    wrong.rule.beta2 = -.5F;
    refused(wrong, "beta2 is -0.5;");
    wrong = adam;
    wrong.rule.epsilon = 0; /* 0 / 0 for elements without a gradient */
    refused(wrong, "epsilon is 0; it must be a finite number above 0");
    wrong = adam;
    wrong.learning_rate = NAN;
    refused(wrong, "learning_rate is nan; it must be a finite number");
    wrong.rule.kind = PH_SGD;
    wrong.learning_rate = 1;
    wrong.l2 = INFINITY;
    refused(wrong, "l2 is inf;");
    refused((struct ph_hub_optimizer){.rule.kind = PH_ADAGRAD, .learning_rate = 1}, "epsilon is 0;");
    refused((struct ph_hub_optimizer){.rule.kind = PH_MOMENTUM, .rule.momentum = NAN}, "momentum is nan;");
    refused((struct ph_hub_optimizer){.rule.kind = PH_ROWWISE_ADAGRAD, .rule.epsilon = 1},
        "of a kind that the hub does not support");
}

static void a_service_names_its_optimizers(void **state)
{
    (void)state;
    struct ph_hub_service service = service_with(NULL);
    assert_fails(ph__service_check(&service), PH_ERROR_USAGE, "num_optimizers is 0; it must be 1 to 16");
    service.num_optimizers = 1;
    assert_fails(ph__service_check(&service), PH_ERROR_USAGE, "optimizers is NULL");
}

static void copies(struct ph_hub_optimizer optimizer, const struct ph_hub_optimizer *wanted)
{
    static struct ph__service_settings settings;
    const struct ph_hub_service service = service_with(&optimizer);
    assert_ok(ph__service_check(&service));
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    const struct ph_hub_optimizer *copy = settings.service.optimizers;
    assert_int_equal(copy->is_none, wanted->is_none);
    assert_int_equal(copy->rule.kind, wanted->rule.kind);
    assert_int_equal(copy->rule.is_nesterov, wanted->rule.is_nesterov);
    const double found[] = {copy->learning_rate, copy->rule.momentum, copy->rule.beta1, copy->rule.beta2,
        copy->rule.epsilon, copy->l2, copy->rule.weight_decay};
    const double numbers[] = {wanted->learning_rate, wanted->rule.momentum, wanted->rule.beta1,
        wanted->rule.beta2, wanted->rule.epsilon, wanted->l2, wanted->rule.weight_decay};
    assert_memory_equal(found, numbers, sizeof numbers);
}

static struct ph_hub_optimizer full(enum ph_optimizer_kind kind)
{
    return (struct ph_hub_optimizer){.rule.kind = kind,
        .rule.is_nesterov = true,
        .learning_rate = .5F,
        .rule.momentum = .25F,
        .rule.beta1 = .125F,
        .rule.beta2 = .0625F,
        .rule.epsilon = 2,
        .l2 = 3,
        .rule.weight_decay = 4};
}

/* Also what could be no number: nobody looks at it. */
static void what_a_kind_does_not_use_is_ignored(void **state)
{
    (void)state;
    struct ph_hub_optimizer odd = full(PH_SGD);
    odd.rule.momentum = odd.rule.beta1 = odd.rule.beta2 = odd.rule.epsilon = odd.rule.weight_decay = NAN;
    copies(odd, &(struct ph_hub_optimizer){.rule.kind = PH_SGD, .learning_rate = .5F, .l2 = 3});
    odd.is_none = true;
    copies(odd, &(struct ph_hub_optimizer){.is_none = true});
    copies(full(PH_MOMENTUM), &(struct ph_hub_optimizer){.rule.kind = PH_MOMENTUM,
                                  .rule.is_nesterov = true,
                                  .learning_rate = .5F,
                                  .rule.momentum = .25F,
                                  .l2 = 3});
    copies(full(PH_ADAGRAD), &(struct ph_hub_optimizer){
                                 .rule.kind = PH_ADAGRAD, .learning_rate = .5F, .rule.epsilon = 2, .l2 = 3});
    copies(full(PH_ADAM), &(struct ph_hub_optimizer){.rule.kind = PH_ADAM,
                              .learning_rate = .5F,
                              .rule.beta1 = .125F,
                              .rule.beta2 = .0625F,
                              .rule.epsilon = 2,
                              .l2 = 3});
    copies(full(PH_ADAMW), &(struct ph_hub_optimizer){.rule.kind = PH_ADAMW,
                               .learning_rate = .5F,
                               .rule.beta1 = .125F,
                               .rule.beta2 = .0625F,
                               .rule.epsilon = 2,
                               .l2 = 3,
                               .rule.weight_decay = 4});
}

static void staleness_counts_where_it_is_bounded(void **state)
{
    (void)state;
    static struct ph__service_settings settings;
    struct ph_hub_service service = service_with(&adam);
    service.staleness = 3;
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_int_equal(settings.service.staleness, 0);
    service.mode = PH_HUB_BOUNDED;
    ph__service_copy(&service, &(struct ph__hub_share){.num_hubs = 1}, &settings);
    assert_int_equal(settings.service.staleness, 3);
}

static void a_service_is_the_same_in_the_same_share_alone(void **state)
{
    (void)state;
    static struct ph__service_settings first, second;
    const struct ph__hub_share share = {.num_hubs = 2}, other_share = {.hub = 1, .num_hubs = 2};
    struct ph_hub_optimizer odd = full(PH_SGD);
    struct ph_hub_service service = service_with(&odd);
    ph__service_copy(&service, &share, &first);
    odd.rule.momentum = NAN; /* which makes no difference */
    ph__service_copy(&service, &share, &second);
    assert_true(ph__service_is_same(&first, &second));
    ph__service_copy(&service, &other_share, &second);
    assert_false(ph__service_is_same(&first, &second));
    service.checkpoint_every++;
    ph__service_copy(&service, &share, &second);
    assert_false(ph__service_is_same(&first, &second));
    service.checkpoint_every--;
    odd.l2 = 4;
    ph__service_copy(&service, &share, &second);
    assert_false(ph__service_is_same(&first, &second));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_cannot_be_are_named),
        cmocka_unit_test(a_service_names_its_optimizers),
        cmocka_unit_test(what_a_kind_does_not_use_is_ignored),
        cmocka_unit_test(a_service_is_the_same_in_the_same_share_alone),
        cmocka_unit_test(staleness_counts_where_it_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
