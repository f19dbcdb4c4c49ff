#!/bin/sh
# All pages of test_report_html.sh as a browser shows them: a start of Chromium each.
PH_TEST_ALL_PAGES=1
# shellcheck source=tests/system/test_report_html.sh
. "$PH_SOURCE_DIR/tests/system/test_report_html.sh"
