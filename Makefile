# All targets make the virtual environment that they need.
PYTHON ?= python3
VENV := .venv
ARGS ?=
# of a release; empty: the next one, which the fragments in changes/ say
VERSION ?=
# What is shown of a command goes through a pipe, and must not hide that the command failed.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

.PHONY: demo up test test-all release deb clean

demo: $(VENV)/installed
	exec $(VENV)/bin/micronova up --demo $(ARGS)

up: $(VENV)/installed
	exec $(VENV)/bin/micronova up $(ARGS)

test: $(VENV)/tox
	@echo 'Runs the tests of what you changed and a sample of all others in an environment of their own:'
	@echo 'up to eight minutes on two cores, and the first time some more to install it.'
	@echo 'A minute takes: .tox/dev/bin/pytest tests/unit --forks 2. Everything runs: make test-all'
	$(VENV)/bin/tox run -q -e touched $(ARGS)

test-all: $(VENV)/tox
	$(VENV)/bin/tox run -q -e all $(ARGS)

release: $(VENV)/tox
	$(VENV)/bin/tox run -q -e release -- $(VERSION) $(ARGS)

deb: $(VENV)/tox
	$(VENV)/bin/tox run -q -e deb -- $(ARGS)

clean:
	rm -rf $(VENV) .tox build dist *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python setup.cfg
	@echo 'Installing micronova and what it needs into $(VENV); this takes a minute or two.'
	@$(VENV)/bin/python -m pip install --disable-pip-version-check --progress-bar off --editable . \
		| sed -u -n -E 's/^(Collecting|  Downloading|Building|Installing|Successfully)/  \1/p' | cut -c -100
	@touch $@

$(VENV)/tox: $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet 'tox>=4.18'
	touch $@
