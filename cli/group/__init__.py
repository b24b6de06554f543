"""Groups of servers whose number is kept."""
