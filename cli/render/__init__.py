"""Data to lines of text: pure, known to no command and no terminal."""
