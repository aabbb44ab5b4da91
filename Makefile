# What one does with the tree; `make` alone lists it. Recording needs root.
PREFIX ?= /usr/local
SEEDS ?= 5
ROUNDS ?= 5
FUZZ ?= 60
HOURS ?= 2
COUNT ?= 150
FRESH ?= 50

export PATH := $(PATH):$(HOME)/.cargo/bin

AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo)
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Nothing is measured with it, so what builds fastest serves.
HANGDOG := $(TARGET)/debug/hangdog
RELEASE := $(TARGET)/release/hangdog

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install what is missing to build and test (apt packages; into target/, what opens exports)
	@scripts/setup.sh
	@scripts/readers.sh

build: ## compile the command: $(TARGET)/debug/hangdog
	@scripts/setup.sh
	cargo build --locked --bin hangdog

demo: build ## make a program hang, record it, say why
	@scripts/demo.sh $(HANGDOG)

test: ## set up, lint, run every test, and the lab with one seed
	@scripts/test.sh

lint: ## rustfmt, clippy, clang-format, shellcheck
	@scripts/setup.sh
	@scripts/lint.sh

lab: build ## record every program that hangs on purpose, compare verdict and truth (SEEDS=5)
	$(AS_ROOT) python3 lab/run.py --hangdog $(HANGDOG) --seeds $(SEEDS)

accuracy: build ## compose hangs, record them, count right verdicts (COUNT=150 FRESH=50; 10 minutes)
	-@$(MAKE) -s -C lab build/venv
	$(AS_ROOT) python3 lab/accuracy.py --hangdog $(HANGDOG) --count $(COUNT) --fresh $(FRESH)

lab-real: ## judge `why` by real programs (PART= GROUP= SETTING= NAME= SET= RESUME=1)
	@scripts/setup.sh lab-real
	cargo build --locked --release --bin hangdog
	@$(MAKE) -s -C lab build/venv
	$(AS_ROOT) lab/build/venv/bin/python lab/real/run.py --hangdog $(RELEASE) \
		$(PART:%=--part %) $(GROUP:%=--group %) $(SETTING:%=--setting %) $(NAME:%=--name %) \
		$(SET:%=--set %) $(if $(RESUME),--resume)

fuzz: ## feed damaged files to what reads files (FUZZ=60 seconds)
	@scripts/setup.sh
	@scripts/fuzz.sh $(FUZZ)

bench: ## measure what recording costs, and numbers beside other tools (ROUNDS=5; about an hour)
	@scripts/setup.sh bench
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 bench/run.py --hangdog $(RELEASE) --rounds $(ROUNDS)
	$(AS_ROOT) python3 bench/soak.py --hangdog $(RELEASE) --hours 0.17

soak: ## fly for hours beside all that makes a recorder grow, and print its memory (HOURS=2)
	@scripts/setup.sh bench
	cargo build --locked --release --bin hangdog
	$(AS_ROOT) python3 bench/soak.py --hangdog $(RELEASE) --hours $(HOURS)

install: ## install command, man pages and completions (PREFIX=/usr/local, DESTDIR)
	@scripts/setup.sh
	cargo build --locked --release --bin hangdog
	@scripts/install.sh $(RELEASE) "$(DESTDIR)$(PREFIX)"

clean: ## remove what was built
	cargo clean
	$(MAKE) -C lab clean

.DEFAULT_GOAL := help
.PHONY: help setup build demo test lint lab lab-real accuracy fuzz bench soak install clean
