# `make course` builds, releases and grades everything; `make test` runs the tests, `make test-all` the slow ones too.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
AUTOGRADER := $(abspath $(BIN)/python) -m autograder
STAMP := .venv/.installed
# nbgrader calls some of its tools by name
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# the book is built with its published seeds and with figures, whatever the reader's shell has set
unexport BOOK_SEEDS BOOK_FEWER BOOK_CLAIMS MPLBACKEND
# chapters run side by side, one on each processor
export OMP_NUM_THREADS := 1

.PHONY: course test test-all book short-book replicate pyodide editor release audit serve benchmark benchmark-site lint lock clean
.DEFAULT_GOAL := course

course: release book
	cd examples && $(AUTOGRADER) grade && $(AUTOGRADER) feedback && $(AUTOGRADER) report
	cd examples/statistics && $(AUTOGRADER) release && $(abspath $(BIN)/python) three_students.py && \
	  $(AUTOGRADER) grade && $(AUTOGRADER) feedback
	@$(BIN)/python examples/what_was_made.py

# One installation: again only when the pins or the package's own metadata change.
install: $(STAMP)
$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one: make course PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check -q --no-deps --no-build-isolation -e .
	touch $@

BOOK_AT := .
# For `make test`: a fifth of the runs of each experiment (most have five), and no claim ends the build.
short-book: BOOK_AT := _build/short
short-book: export BOOK_FEWER := 5
short-book: export BOOK_CLAIMS := /dev/null
book short-book: $(STAMP)
	@$(BIN)/python tools/execute_chapters.py $(BOOK_AT)
	$(BIN)/jupyter-book build book/ --config _config.yml --toc "$(CURDIR)/_toc.yml" --path-output $(BOOK_AT) -W --keep-going -q

# Do the chapters' claims hold for seeds that nobody has looked at?
# make replicate SEEDS="11 12" CHAPTERS=self-attention; without SEEDS a set is drawn, without CHAPTERS all run.
replicate: $(STAMP)
	$(BIN)/python tools/replicate.py $(SEEDS:%=--seeds %) $(CHAPTERS)

# Python for the live cells on a site of one's own: DIST is Pyodide's full distribution, an archive or a folder.
pyodide: $(STAMP)
	@test -n "$(DIST)" || { echo "Say where Pyodide is: make pyodide DIST=pyodide-0.27.7.tar.bz2"; exit 1; }
	@$(BIN)/python tools/self_host_pyodide.py "$(DIST)"

# The live cells' editor, bundled anew from npm with the versions of its package-lock.json (needs node).
editor:
	set -e; work=$$(mktemp -d); trap 'rm -rf "$$work"' EXIT; \
	cp tools/live_editor/* "$$work"; cd "$$work"; \
	npm ci --no-audit --no-fund --ignore-scripts; node build.mjs "$(CURDIR)/book/_ext/live_cells/site"

# The README's pictures, taken from the built course (needs chromium).
.PHONY: pictures
pictures: course
	$(BIN)/python tools/pictures.py

release: $(STAMP)
	$(AUTOGRADER) release

# What Binder and Colab open: the chapters as notebooks, the released sets, the data beside them, and what Binder has to install.
.PHONY: notebooks
notebooks: book
	rm -rf _build/notebooks && mkdir _build/notebooks
	cp _build/html/_sources/*.ipynb book/data/*/* assignments/*/*.ipynb _build/notebooks/
	grep -E '^(numpy|matplotlib|torch|scikit-learn|jupyterquiz|rapidfuzz|jupyterlab)==' requirements.txt > _build/notebooks/requirements.txt

audit: $(STAMP)
	$(AUTOGRADER) audit

# Lint, and all but what is marked slow, on a short book, three tests at a time on two processors, for browsers wait; the long audits not last.
# `make test T=rebuild` runs what the name fits, and nothing else.
WORKERS ?= 3
PYTEST := $(BIN)/python -m pytest
ALL := -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder
ifdef T
test: $(STAMP)
	$(PYTEST) -q $(or $(wildcard tests/*/test_$(T).py),-k "$(T)")
else
test: $(STAMP)
	SHORT_BOOK=1 $(PYTEST) $(ALL) -m "not slow"
endif

# On the whole book; also a thousand students, hostile submissions once more as an ordinary user, and each set's whole audit.
test-all: $(STAMP)
	$(PYTEST) $(ALL)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

benchmark: $(STAMP)
	$(BIN)/python benchmarks/grading.py --feedback
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/hostile_class.py

# What each page weighs, and what Lighthouse says where it is installed (npm install --global lighthouse).
benchmark-site: book
	$(BIN)/python benchmarks/site.py $(if $(shell command -v lighthouse),--lighthouse)

serve:
	@echo "The book: http://localhost:8000  (Ctrl-C ends it)"
	@$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory _build/html

# New exact pins from pyproject.toml, in a throw-away environment so that pip-tools is no dependency.
lock:
	tools=$$(mktemp -d) && $(PYTHON) -m venv $$tools && $$tools/bin/pip install -q pip-tools && \
	$$tools/bin/pip-compile -q --all-extras --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-emit-options --no-annotate --no-header --allow-unsafe \
	  --output-file requirements.txt pyproject.toml && \
	sed -i -e 's/+cpu$$//' -e '/considered to be unsafe/d' \
	  -e '1i # Exact pins, compiled from pyproject.toml by `make lock`. Do not edit by hand.' requirements.txt; \
	rm -rf $$tools

clean:
	rm -rf _build examples/autograded examples/feedback examples/results examples/report examples/gradebook.db
	cd examples/statistics && rm -rf assignments submitted autograded feedback results gradebook.db book/_build source_solutions/*/*.ipynb
