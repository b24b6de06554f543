"""The console proxy: browsers on one side, the agents of the servers on the other."""
