"""The embedded Keystone and the files that let clients reach it."""
