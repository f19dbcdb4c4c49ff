/* phloem export DIR --onnx FILE */
#include <stdio.h>

#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/stop_signal.h"
#include "cli/verb.h"
#include "serve/onnx_export.h"

static ph_status export_onnx(const char *folder, const char *path)
{
    struct ph__model_config config;
    struct ph__model_folder model = {0};
    PH_TRY(cli_output_spare_model(path, folder));
    ph_status status = ph__model_config_read(&config, folder);
    const struct ph_model_settings *settings = &config.model.settings;
    if (status == PH_OK)
        status = ph__model_folder_open(
            &model, folder, settings, config.data.reading.negative_rate, PH_ROWS_FP32, NULL);
    cli_stop_signal_removes(path);
    if (status == PH_OK)
        status = ph__onnx_export(&model, ph_model_name(settings->kind), path);
    ph__model_folder_close(&model);
    ph__model_config_fini(&config);
    if (status == PH_OK)
        printf("%s: model '%s' of %s as ONNX\n", path, ph_model_name(settings->kind), folder);
    return status;
}

ph_status verb_export(int argc, char **argv)
{
    const char *onnx = NULL;
    const struct cli_flag flags[] = {
        {"--onnx", CLI_TEXT, &onnx, "FILE",
            "file for the model as ONNX; docs/ONNX.md describes its inputs and outputs (required)"},
    };
    const struct cli_command command = {"export", "export runs/mine --onnx model.onnx",
        "Exports the model in DIR, a folder made by phloem train, so that other programs can score with it.",
        "DIR", 1, 1, flags, sizeof flags / sizeof *flags};
    struct cli_arguments arguments;
    PH_TRY(cli_parse(&command, argc, argv, &arguments));
    if (arguments.has_printed_help)
        return PH_OK;
    if (onnx == NULL)
        return ph_fail(PH_ERROR_USAGE, "export requires --onnx FILE");
    return export_onnx(arguments.positional[0], onnx);
}
