"""What can be had and what is here, in one list: the store, the catalogue and, when asked, the Hub."""
