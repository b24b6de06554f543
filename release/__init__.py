"""What makes a release: changelog, tag, archives, packages, images. Not a part of micronova."""
