/* Turns libyaml's events into the flat list. Each kind of node has a function that consumes the node's
 * events. */
#include "base/format/yaml.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "base/file/file.h"
#include "base/memory/memory.h"

#define FILE_MAX_BYTES \
    ((uint64_t)128 << 20) /* a run folder's config has every key of each of 65,536 columns */

struct parsing {
    struct ph__arena *arena;
    const char *path, *text;
    size_t text_bytes;
    yaml_parser_t parser;
    struct ph__yaml_node *nodes; /* malloc'ed while it grows */
    size_t num_nodes, capacity;
};

static ph_status fail_at(const struct parsing *parsing, size_t line, const char *what)
{
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: %s", parsing->path, line, what);
}

static size_t line_of(const yaml_event_t *event)
{
    return event->start_mark.line + 1;
}

/* Tells whether the parser stopped at a tab in a line's indentation. The mark counts characters; before the
 * tab, they are all blanks. */
static bool is_tab(const struct parsing *parsing, const yaml_mark_t *mark)
{
    const char *line = parsing->text, *end = parsing->text + parsing->text_bytes;
    for (size_t i = 0; i < mark->line && line != NULL; i++) {
        line = memchr(line, '\n', (size_t)(end - line));
        line = line != NULL ? line + 1 : NULL;
    }
    return line != NULL && mark->column < (size_t)(end - line) && strspn(line, " ") == mark->column &&
           line[mark->column] == '\t';
}

/* Gives the next event, which the caller deletes. */
static ph_status next_event(struct parsing *parsing, yaml_event_t *event_out)
{
    if (yaml_parser_parse(&parsing->parser, event_out) == 1)
        return PH_OK;
    const yaml_parser_t *parser = &parsing->parser;
    if (parser->error == YAML_MEMORY_ERROR)
        return ph__out_of_memory("%s: a config", parsing->path);
    if (is_tab(parsing, &parser->problem_mark))
        return ph_fail(PH_ERROR_CONFIG, "%s:%zu:%zu: tabs are not allowed for indentation: use spaces",
            parsing->path, parser->problem_mark.line + 1, parser->problem_mark.column + 1);
    return ph_fail(PH_ERROR_CONFIG, "%s:%zu: not valid YAML: %s", parsing->path,
        parser->problem_mark.line + 1,
        parser->problem != NULL ? parser->problem : "the parser gives no reason");
}

/* Adds a node and gives its index: the list moves while it grows. */
static ph_status add_node(struct parsing *parsing, struct ph__yaml_node node, size_t *index_out)
{
    if (strlen(node.key) > PH_YAML_PATH_MAX)
        return fail_at(parsing, node.line, "the path of this key is too long");
    void *nodes = parsing->nodes;
    ph_status status = ph__array_reserve(&nodes, &parsing->capacity, parsing->num_nodes + 1, sizeof node);
    parsing->nodes = nodes;
    PH_TRY(status);
    *index_out = parsing->num_nodes;
    parsing->nodes[parsing->num_nodes++] = node;
    return PH_OK;
}

/* Copies the scalar's text into the arena; a NUL in it is an error. */
static ph_status copy_scalar(struct parsing *parsing, const yaml_event_t *event, const char **text_out)
{
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return fail_at(parsing, line_of(event), "the text holds a NUL character");
    char *copy = ph__arena_strdup(parsing->arena, text);
    *text_out = copy;
    return copy != NULL ? PH_OK : PH_ERROR_MEMORY;
}

static ph_status refuse_extras(struct parsing *parsing, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL || event->type == YAML_ALIAS_EVENT)
        return fail_at(parsing, line_of(event), "anchors and aliases are not supported");
    if (tag != NULL)
        return fail_at(parsing, line_of(event), "tags are not supported");
    return PH_OK;
}

/* Parses a node; `line` is the line of its key, or its own first line when it is an item. */
static ph_status parse_node(
    struct parsing *parsing, const yaml_event_t *event, const char *key, size_t line, size_t depth);

static ph_status parse_scalar(
    struct parsing *parsing, const yaml_event_t *event, const char *key, size_t line)
{
    const char *text = NULL;
    PH_TRY(copy_scalar(parsing, event, &text));
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (is_plain && (strcmp(text, "~") == 0 || strcmp(text, "null") == 0))
        text = "";
    size_t index = 0;
    struct ph__yaml_node node = {.kind = PH_YAML_SCALAR, .key = key, .text = text, .line = line};
    return add_node(parsing, node, &index);
}

static ph_status parse_sequence(struct parsing *parsing, const char *key, size_t line, size_t depth)
{
    size_t index = 0, count = 0;
    PH_TRY(add_node(
        parsing, (struct ph__yaml_node){.kind = PH_YAML_SEQUENCE, .key = key, .line = line}, &index));
    for (;;) {
        yaml_event_t event;
        PH_TRY(next_event(parsing, &event));
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            yaml_event_delete(&event);
            parsing->nodes[index].num_items = count;
            return PH_OK;
        }
        const char *item_key = ph__arena_printf(parsing->arena, "%s[%zu]", key, count++);
        ph_status status = item_key != NULL
                               ? parse_node(parsing, &event, item_key, line_of(&event), depth + 1)
                               : PH_ERROR_MEMORY;
        yaml_event_delete(&event);
        PH_TRY(status);
    }
}

/* Builds the path of a key below `parent` from the key's event. */
static ph_status join_key(
    struct parsing *parsing, const yaml_event_t *event, const char *parent, const char **key_out)
{
    PH_TRY(refuse_extras(parsing, event));
    if (event->type != YAML_SCALAR_EVENT)
        return fail_at(parsing, line_of(event), "a key must be a word");
    const char *word = NULL;
    PH_TRY(copy_scalar(parsing, event, &word));
    if (word[0] == '\0')
        return fail_at(parsing, line_of(event), "the key is empty");
    char *key = ph__arena_printf(parsing->arena, "%s%s%s", parent, parent[0] != '\0' ? "." : "", word);
    *key_out = key;
    return key != NULL ? PH_OK : PH_ERROR_MEMORY;
}

/* Parses the value of a key whose event has been consumed. */
static ph_status parse_member(struct parsing *parsing, const char *key, size_t line, size_t depth)
{
    yaml_event_t event;
    PH_TRY(next_event(parsing, &event));
    ph_status status = parse_node(parsing, &event, key, line, depth + 1);
    yaml_event_delete(&event);
    return status;
}

static ph_status parse_members(struct parsing *parsing, const char *parent, size_t depth)
{
    for (;;) {
        yaml_event_t event;
        PH_TRY(next_event(parsing, &event));
        bool is_over = event.type == YAML_MAPPING_END_EVENT;
        size_t line = line_of(&event);
        const char *key = NULL;
        ph_status status = is_over ? PH_OK : join_key(parsing, &event, parent, &key);
        yaml_event_delete(&event);
        PH_TRY(status);
        if (is_over)
            return PH_OK;
        PH_TRY(parse_member(parsing, key, line, depth));
    }
}

static ph_status parse_node(
    struct parsing *parsing, const yaml_event_t *event, const char *key, size_t line, size_t depth)
{
    PH_TRY(refuse_extras(parsing, event));
    if (depth > PH_YAML_DEPTH_MAX)
        return fail_at(parsing, line_of(event), "keys are nested too deeply");
    if (event->type == YAML_SCALAR_EVENT)
        return parse_scalar(parsing, event, key, line);
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return parse_sequence(parsing, key, line, depth);
    size_t index = 0;
    PH_TRY(
        add_node(parsing, (struct ph__yaml_node){.kind = PH_YAML_MAPPING, .key = key, .line = line}, &index));
    return parse_members(parsing, key, depth);
}

/* Parses the document's top: a mapping, or nothing (a file of comments). */
static ph_status parse_top(struct parsing *parsing, const yaml_event_t *event)
{
    PH_TRY(refuse_extras(parsing, event));
    if (event->type == YAML_MAPPING_START_EVENT)
        return parse_members(parsing, "", 1);
    if (event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 0)
        return PH_OK;
    return fail_at(parsing, line_of(event), "a config must be a mapping: lines of \"key: value\"");
}

/* Parses the stream: stream start, document start, the top, document end, stream end. */
static ph_status parse_stream(struct parsing *parsing)
{
    size_t num_documents = 0;
    bool is_over = false;
    while (!is_over) {
        yaml_event_t event;
        PH_TRY(next_event(parsing, &event));
        ph_status status = PH_OK;
        if (event.type == YAML_STREAM_END_EVENT)
            is_over = true;
        else if (event.type == YAML_DOCUMENT_START_EVENT && num_documents++ > 0)
            status = fail_at(parsing, line_of(&event), "a config must be one document: remove the second");
        else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT &&
                 event.type != YAML_DOCUMENT_END_EVENT)
            status = parse_top(parsing, &event);
        yaml_event_delete(&event);
        PH_TRY(status);
    }
    return PH_OK;
}

static int compare_by_key(const void *a, const void *b)
{
    const struct ph__yaml_node *const *left = a, *const *right = b;
    int order = strcmp((*left)->key, (*right)->key);
    if (order != 0)
        return order;
    return (*left)->line < (*right)->line ? -1 : (*left)->line > (*right)->line;
}

static ph_status refuse_duplicates(const struct parsing *parsing)
{
    size_t count = parsing->num_nodes;
    const struct ph__yaml_node **sorted = ph__arena_alloc_array(parsing->arena, count, sizeof *sorted);
    if (sorted == NULL)
        return PH_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &parsing->nodes[i];
    qsort(sorted, count, sizeof *sorted, compare_by_key);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            return ph_fail(PH_ERROR_CONFIG, "%s:%zu: the key '%s' is given twice, first in line %zu",
                parsing->path, sorted[i]->line, sorted[i]->key, sorted[i - 1]->line);
    return PH_OK;
}

/* Reads the file. Its errors are those of an unreadable config (PH_ERROR_CONFIG). */
static ph_status read_text(struct ph__arena *arena, const char *path, char **text_out, size_t *size_out)
{
    ph_status status = ph__file_read(arena, path, FILE_MAX_BYTES, text_out, size_out);
    return status == PH_ERROR_DATA ? PH_ERROR_CONFIG : status;
}

ph_status ph__yaml_read(
    struct ph__arena *arena, const char *path, struct ph__yaml_node **nodes_out, size_t *num_nodes_out)
{
    char *text = NULL;
    size_t size = 0;
    PH_TRY(read_text(arena, path, &text, &size));
    return ph__yaml_parse(arena, path, text, size, nodes_out, num_nodes_out);
}

ph_status ph__yaml_parse(struct ph__arena *arena, const char *name, const char *text, size_t size,
    struct ph__yaml_node **nodes_out, size_t *num_nodes_out)
{
    struct parsing parsing = {.arena = arena, .path = name, .text = text, .text_bytes = size};
    if (yaml_parser_initialize(&parsing.parser) != 1)
        return ph__out_of_memory("%s: a config", name);
    yaml_parser_set_input_string(&parsing.parser, (const unsigned char *)text, size);
    ph_status status = parse_stream(&parsing);
    if (status == PH_OK)
        status = refuse_duplicates(&parsing);
    struct ph__yaml_node *nodes = NULL;
    if (status == PH_OK) {
        nodes = ph__arena_alloc_array(arena, parsing.num_nodes, sizeof *nodes);
        status = nodes != NULL ? PH_OK : PH_ERROR_MEMORY;
    }
    if (status == PH_OK) {
        if (parsing.num_nodes > 0)
            memcpy(nodes, parsing.nodes, parsing.num_nodes * sizeof *nodes);
        *nodes_out = nodes;
        *num_nodes_out = parsing.num_nodes;
    }
    yaml_parser_delete(&parsing.parser);
    free(parsing.nodes);
    return status;
}
