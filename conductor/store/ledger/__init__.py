"""Operations: their rows and steps, who works on them, and what is left of them when they end."""
