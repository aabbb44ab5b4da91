#!/bin/bash
# Shows what is in a folder and all below it: sh_listing.sh FOLDER
while true; do
    for part in "$1"/*; do
        ls -l "$part"
        sleep 0.02
    done
done
