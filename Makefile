# All targets make the virtual environment that they need.
PYTHON ?= python3
VENV := .venv
ARGS ?=
# What is shown of a command goes through a pipe, and must not hide that the command failed.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

.PHONY: demo up test clean

demo: $(VENV)/installed
	exec $(VENV)/bin/micronova up --demo $(ARGS)

up: $(VENV)/installed
	exec $(VENV)/bin/micronova up $(ARGS)

test: $(VENV)/tox
	@echo 'Runs all tiers of the tests in an environment of their own: some twelve minutes on two cores,'
	@echo 'and the first time some more to install it. Seconds take: $(VENV)/bin/tox -e unit'
	$(VENV)/bin/tox run -q -m test $(ARGS)

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
