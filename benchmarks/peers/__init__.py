"""Systems whose speed is compared, each in a file, which runs under an interpreter of its own."""
