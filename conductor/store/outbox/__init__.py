"""What is to be sent or carried out after a transaction: rows that are deleted once it is done."""
