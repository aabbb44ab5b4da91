#!/bin/bash
# A deploy script: starts a service in the background and keeps what its start printed. The service
# inherits the pipe of the command substitution, which ends when the service does.

start_service() {
    socat -u "UNIX-LISTEN:$1" "CREATE:$1.log" &
    echo "started $!"
}

printed=$(start_service "$1")
echo "$printed"
