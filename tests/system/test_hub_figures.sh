#!/bin/sh
# tools/hub_figures.py on programs that measure nothing: they are run, the page tells their figures, and what a peer that is
# not there would have told is left out.
# shellcheck source=tests/system/support.sh
. "$PH_SOURCE_DIR/tests/system/support.sh"

if ! command -v python3 >/dev/null; then
    echo "$name: skipped: python3 is not there"
    exit 77
fi

mkdir -p tools docs bench/hub build/release/bench/hub made
for tool in hub_figures.py hub_page.py comparisons.py bench_plots.py bench_report.py bench.sh; do
    cp "$PH_SOURCE_DIR/tools/$tool" tools
done
cat >program <<'END'
#!/bin/sh
echo "$0 $*" >>ran
while [ "$1" != --json ]; do shift; done
cp "made/$(basename "$0").json" "$2"
END
cat >run <<'END'
#!/bin/sh
echo "run $*" >>ran
[ "$1" = bench ] || exit 0
shift
exec sh tools/bench.sh "$@"
END
for program in bench_aggregate bench_frame_key bench_partition bench_pushpull; do
    touch "bench/hub/$program.c"
    install program "build/release/bench/hub/$program"
done

# Figures as the programs write them (bench/figures.c).
cat >make.py <<'END'
import json

def figure(name, unit, value, peer=None, peer_value=None, ratio=None, **more):
    told = {"peer": peer, "peer_value": peer_value, "ratio": ratio, "limit": None, "of_limit": None, "label": "measured"}
    place = {"placement": "same complex", "rounds": 11, "of_rounds": 12}
    return {"name": name, "unit": unit, "value": value, **told, **place, **more}

def write(program, figures):
    with open(f"made/{program}.json", "w") as file:
        json.dump(figures, file)

shm, tcp = "hub.pushpull.shm.64MiB", "hub.pushpull.tcp.64MiB"
figures = [
    figure(shm, "ms", 12.5, limit="a formula", of_limit=0.7149),
    figure(f"{shm}.beside_pslite_ipc", "ms", 12.5, "pslite 123, pslite ipc", 62.5, 5.25),
    figure(f"{shm}.beside_openmpi", "ms", 12.5, "openmpi 4.1, openmpi", 18.75, 1.5, rounds=3, of_rounds=33),
    figure(tcp, "ms", 101.0, limit="another formula", of_limit=0.9),
    figure(f"{tcp}.beside_openmpi_in_segments", "ms", 101.0, "openmpi 4.1, openmpi in segments of 256KiB", 50.5, 0.5, congestion="reno"),
    figure(f"{tcp}.beside_pslite_tcp_of_machine", "ms", 101.0, "pslite 123, pslite tcp, the machine's bbr", 222.0, 2.2, congestion="bbr"),
    figure(f"{tcp}.bytes_sent", "MB", 268.4, limit="a sum", of_limit=1),
    figure("hub.tenants.shm.alike.share", "max/mean", 1.0625),
    figure("hub.tenants.shm.alike.rate_beside_first_alone", "GB/s", 10.5, "alone", 21.5, 0.5),
    figure("hub.tenants.shm.alike.rate_beside_second_alone", "GB/s", 10.5, "alone", 22.5, 0.47),
    figure("hub.variant.shm.4KiB.sleep", "us", 40.5, "default", 4.05, 0.1),
]
for way, ratio in (("workers1.spinning", 2), ("workers2.spinning", 0.01), ("workers2.default", 0.75)):
    for value, percentile in ((3.25, "p50"), (7.75, "p99")):
        figures.append(figure(f"hub.roundtrip.shm.4KiB.{way}.{percentile}", "us", value, "openmpi 4.1, to and fro", 6.5, ratio))
for keys, tall, wide in (("shm.1x64MiB", 12.0, 18.0), ("shm.1024x4KiB", 2.0, 9.0), ("shm.resnet50", 20.0, 42.0), ("tcp.1x64MiB", 80.0, 96.0)):
    name = f"hub.aggregation.{keys}"
    figures.append(figure(f"{name}.tall", "ms", tall, "wide", wide, wide / tall, bytes=6e6))
    figures.append(figure(f"{name}.wide", "ms", wide, bytes=11e6))
for at in (1, 4):
    more = {"sweep": "keys in flight", "series": "shm, 1 worker", "at": at}
    figures.append(figure(f"hub.rate.shm.workers1.in_flight{at}", "k/s", 100.0 * at, **more))
    more = {"sweep": "chunk size in KiB, from end to end", "series": "shm", "at": 4 * at}
    figures.append(figure(f"hub.pushpull.shm.chunk{4 * at}KiB", "ms", 50.0 / at, **more))
write("bench_pushpull", figures)

figures = []
for workers, tall, wide in ((1, 10.0, 21.0), (2, 15.0, 36.0)):
    name = f"hub.aggregate.64MiB.workers{workers}"
    ours, theirs = 4e6 * (workers + 4), 4e6 * (3 * workers + 5)
    figures += [
        figure(f"{name}.tall", "ms", tall, "wide", wide, wide / tall, bytes=ours),
        figure(f"{name}.tall_beside_asleep", "ms", tall, "wide_asleep", 3 * wide, 3 * wide / tall, bytes=ours),
        figure(f"{name}.wide", "ms", wide, bytes=theirs),
        figure(f"{name}.wide_asleep", "ms", 3 * wide, bytes=theirs),
        figure(f"{name}.fused", "ms", tall, "separate", 14.0, 14 / tall),
        figure(f"{name}.fused_in_cache", "ms", tall, "chunkwise", 12.0, 12 / tall),
        figure(f"{name}.separate", "ms", 14.0),
        figure(f"{name}.chunkwise", "ms", 12.0),
        figure(f"{name}.replies", "ms", 19.0, "replies_non_temporal", 9.5, 0.5),
        figure(f"{name}.replies_non_temporal", "ms", 9.5, rounds=2, of_rounds=34),
    ]
more = {"sweep": "chunk size in KiB", "series": "weights alone", "at": 32}
figures.append(figure("hub.aggregate.chunk32KiB.workers4.tall", "ms", 20.0, **more))
write("bench_aggregate", figures)
figures = []
for way, share in (("seal", 0.25), ("check", 0.5)):
    figures.append(figure(f"hub.frame_key.{way}.32KiB", "GB/s", 40 * share, limit="memcpy", of_limit=share))
write("bench_frame_key", figures)
write("bench_partition", [figure("hub.partition.vgg19.servers2", "max/mean", 1.0017, "greedy", 1.0391, 1.04)])
END
python3 make.py

# writes ARGUMENTS...: leaves what was printed in ./stdout and ./stderr.
writes() {
    status=0
    python3 tools/hub_figures.py "$@" >stdout 2>stderr || status=$?
}

writes --rounds 3 --force
[ "$status" -eq 0 ] || complain "hub_figures.py ended with $status: $(cat stderr)"
[ "$(head -n 1 ran)" = 'run build' ] || complain 'it has measured without building'
[ "$(sed -n 2p ran)" = 'run bench hub --rounds 3' ] || complain 'it has measured otherwise than by ./run bench hub'
[ "$(grep -c -- '^build.*--rounds 3' ran)" -eq 4 ] || complain 'wanted four programs of three rounds'
page=docs/HUB_FIGURES.md
contains $page ', 3 rounds: '
contains $page '| this hub | 12.50 |'
contains $page '| ps-lite ipc | 62.50 | 5.25 × |'
if sed -n '/^### 64 MiB over shared memory/,/^###* 64 MiB over TCP/p' $page | grep -q 'MB over the loopback'; then
    complain 'bytes over the loopback interface stand where none were sent'
fi
contains $page '| Open MPI | 18.75 | 1.50 × |'
contains $page 'The rate is 71% of that of copying as many bytes: a formula.'
contains $page '| this hub | 101 |  | 268 |'
contains $page '| shared memory | 4 KiB | 1 | spinning | 3.25 | 7.75 | 6.50 | 6.50 | 2.00 × |'
contains $page '| one of 64 MiB | 2 | 15.00 | 36.00 | 2.40 × | 108 | 7.20 × | 1.83 × |'
contains $page '| 1 | 10.00 | 14.00 | 1.40 × | 12.00 | 1.20 × |'
contains $page '| 2 | 19.00 | 9.50 | 0.50 × |'
contains $page '| VGG-19 | 1.002 (1.039) |'
contains $page '| shared memory | one key each | 1.062 | 10.50 | 21.50 | 22.50 |'
contains $page '| wide, spinning, over tall: one of 64 MiB | ≥ 2 × | 2.10 × to 2.40 × |'
contains $page '| Open MPI over the hub, 4 KiB, one worker, spinning | ≥ 0.5 × | 2.00 × |'
grep -q '| Open MPI over the hub, 4 KiB, two workers, spinning.* | ≥ 0.5 × | 0.01 × |' $page ||
    complain 'the round trip of two workers is not told at a glance'
contains $page '| Open MPI over the hub, 4 KiB, two workers, by default |  | 0.75 × |'
contains $page "| the hub's wide over its tall: 1024 of 4 KiB | ≥ 2 × | 4.50 × |"
contains $page '| shared memory | one of 64 MiB | 12.00 | 18.00 | 1.50 × | 1.83 × |'
contains $page '| TCP | one of 64 MiB | 80.00 | 96.00 | 1.20 × |  |'
contains $page "2 × holds for 1024 of 4 KiB over shared memory (2 workers); ResNet-50's over shared memory (2 workers)."
contains $page 'It does not hold for one of 64 MiB over shared memory (2 workers), and would not by bytes alone either (1.83 ×).'
contains $page 'It does not hold for one of 64 MiB over TCP (2 workers).'
contains $page '2 × holds for one of 64 MiB, spinning (1, 2 workers); one of 64 MiB, asleep (1, 2 workers).'
contains $page '| 32 KiB | 10.00 | 25% | 20.00 | 50% |'
contains $page 'stood alike: 3 to 11. 3 of 33 rounds: `hub.pushpull.shm.64MiB.beside_openmpi`.'
contains $page '2 of 34 rounds: `hub.aggregate.64MiB.workers1.replies_non_temporal`, `hub.aggregate.64MiB.workers2.replies_non_temporal`.'
contains $page '| Open MPI in segments of 256 KiB | 50.50 | 0.50 × |  |'
contains $page "| ps-lite tcp, the machine's bbr | 222 | 2.20 × |  |"
contains $page '| ps-lite as the machine sets TCP up over the hub, TCP |  | 2.20 × |'
contains $page "TCP's congestion control: reno."
contains $page 'Peers: openmpi 4.1, pslite 123.'
if grep -q 'ps-lite over the hub, TCP' $page; then
    complain 'a peer that was not there is told of'
fi

# Every plot that is shown is there, and XML.
grep -o 'plots/[a-z-]*\.svg' $page | sort >shown
(cd docs && ls plots/*.svg) | sort | cmp -s shown - || complain 'the page does not show the plots that were drawn'
[ "$(wc -l <shown)" -ge 9 ] || complain 'plots are missing'
grep -o 'plots/hub-[a-z-]*\.svg' "$PH_SOURCE_DIR/docs/HUB_INTERNALS.md" | sort | cmp -s shown - ||
    complain 'docs/HUB_INTERNALS.md does not show the plots that were drawn'
while read -r plot; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "docs/$plot" || complain "$plot is no XML"
done <shown

# The same page from the folder that was left, without measuring.
cp -r build/bench/hub kept
rm ran
writes --from kept --force --write again/page.md
[ "$status" -eq 0 ] || complain "with --from it ended with $status: $(cat stderr)"
[ ! -e ran ] || complain 'it has measured'
cmp -s $page again/page.md || complain 'the page of the folder is another one'

# A trial says so, and does not take the page's place; what is not there is one line.
writes --quick
[ "$status" -eq 2 ] || complain "--quick without --write ended with $status; wanted 2"
[ "$(wc -l <stderr)" -eq 1 ] || complain 'wanted one line on stderr'
writes --quick --write trial.md
[ "$status" -eq 0 ] || complain "--quick ended with $status: $(cat stderr)"
contains trial.md 'it measures nothing'
writes --quick --force --write docs/page.md
[ "$status" -eq 0 ] || complain "--quick --force ended with $status: $(cat stderr)"

# What was measured beside other work has no place in docs/; elsewhere it may be looked at.
sed -i 's/"others": [^,]*/"others": 1000000/' kept/about.json
writes --from kept
[ "$status" -eq 1 ] || complain "beside a million busy processors it ended with $status; wanted 1"
contains stderr 'others kept 1000000.00 processors busy'
writes --from kept --write again/busy.md
[ "$status" -eq 0 ] || complain "of a busy machine's page elsewhere it ended with $status: $(cat stderr)"
writes --from absent
[ "$status" -eq 1 ] || complain "with no folder it ended with $status; wanted 1"
contains stderr 'bench_aggregate.json is missing'
printf '#!/bin/sh\nexit 5\n' >build/release/bench/hub/bench_pushpull
writes --force
[ "$status" -eq 1 ] || complain "with a program that fails it ended with $status; wanted 1"
contains stderr 'hub_figures: the benchmarks ended with 5'
