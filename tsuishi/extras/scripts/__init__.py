"""Scripts of users: the printed numbers of a script or notebook become a suite."""
