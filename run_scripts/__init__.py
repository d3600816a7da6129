"""Programs that train, evaluate, convert, export and measure."""

from data_prep import quiet_imports

quiet_imports()
