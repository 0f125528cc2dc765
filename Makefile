# Each target works alone on a fresh clone: it needs Python 3.11 or newer (with venv) and make.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: install demo test lint types bench clean

install: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[mri,report,view,bench,dev]"
	touch $(READY)

demo: $(READY)
	$(BIN)/aberra demo

test: lint types
	$(BIN)/python -m pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf .venv build dist aberra-demo
