"""What each task of Invoke does."""
