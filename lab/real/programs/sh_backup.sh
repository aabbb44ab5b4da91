#!/bin/bash
# A backup script: packs a folder in the background and waits for that.

tar -cf "$2" -C "$1" . &
wait
