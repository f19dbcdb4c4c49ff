#!/bin/sh
# The README's two commands on a bare Debian 12, as root and as a user. Skips without root, mmdebstrap or an archive.
# Environment: PH_SOURCE_DIR.
exec sh "$PH_SOURCE_DIR/tools/bare_machine.sh"
