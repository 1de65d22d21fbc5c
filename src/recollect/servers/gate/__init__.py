"""What stands before every door of a server: who calls, from where, how often, how much, and what of it is noted."""
