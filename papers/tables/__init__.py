"""Tables and figures of papers: cells that are command lines, kept as they end, and a report with
the published figures next to ours. A table is a file of `papers/` that declares its cells."""
