"""What takes many runs: volumes, clusters, folders, experiments and the question of trust."""
