# `make demo` and `make test` set up everything they need. A second call takes seconds.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
TRAINERS := .venv-trainers
PORT ?= 8000
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo ablation test test-image test-trainers bench serve lint lock clean

demo: $(VENV)/.train
	$(BIN)/python manage.py demo --port $(PORT) $(if $(STEPS),--steps $(STEPS)) $(if $(FRESH),--fresh)

# Five methods, three seeds, a real server; 32 minutes of processor time, and goes on where it was stopped.
ablation: export GAGAR_DATA_DIR ?= var/ablation
ablation: $(VENV)/.train
	$(BIN)/python manage.py ablation --port $(PORT) $(if $(STEPS),--steps $(STEPS)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(METHODS),--methods $(METHODS))

serve: $(VENV)/.web
	$(BIN)/python manage.py serve --port $(PORT)

# What kills servers, and what drives a browser, run in processes of their own.
test: $(VENV)/.train
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not browser and not alone" $(ARGS)
	$(BIN)/python -m pytest -m alone $(ARGS)
	$(BIN)/python -m pytest -n auto --maxprocesses 2 --dist loadfile -m browser $(ARGS)
	$(BIN)/python -m tests.on_services

# The image, built without a network on a base of Debian packages, and each role of compose.yaml on local services.
test-image: $(VENV)/.web
	$(BIN)/python -m pytest -s tests/containers/on_real_image.py $(ARGS)

# Real TRL and verl on the CPU, in an environment of their own (about 2 GB), against a server from this checkout.
test-trainers: $(VENV)/.web $(TRAINERS)/.made
	$(TRAINERS)/bin/python -m pytest -c tests/trainers/pytest.ini --rootdir . --confcutdir tests/trainers tests/trainers $(ARGS)

lint: $(VENV)/.web
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

# Delivery and graders under faults at their full counts (`make test` has the short form), 10,000 groups a property;
# delivery again on PostgreSQL where it answers. Takes an hour or more, and prints the counts it reached.
chaos: $(VENV)/.web
	GAGAR_CHAOS=4 $(BIN)/python -m pytest -m alone --timeout 1200 tests/test_killed_graders.py
	GAGAR_CHAOS=4 $(BIN)/python -m pytest --timeout 3600 tests/chaos tests/training_bridge/test_payload_properties.py
	GAGAR_CHAOS=4 $(BIN)/python -m tests.on_services --chaos

bench: $(VENV)/.train
	$(BIN)/python -m bench

lock: $(VENV)/.web
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --quiet --generate-hashes --no-annotate --no-header \
		--extra web --extra grader --extra export --extra tensorboard --extra dev pyproject.toml --output-file requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --quiet --generate-hashes --no-annotate --no-header \
		--extra web --extra grader --extra export --extra tensorboard --extra s3 --constraint requirements.lock pyproject.toml \
		--output-file requirements-image.lock

$(VENV)/.web: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements.lock
	touch $@

# torch stands apart: a CPU build where pip's own configuration offers one, else the default wheel (see README).
$(VENV)/.train: requirements-train.txt $(VENV)/.web
	$(BIN)/python -m pip install --quiet --requirement requirements-train.txt
	touch $@

$(TRAINERS)/.made: requirements-trainers.txt requirements-train.txt
	test -x $(TRAINERS)/bin/python || $(PYTHON) -m venv $(TRAINERS)
	$(TRAINERS)/bin/python -m pip install --quiet --requirement requirements-trainers.txt
	touch $@

clean:
	rm -rf $(VENV) $(TRAINERS) .venv-peers var build
