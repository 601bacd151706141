# Needs make and Python 3.11 or newer; everything else goes into .venv, and nothing needs root.

.DEFAULT_GOAL := help
.PHONY: help run story test check format peers faults bench clean

# The first Python that is new enough; name one yourself with `make PYTHON=/path/to/python …`.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$python; break; }; done)

BIN := .venv/bin
READY := .venv/.ready
SQUIDBOT := SQUIDBOT_HOME="$(CURDIR)/.squidbot" $(BIN)/squidbot --config config.example.json

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name words; do \
		printf '  make %-8s %s\n' "$$name" "$$words"; done

run: $(READY) ## set everything up and start the gateway in the practice world: offline, this machine only
	@$(SQUIDBOT) gateway

story: $(READY) ## set everything up and play a ticket's whole way through the roles, with its record
	@echo '$$ squidbot doctor' && $(SQUIDBOT) doctor
	@echo && echo '$$ squidbot practice story' && $(SQUIDBOT) practice story
	@echo && echo '$$ squidbot audit tail -n 5' && $(SQUIDBOT) audit tail -n 5
	@echo && echo '$$ squidbot audit verify' && $(SQUIDBOT) audit verify

test: $(READY) peers ## set everything up and run the tests; branch coverage must reach 90 %
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest -n 3 --ignore tests/faults --ignore tests/browser --ignore tests/conformance
	@# A browser's event loop lasts for the whole run, so no other tests than these share it.
	@$(BIN)/coverage run -m pytest -n 2 tests/browser tests/conformance
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
	@# Misbehaving servers are judged by how soon all is well again: unmeasured, at full speed.
	@$(BIN)/python -m pytest -n 4 --dist worksteal tests/faults

check: $(READY) ## format, lint, types and the contracts between the rooms
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(READY) ## put the code into its one format, and fix what can be fixed safely
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

peers: $(READY) ## install the third-party servers and judges that the tests use, into .peers
	@$(BIN)/python tests/peers/install.py

faults: $(READY) ## try servers that misbehave in every known way, and print what came of each
	@$(BIN)/python -m tests.faults.run

bench: $(READY) ## measure gateways, the library, starts and commands beside their peers, and how costs grow; needs wrk
	@$(BIN)/python -m benchmarks.gateways
	@$(BIN)/python -m benchmarks.library
	@$(BIN)/python -m benchmarks.start
	@$(BIN)/python -m benchmarks.cold
	@$(BIN)/python -m benchmarks.door
	@$(BIN)/python -m benchmarks.audit
	@$(BIN)/python -m benchmarks.scale
	@$(BIN)/python -m benchmarks.report

clean: ## remove all that make made; .squidbot stays, your files may be in it
	@rm -rf .venv .peers .coverage .coverage.* htmlcov dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Made again only when what it is made from has changed; a broken attempt leaves no stamp.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo 'squidbot needs Python 3.11 or newer, and none of python3, python3.11 … python3.14 is.' \
		'Install one, or name it: make PYTHON=/path/to/python'; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot make virtual environments.' \
		'On Debian and Ubuntu: apt install python3-venv'; exit 1; } >&2
	@echo 'Setting up .venv; the first time takes a minute …' >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
