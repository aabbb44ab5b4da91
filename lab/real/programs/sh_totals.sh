#!/bin/bash
# Counts the orders of each customer in a log as it comes in: sh_totals.sh LOG
pv -q -L 400k "$1" | tr '[:lower:]' '[:upper:]' | awk '{ n[$2]++ } END { for (who in n) print who, n[who] }'
