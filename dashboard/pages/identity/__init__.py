"""Projects and users of Keystone, for administrators."""
