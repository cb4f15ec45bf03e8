#!/usr/bin/env bash
# Makes kept.tar.gz anew with the program of this checkout: see README.md. It needs the ports 18231 and 18232, and the
# folders /kept and /opt/millstream, which must not exist and are removed at the end.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python="$root/.venv/bin/python"
mkdir /kept /opt/millstream
server=
trap 'test -z "$server" || kill "$server"; rm -rf /kept /opt/millstream' EXIT
git -C "$root" archive HEAD | tar x -C /opt/millstream
millstream() { (cd /kept && PYTHONPATH=/opt "$python" -m millstream "$@"); }

cat > /kept/prices.toml <<'TOML'
[prices."sim/open"]
input = 1.0
output = 2.0
[lanes."web/*"]
rpm = 60000
concurrency = 8
TOML
for n in 0 1 2 3 4 5; do
    echo '{"custom_id": "r'$n'", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "sim/steady",' \
        '"messages": [{"role": "user", "content": "Question '$n': A or B?"}], "max_tokens": 16}}'
done > /kept/in.jsonl
echo '{"custom_id": "torn"' >> /kept/in.jsonl

(cd /tmp && PYTHONPATH=/opt exec "$python" -m millstream sim --port 18231 --web --web-port 18232 --trouble-share 0 \
    --latency constant:0.02) > /dev/null 2>&1 &
server=$!
until curl -s -o /dev/null http://127.0.0.1:18231/v1/models && curl -s -o /dev/null http://127.0.0.1:18232/; do sleep 0.1; done

where=(--base-url http://127.0.0.1:18231/v1)
sending=(--cache cache --config prices.toml --no-progress --no-report)
grid=(--model sim/open --templates 2 --trials 2 --max-cost 5)
millstream run millstone "${grid[@]}" --limit 2 "${where[@]}" "${sending[@]}" --rpm 6000 --out answers
(cd /kept && PYTHONPATH=/opt exec "$python" -m millstream run millstone "${grid[@]}" --limit 4 "${where[@]}" "${sending[@]}" \
    --concurrency 2 --out killed) &
killed=$!
until [ "$(cat /kept/killed/records.jsonl 2> /dev/null | wc -l)" -gt 100 ]; do sleep 0.01; done
kill -9 $killed
wait $killed || true
SEARXNG_BASE_URL=http://127.0.0.1:18232 millstream run chameleon --model sim/open --judge sim/judge --temperature 0 \
    --conversations 2 --turns 2 --pages 2 --uncited literal --search searxng --allow-host '*.sim.test=127.0.0.1:18232' \
    "${where[@]}" "${sending[@]}" --out turns
millstream batch in.jsonl out.jsonl "${where[@]}" --cache cache --no-progress || [ $? = 3 ]
millstream load sim/open --rate 40 --duration 2 --prompt-tokens 50 --max-tokens 16 "${where[@]}" --no-progress --no-report \
    --out load
millstream cache export answers answers.snapshot --cache cache
for run in answers killed turns; do millstream score $run --json > /kept/$run.scores.json; done
millstream cache stats --cache cache --json > /kept/cache.stats.json
find /kept -name .reserve -delete -o -name lock.mdb -delete -o -name '*.lock' -delete -o -name .lock -delete \
    -o -name 'leases*' -delete
tar c -C /kept --sort=name --owner=0 --group=0 . | gzip -9 > "$here/kept.tar.gz"
