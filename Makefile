# Every target sets up what it needs in .venv by itself; once that is done it costs a few milliseconds.
# Three levels: `run` installs requirements.txt alone, `site` requirements-docs.txt, the others requirements-dev.txt: the
# same versions, and the tools.
# The program is used in place: a .pth file in .venv points at .types, whose link `millstream` is this folder.

# -P: the current folder never stands in for an installed module.
PY = .venv/bin/python -P
RUN_COMMAND ?= $(PY) -m millstream demo
PYTEST_ARGS ?=
# Forks that share the whole suite, a file each at a time; a part of it is run by none (tests/support/forked.py). Many
# tests wait for a process or a page, so there are five more than cores.
PYTEST_FORKS ?= $(if $(PYTEST_ARGS),0,$(shell echo $$(($(cores) + 5))))
PYTHON ?=

LOCK = .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --no-header --no-emit-index-url --upgrade pyproject.toml

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test long quick durations check format reference pictures site coverage bench rivals gateway load conversations conversations-full torture reliability mutation intervals pages extraction wheel release sbom without lock runtime docs tools

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

run: runtime ## the demo: a full grid against the simulated provider, on loopback
	@$(RUN_COMMAND)

# Bytecode is kept, whatever the environment says: hundreds of processes read the same modules. What tests write is in
# memory where there is enough of it: else half of their time would go to waiting for a disk.
test: tools ## the test suite without its long tests (PYTEST_ARGS="tests/engine -k lane" for a part, with them)
	@sh tests/browser/install-browser.sh
	@sh tests/engine/shared/install-redis.sh
	@$(compiled)
	@$(pytest) --forks $(PYTEST_FORKS) $(if $(PYTEST_ARGS),$(PYTEST_ARGS),$(without_long))

# They compute more than they wait: as many forks as `test` has would stretch what others measure.
long: tools ## the long tests: comparisons with other programs, load tests against servers of known laws (some 15 minutes)
	@$(compiled)
	@$(pytest) --forks $(shell echo $$(($(cores) + 1))) -o faulthandler_timeout=0 -m long

# The markers are set from what tests use: tests/support/needs.py. Files of which none is left are not even imported.
quick: tools ## the tests that need no other process, browser, node or official client, without the slow ones
	@$(compiled)
	@$(pytest) -q --forks $(if $(PYTEST_ARGS),0,$(shell echo $$(($(cores) + 2)))) \
		-m "not process and not browser and not node and not sdk and not slow and not long" $(PYTEST_ARGS)

durations: ## the whole suite, whose durations are written to tests/durations.json, on an idle machine (PYTEST_ARGS for a part and its rows)
	@MILLSTREAM_DURATIONS=1 $(MAKE) test without_long=

pytest = PYTHONDONTWRITEBYTECODE= PYTEST_DEBUG_TEMPROOT=$(memory) $(PY) -m pytest -c tests/pytest.ini --rootdir=.
without_long = -m "not long"
cores = $(shell getconf _NPROCESSORS_ONLN)
# By both cores, since the tests are collected by one process.
compiled = $(PY) -m compileall -q -j 0 bench configuration engine fixtures interfaces metrics providers report speed wiring tests/support
memory = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4 * 1024 * 1024 { print "/dev/shm" }')

check: tools ## style, types, the floors of the house, known vulnerabilities; which models in the docs retire soon
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --strict -p millstream
	.venv/bin/lint-imports --no-logo
	@$(PY) .ci/audit.py
	@$(PY) .ci/retiring.py

format: tools ## mend what style and format can mend by themselves
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

pictures: tools ## the pictures of the README: a recorded terminal and a report (needs a chromium)
	@$(PY) .ci/pictures.py $(ARGS)

reference: tools ## docs/reference.md: every public name, from the documentation in the source
	@$(PY) .ci/reference.py

site: docs ## the site in build/site, from docs/, README and the parsers; a dead link fails it
	@$(PY) .ci/site.py

covered = COVERAGE_FILE=build/coverage PYTHONDONTWRITEBYTECODE= PYTEST_DEBUG_TEMPROOT=$(memory) \
	$(PY) -m pytest -c tests/pytest.ini --rootdir=. -q -o timeout=600 \
	--cov=millstream.engine --cov=millstream.metrics --cov-branch

# What machines share is tested in-process against a server that is another process: it comes second.
coverage: tools ## lines and branches of engine and metrics that the tests in-process run: 95% at least (some 15 minutes)
	@sh tests/engine/shared/install-redis.sh
	@$(covered) --forks $(cores) -m "not process and not browser and not node" --cov-report=
	@$(covered) --cov-append -m "not long" --cov-report=term-missing:skip-covered --cov-fail-under=95 tests/engine/shared

bench: tools ## ms.Engine and run millstone beside the floor and bare aiohttp, memory, frames a call (ARGS="--rounds 3 --calls 10000 calls" for a look)
	@sh speed/install-servers.sh
	@$(compiled)
	@$(PY) -m millstream.speed $(ARGS)

rivals: tools ## ms.Engine and the gateway beside other clients, harnesses and load generators, a row each (installs them; some 25 minutes)
	@sh speed/install-servers.sh
	@$(compiled)
	@$(PY) -m millstream.speed.rivals $(ARGS)

gateway: tools ## the gateway's speed: stored answers a second, what it adds to a call, and ten heavy bodies at once (some 4 minutes)
	@$(PY) -m millstream.speed.gateway
	@MILLSTREAM_BODY_MIB=15.9 $(PY) -m pytest -c tests/pytest.ini --rootdir=. -q -s tests/interfaces/gateway/test_heavy_bodies.py

load: tools ## whether a load test tells the truth: laws, nginx, arrivals, stalls, our own part (some 40 minutes)
	@sh speed/install-servers.sh
	@$(PY) -m millstream.speed.load

conversations: tools ## 60 conversations over 5,000 simulated pages: the lanes' rate, the loop's stalls, memory (some 3 minutes)
	@$(PY) -m millstream.speed.conversations

conversations-full: tools ## all 1,180 conversations against the simulated outside, nothing holding them up (some 10 minutes)
	@$(PY) -m millstream.speed.conversations --full

torture: tools ## the long attack on every promise, a line each; goes on where it stopped (ARGS="1 7" for some; some three to four hours)
	@$(PY) .ci/torture.py $(ARGS)

reliability: tools ## docs/reliability.md and the table of the README, from what the last torture found
	@$(PY) .ci/torture.py --page

mutation: tools ## small changes to the heart of the program, each against its tests (ARGS="--each 3 engine/key.py"; about an hour)
	@$(PY) .ci/mutation.py $(ARGS)

intervals: tools ## how often confidence intervals hold the truth, simulated: the tables of docs/intervals.md (some 15 minutes)
	@MILLSTREAM_TORTURE=long $(PY) -m pytest -c tests/pytest.ini --rootdir=. -q -s -o timeout=1800 -o faulthandler_timeout=0 \
		tests/metrics/statistics/test_coverage.py tests/metrics/statistics/test_coverage_of_shares.py \
		tests/metrics/statistics/test_coverage_of_figures.py -k hold

pages: tools ## pages at length: 500 fuzzed ones, and every real one of this machine (or of MILLSTREAM_PAGES=folder:folder)
	@MILLSTREAM_TORTURE=long MILLSTREAM_PAGES_MAX=5000 $(PY) -m pytest -c tests/pytest.ini --rootdir=. -s -o timeout=1800 \
		tests/providers/pages/test_real_pages.py tests/providers/pages/test_extraction.py

extraction: tools ## pages to texts beside bare trafilatura: PAGES=FOLDER, the `tests` of a checkout of it (some 8 minutes)
	@$(PY) -m millstream.speed.pages $(PAGES) $(ARGS)

wheel: tools ## wheel, source archive and repository, installed by every Python's own pip into an empty environment, which runs the demo (some 2 minutes each)
	@MILLSTREAM_WHEELS=1 $(PY) -m pytest -c tests/pytest.ini --rootdir=. -q -rP -o timeout=900 -o faulthandler_timeout=0 tests/test_wheel.py -k installed_demo

release: tools ## wheel, source archive and the list of parts in build/release; not while the docs name models that retire soon
	@$(PY) .ci/retiring.py --release
	@rm -rf build/release; mkdir -p build/release
	@$(PY) -c 'from setuptools import build_meta as b; b.build_sdist("build/release"); b.build_wheel("build/release")' >/dev/null 2>&1
	@rm -rf build/lib build/bdist.*
	@$(PY) .ci/sbom.py build/release/millstream.cdx.json
	@cd build/release && sha256sum * > SHA256SUMS && cat SHA256SUMS

sbom: tools ## what an installation is made of, with versions and hashes: build/millstream.cdx.json (CycloneDX)
	@mkdir -p build; $(PY) .ci/sbom.py build/millstream.cdx.json && echo build/millstream.cdx.json

without: tools ## everything but one benchmark, whose rooms are taken away: BENCHMARK=NAME (PYTEST_ARGS for a part of the tests)
	@PYTHONDONTWRITEBYTECODE= PYTEST_DEBUG_TEMPROOT=$(memory) \
		$(PY) .ci/without.py $(BENCHMARK) --forks $(PYTEST_FORKS) $(PYTEST_ARGS)

lock: tools ## choose versions anew, within pyproject.toml
	$(LOCK) --output-file requirements.txt
	$(LOCK) --group dev --constraints requirements.txt --output-file requirements-dev.txt
	$(LOCK) --group docs --constraints requirements-dev.txt --output-file requirements-docs.txt

runtime:
	$(if $(call stale,run,requirements.txt),$(call install,run,requirements.txt))

# What the site needs, a tenth of all tools; where these are there already, nothing.
docs:
	$(if $(and $(call stale,docs,requirements-docs.txt),$(call stale,dev,requirements-dev.txt)),$(call install,docs,requirements-docs.txt))

tools:
	$(if $(call stale,dev,requirements-dev.txt),$(call install,dev,requirements-dev.txt))
	$(if $(metadata_stale),$(write_metadata))
	$(if $(mock_stale),$(install_mock))
	$(if $(clients_stale),$(install_clients))

# A set-up is known by its lock and by this folder's place, which the scripts in .venv/bin have in their first line.
key = "$$(cksum < $(1)) $$(pwd)"
stale = $(shell test "$$(cat .venv/ready-$(1) 2>/dev/null)" = $(call key,$(2)) && test -e .types/millstream/Makefile || echo stale)

# $(1): level, $(2): lock. The marks go first and come back last, so that an interrupted set-up starts again from nothing;
# a set-up of the first level that is whole is built upon. The locks are whole too: with --no-deps pip chooses nothing.
define install
@set -e; \
test -z '$(call stale,run,requirements.txt)' || '$(or $(base_python),$(error $(no_python)))' -m venv --clear .venv; \
rm -f .venv/ready-*; \
echo "setting up .venv from $(2) (once)" >&2; \
.venv/bin/python -m pip install -qq --no-compile --no-input --disable-pip-version-check --no-deps --require-hashes -r $(2); \
mkdir -p .types; ln -sfn .. .types/millstream; \
printf '../../../../.types\n' > "$$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/millstream.pth"; \
printf '#!/bin/sh\nexec "%s/.venv/bin/python" -P -m millstream "$$@"\n' "$$(pwd)" > .venv/bin/millstream; \
chmod +x .venv/bin/millstream; \
printf '%s\n' $(call key,requirements.txt) > .venv/ready-run; \
test $(1) = run || printf '%s\n' $(call key,$(2)) > .venv/ready-$(1)
endef

# What the project offers to other programs (its entry points) is found by them beside the link, as if it were installed.
metadata_stale = $(shell test "$$(cat .types/ready-metadata 2>/dev/null)" = $(call key,pyproject.toml) || echo stale)
define write_metadata
@set -e; mkdir -p .types; rm -rf .types/ready-metadata .types/millstream-*.dist-info; \
$(PY) -c 'from setuptools import build_meta; build_meta.prepare_metadata_for_build_wheel(".types")' >/dev/null; \
rm -rf .types/millstream.egg-info; \
printf '%s\n' $(call key,pyproject.toml) > .types/ready-metadata
endef

# The mock that is no Python, for who has node; without it its tests say that they are skipped, and why.
mock = tests/mock/node_modules
mock_stale = $(shell command -v npm >/dev/null && test "$$(cat $(mock)/ready 2>/dev/null)" != $(call key,tests/mock/package-lock.json) && echo stale)
define install_mock
@set -e; echo "setting up $(mock) (once)" >&2; \
npm ci --prefix tests/mock --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
printf '%s\n' $(call key,tests/mock/package-lock.json) > $(mock)/ready
endef

# The official clients that are no Python, on the same terms.
clients = tests/node/node_modules
clients_stale = $(shell command -v npm >/dev/null && test "$$(cat $(clients)/ready 2>/dev/null)" != $(call key,tests/node/package-lock.json) && echo stale)
define install_clients
@set -e; echo "setting up $(clients) (once)" >&2; \
npm ci --prefix tests/node --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
printf '%s\n' $(call key,tests/node/package-lock.json) > $(clients)/ready
endef

# ensurepip is what Debian leaves out of python3; without it there is no venv.
base_python = $(shell for python in $(if $(PYTHON),'$(PYTHON)',python3 python3.13 python3.12 python3.11); do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& command -v "$$python" && break; done)
no_python = no usable $(or $(PYTHON),python3) found: Millstream needs Python 3.11 or newer with its venv module \
	(Debian: apt-get install python3-venv); another interpreter is named by PYTHON=/path/to/python3
