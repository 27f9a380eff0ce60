"""What works beside a single run: volumes, folders, experiments and the question of trust."""
