"""What bench/run, bench/page and bench/plot share."""
