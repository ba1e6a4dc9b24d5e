"""A campaign of faults: killed trainings, damaged files, crafted archives.

    python -m benchmarks.faults                       # all of it, some 20 minutes on two idle cores
    python -m benchmarks.faults --trainings 3 --operations 5 --files 500

Eight parts, all drawn from one seed:

- kills of a training at random moments, each resumed and killed again, then left to end;
- kills before single operations on files of a run folder: the first, the second, and so on;
- graph folders: kills of prepare, train and embed at random moments, and the same on disks that are full (as root);
- graph folders with damaged arrays: values, bytes, types and shapes, with and without the hash that fits them;
- mutated files of every format that is read: bits flipped, bytes overwritten, removed, inserted, repeated;
- parts of vectors and an index of them, damaged: read, and embedded again;
- mixed tables: rows over several files of text and parquet, ids and cells of several kinds, through both readers;
- crafted files: archives that unpack to far more than they are, headers that lie, pickles that call, and the like.

A fault is: an exception other than `InputError`, a process that crashes, a model that is not bit for bit the one of an
undisturbed training, a damaged file with a checksum that is read as something else, a file that is left behind,
tables that two readers read as two graphs, and a crafted file that takes much memory or time. Every fault is printed
with what it takes to repeat it.
"""
