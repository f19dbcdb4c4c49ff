#include "unit/kernel/kernel_test.h"

#include "kernel/kernel_list.h"
#include "kernel/neighbour_list.h"

enum { NUM_NODES = 300, MOST_NEIGHBOURS = 90, LARGE = 3 * 577, LARGEST = 20011 };

static struct ph__neighbours random_graph(void)
{
    uint32_t *offsets = new_array(NUM_NODES + 1, sizeof *offsets);
    offsets[0] = 0;
    for (size_t node = 0; node < NUM_NODES; node++) {
        uint32_t d = random_word() % (MOST_NEIGHBOURS + 1);
        d = node % 7 == 3 ? 0 : node == 40 ? LARGE : node == 42 ? LARGEST : d;
        offsets[node + 1] = offsets[node] + d;
    }
    const size_t num_items = offsets[NUM_NODES];
    int64_t *ids = new_array(num_items, sizeof *ids);
    for (size_t i = 0; i < num_items; i++)
        ids[i] = random_word() % NUM_NODES;
    return (struct ph__neighbours){.offsets = offsets, .ids = ids, .num_nodes = NUM_NODES};
}

/* A list with room for what the nodes have at least, or for as much more as other blocks may have left. */
static struct ph__neighbour_list new_list(
    const struct ph__neighbours *neighbours, size_t first, size_t last, size_t more)
{
    const size_t num_slots = neighbours->offsets[last] - neighbours->offsets[first] + more;
    return (struct ph__neighbour_list){.offsets = new_array(last - first + 1, sizeof(uint32_t)),
        .slots = new_array(num_slots, sizeof(uint32_t)),
        .num_slots = num_slots,
        .weights = ph__has_list_weights(neighbours) ? new_array(num_slots, sizeof(ph_real)) : (ph_real *)NULL,
        .scales = new_array(last - first, sizeof(ph_real))};
}

static void compare(const struct ph__kernels *kernels, const struct ph__neighbours *neighbours, size_t first,
    size_t last, size_t more)
{
    const size_t num_kept = num_arrays;
    const struct ph__neighbour_list list = new_list(neighbours, first, last, more);
    const struct ph__neighbour_list expected = new_list(neighbours, first, last, 0);
    assert_true(kernels->list_neighbours(neighbours, first, last, &list));
    assert_true(ph__list_neighbours_ref(neighbours, first, last, &expected));
    assert_memory_equal(list.offsets, expected.offsets, (last - first + 1) * sizeof *list.offsets);
    assert_memory_equal(list.scales, expected.scales, (last - first) * sizeof *list.scales);
    const size_t used = list.offsets[last - first];
    assert_memory_equal(list.slots, expected.slots, used * sizeof *list.slots);
    if (list.weights != NULL)
        assert_memory_equal(list.weights, expected.weights, used * sizeof *list.weights);
    while (num_arrays > num_kept)
        free(arrays[--num_arrays]);
}

static void try_sampling(
    const struct ph__kernels *kernels, struct ph__neighbours neighbours, const struct ph_sampling *sampling)
{
    static const size_t blocks[][2] = {{0, NUM_NODES}, {5, 5}, {17, 18}, {38, 45}, {290, NUM_NODES}};
    neighbours.sampling = *sampling;
    for (size_t i = 0; i < 15; i++) {
        const size_t *block = blocks[i % 5];
        neighbours.normalisation = (enum ph_normalisation)(i / 5);
        neighbours.bias = neighbours.normalisation == PH_NORMALISE_MEAN;
        compare(kernels, &neighbours, block[0], block[1], i % 2 * 40);
    }
}

static void check_strategies(const struct ph__kernels *kernels)
{
    struct ph__neighbours neighbours = random_graph();
    const ph_real *const weights = random_floats(neighbours.offsets[NUM_NODES], -1, 1);
    neighbours.roots = random_floats(NUM_NODES, 0, 1);
    static const size_t widths[] = {0, 1, 4, 7, 16, 33, 577, 7000};
    for (size_t i = 0; i < 16; i++) {
        neighbours.weights = i % 2 == 1 ? weights : NULL;
        for (int strategy = PH_SAMPLING_BUCKET; strategy <= PH_SAMPLING_EVEN; strategy++) {
            const bool is_rate = strategy == PH_SAMPLING_RATE;
            try_sampling(kernels, neighbours,
                &(struct ph_sampling){.width = is_rate ? 0 : widths[i / 2],
                    .rate = is_rate ? (double)(i / 2 + 1) / 8 : 0,
                    .strategy = (enum ph_sampling_strategy)strategy,
                    .seed = (uint32_t)i});
        }
    }
}

static void lists_are_those_of_the_specification(void **state)
{
    (void)state;
    on_every_isa(check_strategies);
}

/* With strides of 769, node 40 chooses its place 769 of 3 * 577, but not the last one. */
static void check_bad_ids(const struct ph__kernels *kernels)
{
    static const int64_t bad[] = {NUM_NODES, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32, (int64_t)1 << 40};
    struct ph__neighbours neighbours = random_graph();
    const struct ph_sampling strides = {.width = 8, .strategy = PH_SAMPLING_STRIDE, .seed = 1}, all = {0};
    const struct ph__neighbour_list list = new_list(&neighbours, 0, NUM_NODES, 0);
    int64_t *chosen = (int64_t *)(uintptr_t)neighbours.ids + neighbours.offsets[40] + 769;
    int64_t *left_out = (int64_t *)(uintptr_t)neighbours.ids + neighbours.offsets[41] - 1;
    for (size_t i = 0; i < 2 * (sizeof bad / sizeof *bad); i++) {
        int64_t *id = i % 2 == 0 ? chosen : left_out;
        const int64_t former = *id;
        *id = bad[i / 2];
        neighbours.sampling = strides;
        assert_int_equal(kernels->list_neighbours(&neighbours, 0, NUM_NODES, &list), id == left_out);
        neighbours.sampling = all;
        assert_false(kernels->list_neighbours(&neighbours, 0, NUM_NODES, &list));
        *id = former;
    }
}

static void an_id_that_is_not_a_node_is_found_where_it_is_chosen(void **state)
{
    (void)state;
    on_every_isa(check_bad_ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_those_of_the_specification),
        cmocka_unit_test(an_id_that_is_not_a_node_is_found_where_it_is_chosen),
    };
    return cmocka_run_group_tests(tests, reset_arrays, reset_arrays);
}
