"""Scripts of users: what a script or notebook prints becomes a suite."""
