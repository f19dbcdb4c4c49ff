#!/bin/sh
# What the program says before it does anything.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

succeeds --version
contains stdout "$(sed -n 's/^project(phloem VERSION \([0-9.]*\).*/\1/p' "$PH_SOURCE_DIR/CMakeLists.txt")"

succeeds --help
for verb in synth train compare tune plan eval predict inspect config; do
    contains stdout "  $verb"
done
for verb in synth train compare plan eval predict inspect config; do
    succeeds "$verb" --help
    contains stdout "usage: phloem $verb"
done
succeeds config --help
contains stdout 'usage: phloem config'

# phloem help VERB is phloem VERB --help.
succeeds --help
cp stdout usage
succeeds help
cmp -s stdout usage || complain 'help and --help differ'
for verb in synth train compare tune prepare plan eval predict export towers hub inspect models config; do
    succeeds "$verb" --help
    cp stdout wanted
    succeeds help "$verb"
    cmp -s stdout wanted || complain "help $verb and $verb --help differ"
done
succeeds help hub bench
contains stdout 'usage: phloem hub bench'
fails 2 "unknown verb 'trian'; did you mean 'train'?" help trian
fails 2 "one argument too many: 'c'" help a b c
fails 2 "unknown verb 'halp'; did you mean 'help'?" halp

printf 'train:\n\tepochs: 2\n' >tab.yaml
fails 2 'tab.yaml:2:1: tabs are not allowed for indentation: use spaces' config tab.yaml

phloem
[ "$status" -eq 2 ] || complain "without a verb the program ended with $status; wanted 2"
contains stdout 'usage: phloem'
fails 2 'train' trian
fails 2 'CONFIG' train
fails 2 '--out' train nowhere.yaml
for verb in train compare tune prepare synth; do
    fails 2 '--out needs a value' "$verb" nowhere.yaml --out ''
done
fails 2 '--out needs a value' predict nowhere nowhere.csv --out=
fails 2 '--onnx needs a value' export nowhere --onnx ''
fails 2 'an argument is empty' eval ''
fails 2 '--profile' train --profil
fails 2 'nowhere.yaml' train nowhere.yaml --out run
[ ! -e run ] || complain 'a train that could not start left its folder'

# What cannot be printed is not said to be done.
for arguments in --help --version 'train --help' config 'config --keys'; do
    status=0
    # shellcheck disable=SC2086 # a list of words
    "$PH_BINARY_DIR/phloem" $arguments >/dev/full 2>stderr </dev/null || status=$?
    [ "$status" -eq 5 ] || complain "phloem $arguments to a full device ended with $status; wanted 5"
    contains stderr 'standard output'
done

# Two processes of one host that cannot meet, with the variables that a launcher gives each, % being its number: the first one
# says what is wrong, and the other nothing.
played() {
    for process in 0 1; do
        # shellcheck disable=SC2046 # a list of words
        if env $(echo "$@" | sed "s/%/$process/g") PHLOEM_PLUGINS="$work" "$PH_BINARY_DIR/phloem" train nowhere.yaml --out run \
            >stdout 2>"stderr.$process" </dev/null; then
            complain "$*: a train without a config has ended well"
        fi
    done
    contains stderr.0 'phloem: error: nowhere.yaml'
    [ ! -s stderr.1 ] || complain "$*: the second process speaks, too"
}
played OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=% # mpirun.openmpi
played PMI_SIZE=2 PMI_RANK=% MPI_LOCALRANKID=%             # mpirun.mpich
played PMI_SIZE=2 PMI_RANK=% SLURM_LOCALID=%               # srun --mpi=pmi2
played SLURM_STEP_NUM_TASKS=2 PMIX_RANK=% SLURM_LOCALID=%  # srun --mpi=pmix
played SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=%              # srun --mpi=none
