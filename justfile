# Short names for the scripts, which do the work and say how they are used.

# Builds the server if need be and starts it.
run *arguments:
    ./run {{arguments}}

# Every test, or these steps.
test *steps:
    ./test {{steps}}

# An hour of fuzzing for each target, or as said: just fuzz --seconds 60 filter
fuzz *arguments:
    scripts/fuzz {{arguments}}

# Licences, sources and known vulnerabilities of what we depend on.
deny:
    scripts/deny

# The benchmarks of docs/performance.md.
bench *arguments:
    bench/run {{arguments}}
