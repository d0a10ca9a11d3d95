#!/bin/sh
# sandbox.sh STATE FOLDER COMMAND...: runs a command as a coding agent's own sandbox does. It reaches no network, and of the
# instance's folder STATE and the home it can write nothing but FOLDER, the pane's own.
set -eu
exec unshare --user --map-root-user --mount --net sh -euc '
    state=$1 folder=$2
    shift 2
    for place in "$state" "$HOME"; do
        mount --bind "$place" "$place"
        mount -o remount,ro,bind "$place"
    done
    mount --bind "$folder" "$folder"
    mount -o remount,rw,bind "$folder"
    exec "$@"
' sandbox "$@"
