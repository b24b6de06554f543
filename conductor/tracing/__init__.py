"""Traces: operations that have ended, as OpenTelemetry spans, made of the ledger."""
