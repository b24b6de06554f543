"""Traces: operations that have ended, as OpenTelemetry spans, made from the ledger."""
