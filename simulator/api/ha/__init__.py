"""The API of high availability, and recovery from a lost node."""
