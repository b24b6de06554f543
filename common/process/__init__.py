"""What every process needs: its children, its health and heartbeat, its memory."""
