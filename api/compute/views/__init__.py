"""How records look in answers, at each microversion."""
