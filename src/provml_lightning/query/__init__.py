"""Questions to finished runs, answered from their files alone."""
