#!/bin/sh
# Runs the commands of documents on a bare Debian 12: a root folder with nothing but Debian's required packages and apt, in
# mount and process namespaces of its own. Nothing stays mounted and no process survives the run.
# Packages come from the Debian mirror that this machine's own apt uses. The log, with seconds since the start at the
# head of each line, goes to the terminal and to build/bare_machine.log, and ends in a summary of times.
# Needs root and mmdebstrap; ends with 77 where it cannot run.
#
# usage: tools/bare_machine.sh [--root DIR] [--user root|newcomer|both] [COMMAND...]
#        tools/bare_machine.sh [--root DIR] --docs [--quick]
#        tools/bare_machine.sh [--root DIR] --deb DIR | --wheel FILE
# Without commands: 'demo' and 'test', which are given to ./run, as root and then as a user who cannot install anything.
# --root DIR    makes the bare root in DIR, or takes the one that an earlier run left there, and leaves it behind
# --docs        runs the commands of README.md and of the manuals below, as root (tools/run_docs.sh); --quick: './run test' only
#               installs its packages
# --deb DIR, --wheel FILE
#               installs the packages of ./run deb, or the wheel, uses them, and removes the packages (tools/bare_packages.sh), as root
set -eu

log=build/bare_machine.log
manuals='README.md docs/PARALLEL.md docs/HUB.md docs/SERVING.md docs/SERVER.md' # PARALLEL's builds with an MPI
release=bookworm
python=3.11 # of that release

fail() {
    echo "bare_machine: $1" >&2
    exit 2
}

skip() {
    echo "bare_machine: skipped: $1" >&2
    exit 77
}

# ---- the bare root ----

# sources: the lines of this machine's apt that name Debian's archive.
sources() {
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT) #$(ORIGIN)' 'Created-By: Packages' |
        sed -n "/ $release[-a-z]* [-a-z]* #Debian\$/ s/ #Debian\$//p" | sort -u
}

# apt_options: this machine's settings of how apt reaches the archive; no question is asked in the bare root.
apt_options() {
    apt-config dump | grep -E '^Acquire::(https?|ftp|Check-|Retries|ForceIPv[46])' | grep -v 'Auto-Detect' || true
    echo 'APT::Get::Assume-Yes "true";'
}

make_root() {
    sources >"$work/sources"
    [ -s "$work/sources" ] || skip "this machine's apt knows no Debian archive of $release; apt-get update?"
    apt_options >"$work/apt.conf"
    mmdebstrap --mode=root --variant=minbase --aptopt="$work/apt.conf" "$release" "$root" - <"$work/sources" ||
        fail "no bare root could be made in $root"
    chroot "$root" useradd --create-home newcomer
}

# copy_sources FOLDER OWNER: the files that git knows, as they are here, or all but what is built where this is no checkout.
copy_sources() {
    rm -rf "${root:?}/$1"
    mkdir -p "$root/$1"
    if git ls-files -z >"$work/files" 2>/dev/null && [ -s "$work/files" ]; then
        tar --create --file="$work/sources.tar" --null --files-from="$work/files"
    else
        tar --create --file="$work/sources.tar" --exclude=./build --exclude=./runs --exclude=./.git .
    fi
    tar --extract --file="$work/sources.tar" --directory="$root/$1" --no-same-owner
    chroot "$root" chown -R "$2" "/$1"
}

# ---- inside: the second start of this script, in namespaces of its own ----

# enter ROOT DATA: makes ROOT the root of this mount namespace; DATA, if it is there, is seen beside both source trees.
enter() {
    cd "$1"
    mount --bind . .
    cd "$1" # the mount, no longer the folder beneath it
    mount -t proc proc proc
    mount --rbind /sys sys
    mount -t tmpfs -o mode=755 dev dev
    mkdir -p dev/shm dev/pts
    mount -t tmpfs -o mode=1777 shm dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    for device in null zero full random urandom tty; do
        : >"dev/$device"
        mount --bind "/dev/$device" "dev/$device"
    done
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    for folder in root/shared home/newcomer/shared; do
        [ -d "$2" ] || continue
        mkdir -p "$folder"
        mount --bind "$2" "$folder"
        mount -o remount,bind,ro "$folder"
    done
    pivot_root . srv
    cd /
    umount -l /srv
}

# as_user USER SCRIPT ARGUMENTS...: a bash script in the user's copy of the sources, with an environment of a first login.
as_user() {
    user=$1
    shift
    home=$(getent passwd "$user" | cut -d: -f6)
    (cd "$home/phloem" && exec setpriv --reuid="$user" --regid="$user" --init-groups env -i HOME="$home" USER="$user" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb $proxies \
        bash -c "$@" </dev/null)
}

# run_command USER COMMAND: one of ./run's, with the seconds that it took.
run_command() {
    echo "bare_machine: $1: ./run $2"
    status=0
    as_user "$1" 'TIMEFORMAT="bare_machine: took %R s, of processors %U s + %S s"; time ./run "$1"' bash "$2" || status=$?
    echo "bare_machine: ended with $status"
    return "$status"
}

inside() {
    enter "$1" "$2"
    proxies=''
    for name in http_proxy https_proxy no_proxy; do
        value=$(printenv "$name") && proxies="$proxies $name=$value"
    done
    if [ "$users" = docs ]; then
        # shellcheck disable=SC2086 # words
        as_user root 'exec tools/run_docs.sh "$@"' bash $3 $manuals
        return
    fi
    if [ "$users" = deb ] || [ "$users" = wheel ]; then
        as_user root 'exec sh tools/bare_packages.sh "$@"' bash "$users" /opt/packages
        return
    fi
    worst=0
    shift 2
    for user in $users; do
        for command; do
            run_command "$user" "$command" || worst=1
        done
    done
    return "$worst"
}

run_all() {
    if [ -e "$root/etc/debian_version" ]; then
        echo "bare_machine: $root is there, with what earlier runs installed in it"
    else
        echo "bare_machine: making $root"
        make_root
    fi
    root=$(cd "$root" && pwd)
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    copy_sources root/phloem root:root
    copy_sources home/newcomer/phloem newcomer:newcomer
    if [ -n "$packages" ]; then
        rm -rf "$root/opt/packages"
        cp -R "$packages" "$root/opt/packages"
    fi
    if [ "$users" = wheel ]; then # what pip would fetch, which the bare machine cannot
        python3 -m pip download -q --only-binary :all: --python-version "$python" -d "$root/opt/packages" "$root"/opt/packages/*.whl pandas ||
            skip "pip cannot fetch what the wheel depends on"
    fi
    PHLOEM_BARE_MACHINE=inside unshare --mount --propagation private --pid --fork --kill-child \
        sh tools/bare_machine.sh "$users" "$root" "$(cd .. && pwd)/shared" "$@"
}

# ---- the log ----

# stamp: puts the seconds since its start before each line.
stamp() {
    perl -MTime::HiRes=time -ne 'BEGIN {$| = 1; $start = time} printf "%8.1f  %s", time - $start, $_'
}

# summary: when packages were there, the program was built and the first line of progress came, for each command.
summary() {
    awk '
    function say(what, since, until) {if (until >= since && since >= 0) printf "  %-58s %8.1f s\n", what, until - since}
    function end() {
        if (name == "") return
        print name
        say("packages installed", apt, packages)
        say("last package to the end of the build", ready, built)
        say("last package to the first line of progress", ready, progress)
        say("all of it", start, $1)
    }
    $2 == "bare_machine:" && ($3 ~ /:$/) {
        name = $0; sub(/^.*bare_machine: /, "", name)
        start = ready = $1; apt = packages = built = progress = -1
    }
    $2 == "run:" && $3 == "installing" {apt = $1}
    $2 == "Setting" || $2 == "Processing" {packages = ready = $1}
    /newly installed|Need to get|disk space will be used|Total Test time|tests passed/ {
        fact = $0; sub(/^ *[0-9.]+ */, "", fact); facts = facts "  " fact "\n"
    }
    $2 ~ /^\[[0-9]+\/[0-9]+\]$/ {built = $1}
    $2 == "epoch" && progress < 0 {progress = $1}
    $2 == "bare_machine:" && $3 == "took" {facts = facts "  " substr($0, index($0, "took")) "\n"}
    $2 == "bare_machine:" && $3 == "ended" {end(); printf "%s  %s\n", facts, substr($0, index($0, "ended")); facts = name = ""}
    ' "$log"
}

# ---- outside ----

if [ "${PHLOEM_BARE_MACHINE:-}" = inside ]; then
    users=$1
    shift
    inside "$@"
    exit
fi

cd "$(dirname -- "$0")/.."
root='' users='root newcomer' docs='' quick='' packages=''
while [ $# -gt 0 ]; do
    case $1 in
    --root) root=${2:-} && shift && [ -n "$root" ] || fail '--root requires a folder' ;;
    --user)
        case ${2:-} in
        root | newcomer) users=$2 ;;
        both) ;;
        *) fail "--user is root, newcomer or both, not '${2:-}'" ;;
        esac
        shift
        ;;
    --deb | --wheel)
        users=${1#--}
        packages=${2:-}
        [ -e "$packages" ] || fail "$1 requires what ./run $users has built, not '$packages'"
        [ -d "$packages" ] || packages=$(dirname -- "$packages")
        shift
        ;;
    --docs) docs=docs ;;
    --quick) quick=--quick ;;
    -*) fail "unknown option: '$1'" ;;
    *) break ;;
    esac
    shift
done
[ "$(id -u)" -eq 0 ] || skip 'a bare root is made by root alone'
for tool in mmdebstrap unshare pivot_root setpriv perl; do
    command -v "$tool" >/dev/null || skip "there is no $tool (apt-get install mmdebstrap)"
done
unshare --mount --pid --fork true 2>/dev/null || skip 'this machine allows no namespaces'
if [ -n "$docs" ]; then
    [ $# -eq 0 ] || fail "--docs takes no commands: '$1'"
    users=docs
    set -- "$quick"
elif [ $# -eq 0 ]; then
    set -- demo test
fi

mkdir -p build
work=$(mktemp -d)
made=''
if [ -z "$root" ]; then
    made=$(pwd)/build/bare_machine
    root=$made
    rm -rf --one-file-system "$made"
fi
trap 'rm -rf --one-file-system "$work" ${made:+"$made"}' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
{
    set +e
    (set -e && run_all "$@") 2>&1
    echo $? >"$work/status"
} | stamp | tee "$log"
summary | tee -a "$log"
exit "$(cat "$work/status")"
