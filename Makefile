# Each target works alone on a fresh clone: it needs Python 3.11 or newer (with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
BUNDLE := src/aberra/viewer/static/niivue.js

.PHONY: install bundle demo hello test lint types docs dist dist-check oldest newest bench tables mutants clean

install: $(READY) bundle

# What the installer says goes to a file, and is shown if it fails.
$(READY): pyproject.toml constraints.txt
	@echo "Setting up Aberra in .venv; this happens once and takes a few minutes."
	@echo "  1 of 3  a Python environment" && $(PYTHON) -m venv .venv
	@echo "  2 of 3  its installer"
	@$(BIN)/python -m pip install --upgrade pip >.venv/install.log 2>&1 || { tail -n 20 .venv/install.log; exit 1; }
	@echo "  3 of 3  the libraries, torch among them (about 2 GB)"
	@$(BIN)/python -m pip install --progress-bar off --constraint constraints.txt \
		--editable ".[mri,report,view,bench,dev]" >.venv/install.log 2>&1 & pip=$$!; \
	while kill -0 $$pip 2>/dev/null; do \
		[ ! -t 1 ] || printf '\r          %s libraries found' $$(grep -c ^Collecting .venv/install.log); \
		sleep 1; done; [ ! -t 1 ] || echo; \
	wait $$pip || { grep -v ^WARNING .venv/install.log | tail -n 20; exit 1; }
	@touch $(READY) && echo "Done."

# The viewer draws volumes with NiiVue, which comes from npm; everything else works without it.
ifneq ($(shell command -v npm),)
bundle: $(BUNDLE)
else
bundle:
	@echo "npm is not there, so aberra view will not draw volumes. Install npm, then: make install"
endif

$(BUNDLE): web/package.json web/package-lock.json web/niivue.js
	@cd web && npm ci --ignore-scripts --no-audit --no-fund --silent && npm run --silent bundle \
		|| echo "npm could not fetch NiiVue, so aberra view will not draw volumes. Try make install again."

demo: hello $(READY)
	@$(BIN)/aberra demo

hello:
	@echo "Aberra finds what does not belong, and learns from data that are already dirty."

test: lint types bundle
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

# The site, with every example run and every link within it looked up: docs/_build/html/index.html
docs: $(READY)
	$(BIN)/python docs/build.py

# The wheel and the source archive of this version, with the viewer's bundle inside: dist/
dist: $(READY) $(BUNDLE)
	@test -f $(BUNDLE) || { echo "A release holds the viewer's bundle, which needs npm and its registry."; exit 1; }
	@rm -rf build dist
	@$(BIN)/python -c "import setuptools.build_meta as backend; \
		backend.build_sdist('dist'); backend.build_wheel('dist')" >.venv/dist.log 2>&1 \
		|| { tail -n 20 .venv/dist.log; exit 1; }
	@ls -sh dist

# The wheel alone and with each extra in new environments, used and weighed: results/wheel.md
dist-check: $(READY)
	$(BIN)/python -m benchmarks.wheel

# The tests of tables with the oldest versions that pyproject.toml allows, in an environment of their own.
oldest: $(READY)
	$(BIN)/python -m benchmarks.oldest

# The same with the newest, on another Python: make newest NEXT=python3.13
NEXT ?= $(PYTHON)
newest: $(READY)
	$(BIN)/python -m benchmarks.oldest --newest --python $(NEXT)

bench: $(READY)
	$(BIN)/python -m benchmarks.speed

# Every table and figure of the papers anew from the stored cells, and their counts on the pages: results/
tables: $(READY)
	$(BIN)/aberra reproduce all --profile small --draw
	$(BIN)/python docs/figures.py

# Small changes to the heart of the library, and whether the fast tests notice them. Takes an hour or more;
# what is in results/mutants.jsonl is not tried again, so move that away to begin anew.
mutants: $(READY)
	$(BIN)/python -m benchmarks.mutants run
	$(BIN)/python -m benchmarks.mutants table

clean:
	rm -rf .venv build dist aberra-demo docs/_build docs/api docs/gallery docs/project docs/results
