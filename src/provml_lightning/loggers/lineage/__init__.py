"""What a Trainer knows, told to the run of a logger without another line of the user's."""
