"""One file per dispatch key: the generic kernel that the key runs for every operator."""
