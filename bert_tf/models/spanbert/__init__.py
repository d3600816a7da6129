"""SpanBERT."""
