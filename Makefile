# Every target works alone on a fresh clone: what it needs is installed into .venv first.
# Needed beforehand: make, and Python >= 3.11 with its venv module.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pip runs at once in one environment would corrupt it.
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Other libraries want an older scikit-learn, so they live in an environment of their own.
OTHERS := .venv-third-party
OLDEST := .venv-oldest

# What `make report` and `make bench-audit` compute: --help of either command lists the
# profiles.
PROFILE ?= quick
# Worker processes of pytest: a number, or auto for one per core.
WORKERS ?= auto

# Without bytecode, each process compiles all that it imports: four seconds of them.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help .venv test test-all tables lint types audit report browser first-contact extras image docs bench bench-audit third-party oldest mutants portability constraints clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' \
		$(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  PROFILE=$(PROFILE) (report, bench-audit)   WORKERS=$(WORKERS) (test, test-all, audit)"

# One stamp per set of extras, so that `make report` does not wait for linters; pip runs
# again only if the declared or the pinned requirements change. Several sets are installed
# at once by .venv/.ONE,OTHER, which is half the work.
.venv: $(VENV)/.test,lint,bench ## create .venv with everything a developer needs

COMMA := ,
$(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@ $(addprefix $(VENV)/.,$(subst $(COMMA), ,$*))

$(BIN)/python:
	@for python in $(PYTHON) python3.11 python3 python3.14 python3.13 python3.12; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
			|| continue; \
		"$$python" -m venv --clear $(VENV) && exit 0; \
		echo "$$python could not create $(VENV): is its venv module installed" >&2; \
		echo "(package python3-venv on Debian and Ubuntu)?" >&2; \
		exit 1; \
	done; \
	echo "dpaudit needs Python >= 3.11, and none was found. Install one, or name it:" >&2; \
	echo "  make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1

# The workers already fill the cores: BLAS threads on top would only fight over them.
test test-all audit extras third-party oldest: export OPENBLAS_NUM_THREADS := 1
test test-all audit extras third-party oldest: export OMP_NUM_THREADS := 1
test test-all audit extras third-party oldest: export MKL_NUM_THREADS := 1

# In stretches, so that what the tests of a file share is made once and not in every
# process; who is done takes from who is not.
test: $(VENV)/.test ## run the whole suite: tests/, audit/checks/, doctests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-all: $(VENV)/.test ## the same, and what takes minutes each: hours
	$(BIN)/python -m pytest -n $(WORKERS) -m ""

audit: $(VENV)/.test ## run the statistical audits of the catalogue only
	$(BIN)/python -m pytest -n $(WORKERS) audit/

# How many faults, and from which seed they are drawn.
COUNT ?= 200
SEED ?= 0

mutants: $(VENV)/.mutants ## plant small faults in the code, see which the tests notice: an hour
	$(BIN)/python .ci/mutants.py map
	$(BIN)/python .ci/mutants.py draw --count $(COUNT) --seed $(SEED) > build/mutants/drawn.json
	$(BIN)/python .ci/mutants.py run build/mutants/drawn.json

# SETTINGS="haswell busy": these alone.
portability: $(VENV)/.test ## the tests as on other machines (build/portability/): an hour
	$(BIN)/python .ci/portability.py $(SETTINGS)

# No network: a page that fetches something, or a link that leads nowhere, is an error.
docs: $(VENV)/.docs ## write the documentation as a site to build/docs/
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --quiet \
		--jobs auto --doctree-dir build/doctrees docs build/docs
	$(BIN)/python .ci/pages.py build/docs

tables: $(VENV)/.test ## write anew what pages quote: tables, helps, the glossary
	$(BIN)/python docs/tables.py

lint: $(VENV)/.lint ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint ## mypy (strict) and pyright (basic)
	$(BIN)/pyright --pythonpath $(BIN)/python & $(BIN)/mypy; mypy=$$?; \
		wait $$! && exit $$mypy

# SECTIONS="privacy suite": these alone, and the pages that every report has.
report: $(VENV)/.test ## write the comparison report to build/report/
	$(BIN)/dpaudit report --profile $(PROFILE) $(SECTIONS:%=--section %) \
		--output build/report

# A process for each site: the tests of one share what the browser saw of it.
browser: export DPAUDIT_SCREENSHOTS := build/screenshots
browser: LOOK := $(BIN)/python -m pytest -n 0 tests/reports/test_in_a_browser.py
browser: $(VENV)/.test $(VENV)/.browser ## look at the written pages in a Chromium (build/screenshots/)
	DPAUDIT_SITES=build/report $(LOOK) & \
		DPAUDIT_SITES=build/docs $(LOOK) -k no_page_has_a_fault; docs=$$?; \
		wait $$! && exit $$docs

# Tests that are left out where the extras are not installed.
extras: $(VENV)/.test,cluster,parquet,zarr ## audits on a Dask cluster, files of Parquet and Zarr
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile tests/audit/test_cluster.py \
		tests/vocabulary/test_gram.py tests/cli/test_cli_bound.py \
		tests/cli/test_cli_export.py tests/cli/test_cli_pairs.py

first-contact: $(VENV)/.test ## what a stranger does with the wheel alone, timed
	$(BIN)/python .ci/first_contact.py

image: ## build the image of the Dockerfile, and run an audit in it (needs docker)
	docker build --tag dpaudit .
	docker run --rm --network none --read-only --tmpfs /tmp dpaudit \
		audit symmetric-noise --refine 0 || [ $$? = 1 ]

bench-audit: $(VENV)/.test ## audit the auditor: coverage, tightness, speed (build/bench/)
	$(BIN)/dpaudit bench-audit --profile $(PROFILE) --output build/bench \
		--also benchmarks.styles.study:REPORTED

# Releases a side that take minutes: eigenvectors take up to a second each.
THEIRS := diffprivlib-bingham:1000 diffprivlib-pca:300 diffprivlib-laplace:200000 \
	diffprivlib-gaussian:200000 diffprivlib-gaussian-analytic:200000 \
	opendp-eigenvector:1000 opendp-pca:500 opendp-pca-centred:300 opendp-laplace:50000 \
	opendp-gaussian:50000

third-party: $(OTHERS)/.installed ## audit other libraries, compare their PCA (build/third-party/)
	$(OTHERS)/bin/python -m pytest tests/algorithms/third_party \
		tests/audit/replay/test_real_libraries.py \
		tests/audit/replay/test_real_training.py tests/reports/test_tour.py
	$(OTHERS)/bin/dpaudit report libraries --output build/third-party
	for each in $(THEIRS); do name=$${each%:*}; $(OTHERS)/bin/dpaudit audit $$name \
		--max-samples $${each#*:} --to-the-end --store build/third-party/audits.db \
		--witness build/third-party/$$name.json || [ $$? = 1 ] || exit; done
	$(OTHERS)/bin/dpaudit report tour --output build/third-party

$(OTHERS)/.installed: pyproject.toml constraints-third-party.txt | $(BIN)/python
	$(BIN)/python -m venv --clear $(OTHERS)
	$(OTHERS)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints-third-party.txt \
		--editable '.[test,opendp,diffprivlib,jax-privacy,tour]'
	@touch $@

# Their warnings of what newer versions of others will not have are none of ours.
oldest: $(OLDEST)/.installed ## the tests with the oldest versions that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal \
		-W ignore::DeprecationWarning --ignore tests/project

$(OLDEST)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m venv --clear $(OLDEST)
	for set in dependencies test; do \
		sed -n "/^$$set = \[/,/^\]/s/.*\"\(.*\)>=\(.*\)\".*/\1==\2/p" pyproject.toml; \
	done > $(OLDEST)/oldest.txt
	$(OLDEST)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint $(OLDEST)/oldest.txt --editable '.[test]'
	@touch $@

# asv makes environments of its own for the committed state; they get the same versions.
# What is imported is compiled then; compiling all takes twenty seconds.
bench: export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
bench: export PIP_NO_COMPILE := 1
bench: $(VENV)/.bench ## run the benchmarks once on HEAD (airspeed velocity)
	$(BIN)/asv machine --yes
	$(BIN)/asv run --quick --show-stderr

constraints: | $(BIN)/python ## pin the newest versions that pyproject.toml allows (needs Python 3.11)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "constraints are made with Python 3.11" >&2; exit 1; }
	@set -e; for pins in constraints.txt=test,lint,bench,browser,docs,mutants,cluster,parquet,zarr \
			constraints-third-party.txt=test,opendp,diffprivlib,jax-privacy,tour; do \
		file=$${pins%%=*}; \
		$(BIN)/python -m venv --clear build/constraints; \
		build/constraints/bin/python -m pip install --quiet --upgrade pip; \
		build/constraints/bin/python -m pip install --quiet --editable ".[$${pins#*=}]"; \
		{ sed '/^[^#]/,$$d' "$$file"; \
			build/constraints/bin/python -m pip freeze --all --exclude-editable \
				--exclude pip --exclude dpaudit; } > "build/$$file"; \
		mv "build/$$file" "$$file"; \
	done
	rm -r build/constraints

clean: ## remove everything that make created
	rm -rf $(VENV) $(OTHERS) $(OLDEST) build docs/api dist .asv *.egg-info
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -r {} +
