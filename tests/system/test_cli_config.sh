#!/bin/sh
# A config that is wrong is refused with one line that names file, line and key, and exit code 2.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

# refused TEXT: the config on standard input is refused with TEXT.
refused() {
    cat >wrong.yaml
    fails 2 "$1" train wrong.yaml --out run
}

refused 'wrong.yaml:2: ' <<'END'
train:
  batchsize: 512
END
contains stderr 'train.batchsize'
contains stderr 'train.batch_size'

refused 'wrong.yaml:3: ' <<'END'
seed: 1
train:
  batch_size: many
END
contains stderr 'train.batch_size'

refused 'wrong.yaml:2: ' <<'END'
train:
  batch_size: 0
END
contains stderr 'train.batch_size'

refused 'wrong.yaml:2: ' <<'END'
model:
  kind: dlmr
END
contains stderr 'dlrm'

refused 'wrong.yaml:3: ' <<'END'
seed: 1
threads: 1
seed: 2
END

refused 'not valid YAML' <<'END'
train:
  batch_size: [1, 2
END

# A value from the command line has no file and line; the key is named all the same.
echo 'seed: 1' >fine.yaml
fails 2 'train.batchsize' train fine.yaml --out run --set train.batchsize=4
contains stderr 'train.batch_size'
fails 2 'train.batch_size' train fine.yaml --out run --set train.batch_size=4.5
fails 2 'train.batch_size' train fine.yaml --out run --set train.batch_size
fails 2 'threads: must be an integer' train fine.yaml --out run --threads "$(printf '%060dx' 2)"
for verb in train prepare; do
    fails 2 'threads: must be an integer from 0 to 1024' "$verb" fine.yaml --out run --threads 1025
    fails 2 'threads: must be an integer from 0 to 1024' "$verb" fine.yaml --out run --set threads=1025
    fails 2 'data.train' "$verb" fine.yaml --out run --threads 1024
done

# What was typed is shown in one line that leaves the terminal alone.
fails 2 'unknown key '"'foo\nbar'" train fine.yaml --out run --set "$(printf 'foo\nbar=1')"
fails 2 'unknown key '"'foo\x1b[31m'" train fine.yaml --out run --set "$(printf 'foo\033[31m=1')"

# A config without data cannot be trained by.
fails 2 'data.train' train fine.yaml --out run
