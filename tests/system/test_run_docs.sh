#!/bin/sh
# tools/run_docs.sh runs the indented blocks of a page in one shell, leaves out what is marked, and fails when one of them does.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

mkdir tools
cp "$PH_SOURCE_DIR/tools/run_docs.sh" tools
cat >fine.md <<'END'
A block, whose variables and jobs the next one has:

    kept=seven
    sleep 60 & job=$!

```text
    exit 3
```

<!-- not run: needs a cluster -->

    exit 4

    kill $job
    echo "kept $kept" \
        >shown
END
cat >wrong.md <<'END'
    false
    echo goes on

    echo next block >next
END
tools/run_docs.sh fine.md >stdout 2>stderr || complain 'a page of blocks that work fails'
contains shown 'kept seven'
contains stdout 'fine.md:10: <!-- not run: needs a cluster -->'
contains stdout 'all blocks of fine.md work'
if tools/run_docs.sh fine.md wrong.md >stdout 2>stderr; then complain 'a block that fails is not noticed'; fi
contains stdout 'run_docs: wrong.md:1: failed'
[ -e next ] || complain 'blocks behind one that fails are not run'
