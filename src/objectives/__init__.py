"""What a task asks of the shared body: objectives, each with its head and its collation."""
