/* phloem config [CONFIG] */
#include "cli/config_text.h"
#include "cli/verb.h"

ph_status verb_config(int argc, char **argv)
{
    struct cli_texts sets = {0};
    bool is_markdown = false, is_text = false;
    const struct cli_flag flags[] = {
        {"--keys", CLI_SWITCH, &is_text, NULL, "prints every key with its type, default and meaning"},
        {"--docs", CLI_SWITCH, &is_markdown, NULL, "prints the same as Markdown: docs/CONFIG.md"},
        {"--set", CLI_TEXTS, &sets, "KEY=VALUE", "overrides the config's value"},
    };
    const struct cli_command command = {"config", "config config.yaml --set train.epochs=3",
        "Prints CONFIG with all defaults filled in (without CONFIG, the defaults), or explains the keys.",
        "[CONFIG]", 0, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (is_markdown || is_text)
        return cli_config_describe(is_markdown);
    return cli_config_print(arguments.num_positional > 0 ? arguments.positional[0] : NULL, &sets);
}
