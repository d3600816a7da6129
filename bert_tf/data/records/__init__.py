"""Files of records: features, TFRecords, shards, manifests."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submodules=["features", "manifest", "tfrecord"])
