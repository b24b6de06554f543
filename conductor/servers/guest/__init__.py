"""What concerns the guest: its password, screen and interfaces."""
