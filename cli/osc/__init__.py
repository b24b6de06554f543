"""The commands of python-openstackclient, run by ``micronova`` as they are."""
