"""What every service shares: errors, states, messages, RPC, context, configuration, logging."""
