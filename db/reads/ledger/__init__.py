"""Operations, bulk migrations and refused requests."""
