#!/bin/bash
# Reads names of lists of files from standard input; prints how large the files of each are, packed.
while read -r list; do
    xargs cat <"$list" | gzip -9 | wc -c
done
