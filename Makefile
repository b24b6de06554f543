# Both targets make the virtual environment that they need.
PYTHON ?= python3
VENV := .venv
ARGS ?=

.PHONY: up test clean

up: $(VENV)/installed
	exec $(VENV)/bin/micronova up $(ARGS)

test: $(VENV)/tox
	$(VENV)/bin/tox run -q -m test $(ARGS)

clean:
	rm -rf $(VENV) .tox build dist *.egg-info

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python setup.cfg
	$(VENV)/bin/python -m pip install --quiet --editable .
	touch $@

$(VENV)/tox: $(VENV)/bin/python
	$(VENV)/bin/python -m pip install --quiet 'tox>=4.18'
	touch $@
