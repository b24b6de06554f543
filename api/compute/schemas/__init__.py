"""JSON schemas of what clients send, one module a noun, each with its versions."""
