# `make demo` and `make test` set up everything they need. A second call takes seconds.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test bench serve lint lock clean

demo: $(VENV)/.train
	$(BIN)/python manage.py demo --port $(PORT) $(if $(STEPS),--steps $(STEPS)) $(if $(FRESH),--fresh)

serve: $(VENV)/.web
	$(BIN)/python manage.py serve --port $(PORT)

# What kills servers, and what drives a browser, run in processes of their own.
test: $(VENV)/.train
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not browser and not alone" $(ARGS)
	$(BIN)/python -m pytest -m alone $(ARGS)
	$(BIN)/python -m pytest -m browser $(ARGS)
	$(BIN)/python -m tests.on_services

lint: $(VENV)/.web
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

bench: $(VENV)/.train
	$(BIN)/python -m bench

lock: $(VENV)/.web
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --quiet --generate-hashes --no-annotate --no-header \
		--extra web --extra dev pyproject.toml --output-file requirements.lock

$(VENV)/.web: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	touch $@

# torch stands apart: a CPU build where pip's own configuration offers one, else the default wheel (see README).
$(VENV)/.train: requirements-train.txt $(VENV)/.web
	$(BIN)/python -m pip install --quiet --requirement requirements-train.txt
	touch $@

clean:
	rm -rf $(VENV) var
