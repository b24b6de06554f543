"""Projects, users, groups and roles of Keystone, for administrators."""
