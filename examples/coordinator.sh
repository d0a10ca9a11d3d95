#!/bin/sh
# A coordinator in 30 lines: starts what is ready, reads its mail, and stops when every Task has ended.
# coordinator.sh GRAPH REPOSITORY [options of `tocsin worker start`, such as --agent codex]
set -eu
graph=$1 repository=$2
shift 2
tasks() { tocsin task list --limit 100 "$@" | awk 'NR > 1 && NF'; }
tries() { tasks | awk -v task="$1" '$1 == task { print $4 }'; }

# Each attempt gets a worktree of its own. A fix round goes on from the attempt before it, and `review-NAME` looks at the last one of NAME.
start() {
    task=$1 judged=${1#review-}
    shift
    before=$(tries "$judged")
    set -- --branch "$task-$(($(tries "$task") + 1))" "$@"
    if [ "$before" -gt 0 ]; then set -- --base "$judged-$before" "$@"; fi
    tocsin worker start "$task" --where new-top-level --path "$repository" "$@" || echo "$task is not seen at work yet"
}

tocsin run create "the Tasks in $graph"
tocsin task add --file "$graph"
while [ -n "$(tasks --status pending --status ready --status dispatched --status reported)" ]; do
    for task in $(tasks --ready | awk '{ print $1 }'); do start "$task" "$@"; done
    mail=$(tocsin mail check --wait 10m) || continue
    printf '%s\n' "$mail"
    delivery=$(printf '%s\n' "$mail" | sed -n 's/.*tocsin mail ack //p')
    if [ -n "$delivery" ]; then tocsin mail ack "$delivery"; fi
done
tocsin task list
tocsin custody list
