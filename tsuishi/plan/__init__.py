"""What would be done, before anything long starts."""
