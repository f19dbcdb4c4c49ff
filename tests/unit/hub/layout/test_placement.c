#include "support/test_support.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/layout/placement.h"

/* ---- machines that are made up ---- */

enum { MOST_UNITS = 64, MOST_INTERFACES = 8 };

struct invented {
    struct ph__machine machine;
    struct ph__machine_unit units[MOST_UNITS];
    struct ph__machine_interface interfaces[MOST_INTERFACES];
};

/* Numbered as Linux does: first one unit of every core, node after node, then the cores' others. */
static void invent(
    struct invented *invented, uint32_t nodes, uint32_t cores_per_node, uint32_t units_per_core)
{
    *invented = (struct invented){.machine = {.units = invented->units, .interfaces = invented->interfaces}};
    const uint32_t num_cores = nodes * cores_per_node;
    for (uint32_t i = 0; i < num_cores * units_per_core; i++)
        invented->units[invented->machine.num_units++] = (struct ph__machine_unit){
            .processor = i, .core = i % num_cores, .node = i % num_cores / cores_per_node};
}

static void add_interface(struct invented *invented, const char *name, uint32_t node)
{
    struct ph__machine_interface *interface = &invented->interfaces[invented->machine.num_interfaces++];
    *interface = (struct ph__machine_interface){.node = node, .is_loopback = strcmp(name, "lo") == 0};
    snprintf(interface->name, sizeof interface->name, "%s", name);
    strcpy(interface->hosts[PH_IPV4], "192.0.2.1");
}

static struct ph__machine_interface *last_interface(struct invented *invented)
{
    return &invented->interfaces[invented->machine.num_interfaces - 1];
}

/* names: of those that are left to choose between, NULL-terminated. */
static void assert_choice(const struct invented *invented, bool has_ipv6, const char *const *names)
{
    struct invented chosen = *invented;
    chosen.machine.interfaces = chosen.interfaces;
    ph__machine_keep_choice(&chosen.machine, has_ipv6);
    size_t count = 0;
    for (; names[count] != NULL; count++) {
        assert_true(count < chosen.machine.num_interfaces);
        assert_string_equal(chosen.interfaces[count].name, names[count]);
    }
    assert_int_equal(chosen.machine.num_interfaces, count);
}

/* The units in which bit `processor` of the mask is set. */
static void restrict_to(struct invented *invented, uint64_t mask)
{
    size_t num_kept = 0;
    for (size_t i = 0; i < invented->machine.num_units; i++)
        if ((mask >> invented->units[i].processor & 1) != 0)
            invented->units[num_kept++] = invented->units[i];
    invented->machine.num_units = num_kept;
}

static void assert_processors(const struct invented *invented, size_t num_threads, const uint32_t *processors)
{
    struct ph__placement placement;
    assert_ok(ph__placement_plan(&invented->machine, num_threads, &placement));
    assert_true(placement.is_pinned);
    assert_int_equal(placement.num_threads, num_threads);
    for (size_t t = 0; t < num_threads; t++) {
        const struct ph__thread_place *place = &placement.threads[t];
        assert_int_equal(place->processor, processors[t]);
        for (size_t i = 0; i < invented->machine.num_units; i++)
            if (invented->units[i].processor == place->processor) {
                assert_int_equal(place->core, invented->units[i].core);
                assert_int_equal(place->node, invented->units[i].node);
            }
    }
    ph__placement_fini(&placement);
}

static void assert_interfaces(const struct invented *invented, size_t num_threads, const char *const *names)
{
    struct ph__placement placement;
    assert_ok(ph__placement_plan(&invented->machine, num_threads, &placement));
    for (size_t t = 0; t < num_threads; t++) {
        assert_true(placement.threads[t].interface < invented->machine.num_interfaces);
        assert_string_equal(invented->interfaces[placement.threads[t].interface].name, names[t]);
    }
    ph__placement_fini(&placement);
}

/* ---- units ---- */

static void threads_take_cores_of_all_nodes_in_turn(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 4, 1);
    assert_processors(&two, 1, (uint32_t[]){0});
    assert_processors(&two, 3, (uint32_t[]){0, 4, 1});
    assert_processors(&two, 8, (uint32_t[]){0, 4, 1, 5, 2, 6, 3, 7});
}

static void a_second_unit_of_a_core_is_taken_when_all_cores_are(void **state)
{
    (void)state;
    struct invented threaded;
    invent(&threaded, 2, 4, 2);
    assert_processors(&threaded, 8, (uint32_t[]){0, 4, 1, 5, 2, 6, 3, 7});
    assert_processors(&threaded, 16, (uint32_t[]){0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15});
}

static void only_units_of_the_mask_are_taken(void **state)
{
    (void)state;
    struct invented restricted;
    invent(&restricted, 2, 4, 2);
    restrict_to(&restricted, 0x7e02); /* processors 1, 9 to 14: core 1 whole, one unit of cores 2 to 6 */
    assert_processors(&restricted, 7, (uint32_t[]){1, 12, 10, 13, 11, 14, 9});
    invent(&restricted, 2, 4, 1);
    restrict_to(&restricted, 0xf8); /* a core of node 0, all of node 1 */
    assert_processors(&restricted, 5, (uint32_t[]){3, 4, 5, 6, 7});
}

static void the_order_of_units_does_not_matter(void **state)
{
    (void)state;
    struct invented forward, backward;
    invent(&forward, 3, 2, 2);
    invent(&backward, 3, 2, 2);
    for (size_t i = 0; i < forward.machine.num_units; i++)
        backward.units[i] = forward.units[forward.machine.num_units - 1 - i];
    struct ph__placement wanted, found;
    assert_ok(ph__placement_plan(&forward.machine, 12, &wanted));
    assert_ok(ph__placement_plan(&backward.machine, 12, &found));
    assert_memory_equal(wanted.threads, found.threads, 12 * sizeof *found.threads);
    ph__placement_fini(&wanted);
    ph__placement_fini(&found);
}

static void more_threads_than_units_are_not_pinned(void **state)
{
    (void)state;
    struct invented one, two;
    struct ph__placement placement;
    invent(&one, 1, 2, 1);
    assert_ok(ph__placement_plan(&one.machine, 3, &placement));
    assert_false(placement.is_pinned);
    for (size_t t = 0; t < 3; t++) {
        assert_int_equal(placement.threads[t].processor, PH_NOWHERE);
        assert_int_equal(placement.threads[t].core, PH_NOWHERE);
        assert_int_equal(placement.threads[t].node, 0); /* there is no other */
        assert_int_equal(placement.threads[t].interface, PH_NOWHERE);
    }
    ph__placement_fini(&placement);
    invent(&two, 2, 1, 1);
    assert_ok(ph__placement_plan(&two.machine, 3, &placement));
    assert_false(placement.is_pinned);
    assert_int_equal(placement.threads[0].node, PH_NOWHERE);
    ph__placement_fini(&placement);
    ph__placement_fini(&placement);
}

/* ---- interfaces ---- */

static void a_thread_has_an_interface_of_its_node(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 4, 2);
    add_interface(&two, "eth0", 1);
    add_interface(&two, "eth1", 0);
    assert_interfaces(&two, 4, (const char *[]){"eth1", "eth0", "eth1", "eth0"});
}

static void interfaces_of_a_node_share_its_threads(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 4, 1);
    add_interface(&two, "eth0", 0);
    add_interface(&two, "eth1", 0);
    add_interface(&two, "eth2", 1);
    static const char *const names[] = {"eth0", "eth2", "eth1", "eth2", "eth0", "eth2", "eth1", "eth2"};
    assert_interfaces(&two, 8, names);
}

static void a_node_without_interfaces_shares_those_of_others(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 2, 1);
    add_interface(&two, "eth0", 0);
    add_interface(&two, "eth1", 0);
    assert_interfaces(&two, 4, (const char *[]){"eth0", "eth1", "eth0", "eth1"});
    add_interface(&two, "bond0", PH_NOWHERE); /* of no node: nearer than those of another */
    assert_interfaces(&two, 4, (const char *[]){"eth0", "bond0", "eth1", "bond0"});
}

static void threads_that_are_not_pinned_share_all_interfaces(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 1, 1);
    add_interface(&two, "eth0", 0);
    add_interface(&two, "eth1", 1);
    assert_interfaces(&two, 4, (const char *[]){"eth0", "eth1", "eth0", "eth1"});
}

static void each_thread_has_an_interface_of_its_node_among_those_that_can_be_chosen(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 4, 1);
    add_interface(&two, "lo", PH_NOWHERE);
    add_interface(&two, "docker0", PH_NOWHERE);
    last_interface(&two)->is_indirect = true;
    add_interface(&two, "eth0", 0);
    add_interface(&two, "eth1", 0);
    add_interface(&two, "eth2", 1);
    add_interface(&two, "eth3", 1);
    ph__machine_keep_choice(&two.machine, false);
    static const char *const names[] = {"eth0", "eth2", "eth1", "eth3", "eth0", "eth2", "eth1", "eth3"};
    assert_interfaces(&two, 8, names);
}

static void bridges_and_tunnels_are_chosen_where_there_is_nothing_else(void **state)
{
    (void)state;
    struct invented one;
    invent(&one, 1, 2, 1);
    add_interface(&one, "lo", PH_NOWHERE);
    add_interface(&one, "br0", PH_NOWHERE);
    last_interface(&one)->is_indirect = true;
    add_interface(&one, "tun0", PH_NOWHERE);
    last_interface(&one)->is_indirect = true;
    assert_choice(&one, false, (const char *[]){"br0", "tun0", NULL});
    add_interface(&one, "eth0", 0);
    assert_choice(&one, false, (const char *[]){NULL}); /* it alone */
    add_interface(&one, "eth1", 0);
    assert_choice(&one, false, (const char *[]){"eth0", "eth1", NULL});
}

static void only_the_fastest_are_chosen(void **state)
{
    (void)state;
    struct invented one;
    invent(&one, 1, 2, 1);
    add_interface(&one, "eth0", 0);
    add_interface(&one, "eth1", 0);
    assert_choice(&one, false, (const char *[]){"eth0", "eth1", NULL}); /* nobody knows how fast */
    last_interface(&one)->speed_mbit = 1000;
    assert_choice(&one, false, (const char *[]){NULL});
    for (size_t i = 0; i < 2; i++) {
        add_interface(&one, i == 0 ? "fast0" : "fast1", 0);
        last_interface(&one)->speed_mbit = 100000;
    }
    assert_choice(&one, false, (const char *[]){"fast0", "fast1", NULL});
}

static void an_interface_needs_an_address_that_the_hub_listens_at(void **state)
{
    (void)state;
    struct invented one;
    invent(&one, 1, 2, 1);
    for (size_t i = 0; i < 3; i++) {
        static const char *const names[] = {"eth0", "eth1", "six"};
        add_interface(&one, names[i], 0);
        if (i > 0)
            strcpy(last_interface(&one)->hosts[PH_IPV6], "2001:db8::1");
    }
    last_interface(&one)->hosts[PH_IPV4][0] = '\0';
    assert_choice(&one, false, (const char *[]){"eth0", "eth1", NULL});
    assert_choice(&one, true, (const char *[]){"eth0", "eth1", "six", NULL});
}

/* ---- this machine, and those that hwloc makes up ---- */

static const struct ph__machine_interface *loopback(const struct ph__machine *machine)
{
    for (size_t i = 0; i < machine->num_interfaces; i++)
        if (machine->interfaces[i].is_loopback)
            return &machine->interfaces[i];
    return NULL;
}

static bool has_loopback(const struct ph__machine *machine)
{
    const struct ph__machine_interface *interface = loopback(machine);
    return interface != NULL && strcmp(interface->name, "lo") == 0 && !interface->is_indirect &&
           strcmp(interface->hosts[PH_IPV4], "127.0.0.1") == 0;
}

static void units_are_those_of_the_affinity_mask(void **state)
{
    (void)state;
    cpu_set_t all, one;
    struct ph__machine machine;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_ok(ph__machine_detect(&machine));
    assert_int_equal(machine.num_units, CPU_COUNT(&all));
    assert_true(has_loopback(&machine));
    for (size_t i = 0; i < machine.num_units; i++)
        assert_true(CPU_ISSET(machine.units[i].processor, &all));
    const uint32_t last = machine.units[machine.num_units - 1].processor;
    ph__machine_fini(&machine);

    CPU_ZERO(&one);
    CPU_SET(last, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_ok(ph__machine_detect(&machine));
    assert_int_equal(machine.num_units, 1);
    assert_int_equal(machine.units[0].processor, last);
    ph__machine_fini(&machine);
    ph__machine_fini(&machine);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void a_pinned_thread_runs_on_its_processor(void **state)
{
    (void)state;
    cpu_set_t all, now;
    struct ph__machine machine;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_ok(ph__machine_detect(&machine));
    for (size_t i = 0; i < machine.num_units; i++) {
        assert_ok(ph__placement_pin_self(machine.units[i].processor));
        assert_int_equal(sched_getcpu(), machine.units[i].processor);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_int_equal(CPU_COUNT(&now), 1);
    }
    assert_fails(ph__placement_pin_self(1000000), PH_ERROR_USAGE, "pinned to processor 1000000");
    ph__machine_fini(&machine);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void cores_and_nodes_are_as_hwloc_says(void **state)
{
    (void)state;
    struct ph__machine machine;
    struct ph__placement placement;
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "numa:2 core:4 pu:2", 1), 0);
    assert_ok(ph__machine_detect(&machine));
    assert_int_equal(unsetenv("HWLOC_SYNTHETIC"), 0);
    assert_int_equal(machine.num_units, 16);
    for (uint32_t i = 0; i < 16; i++) { /* units of a core are neighbours there */
        assert_int_equal(machine.units[i].processor, i);
        assert_int_equal(machine.units[i].core, i / 2);
        assert_int_equal(machine.units[i].node, i / 8);
    }
    assert_true(has_loopback(&machine));
    static const uint32_t processors[] = {0, 8, 2, 10, 4, 12, 6, 14, 1, 9};
    assert_ok(ph__placement_plan(&machine, 10, &placement));
    for (size_t t = 0; t < 10; t++)
        assert_int_equal(placement.threads[t].processor, processors[t]);
    ph__placement_fini(&placement);
    ph__machine_fini(&machine);
}

/* The loopback serves as the interface of a card, since it is up everywhere. */
static void an_interface_is_on_the_node_that_hwloc_finds_it_on(void **state)
{
    (void)state;
    static const char topology[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
        "<topology version=\"2.0\">\n"
        "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x3\" complete_cpuset=\"0x3\" "
        "allowed_cpuset=\"0x3\" "
        "nodeset=\"0x3\" complete_nodeset=\"0x3\" allowed_nodeset=\"0x3\" gp_index=\"1\">"
        "<object type=\"Package\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"2\">"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"3\"/>"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" "
        "complete_nodeset=\"0x1\" gp_index=\"4\"/></object>"
        "<object type=\"Package\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x2\" "
        "complete_nodeset=\"0x2\" gp_index=\"5\">"
        "<object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x2\" "
        "complete_nodeset=\"0x2\" gp_index=\"6\"/>"
        "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x2\" "
        "complete_nodeset=\"0x2\" gp_index=\"7\"/>"
        "<object type=\"OSDev\" gp_index=\"8\" name=\"lo\" osdev_type=\"2\"/></object>"
        "</object></topology>";
    struct ph__machine machine;
    assert_int_equal(setenv("HWLOC_XMLFILE", test_write_file("machine.xml", topology), 1), 0);
    assert_ok(ph__machine_detect(&machine));
    assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
    assert_int_equal(machine.num_units, 2);
    assert_int_equal(machine.units[1].node, 1);
    assert_true(has_loopback(&machine));
    assert_int_equal(loopback(&machine)->node, 1);
    ph__machine_fini(&machine);
}

/* ---- in words ---- */

/* Of the last of so many threads. */
static void assert_place(const struct invented *invented, size_t num_threads, const char *words)
{
    struct ph__placement placement;
    char text[PH_THREAD_PLACE_TEXT_BYTES];
    assert_ok(ph__placement_plan(&invented->machine, num_threads, &placement));
    assert_string_equal(ph__thread_place_text(&invented->machine, &placement, num_threads - 1, text), words);
    ph__placement_fini(&placement);
}

static void the_place_of_a_thread_is_told_in_words(void **state)
{
    (void)state;
    struct invented two;
    invent(&two, 2, 1, 1);
    assert_place(&two, 1, "processor 0, core 0, node 0");
    add_interface(&two, "eth0", 1);
    assert_place(&two, 2, "processor 1, core 1, node 1, interface eth0");
    assert_place(&two, 3, "not pinned (3 threads, 2 processors), interface eth0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_take_cores_of_all_nodes_in_turn),
        cmocka_unit_test(a_second_unit_of_a_core_is_taken_when_all_cores_are),
        cmocka_unit_test(only_units_of_the_mask_are_taken),
        cmocka_unit_test(the_order_of_units_does_not_matter),
        cmocka_unit_test(more_threads_than_units_are_not_pinned),
        cmocka_unit_test(a_thread_has_an_interface_of_its_node),
        cmocka_unit_test(interfaces_of_a_node_share_its_threads),
        cmocka_unit_test(a_node_without_interfaces_shares_those_of_others),
        cmocka_unit_test(threads_that_are_not_pinned_share_all_interfaces),
        cmocka_unit_test(each_thread_has_an_interface_of_its_node_among_those_that_can_be_chosen),
        cmocka_unit_test(bridges_and_tunnels_are_chosen_where_there_is_nothing_else),
        cmocka_unit_test(only_the_fastest_are_chosen),
        cmocka_unit_test(an_interface_needs_an_address_that_the_hub_listens_at),
        cmocka_unit_test(units_are_those_of_the_affinity_mask),
        cmocka_unit_test(a_pinned_thread_runs_on_its_processor),
        cmocka_unit_test(cores_and_nodes_are_as_hwloc_says),
        cmocka_unit_test(an_interface_is_on_the_node_that_hwloc_finds_it_on),
        cmocka_unit_test(the_place_of_a_thread_is_told_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
