"""The one HTTP room: what every API of this project shares."""
