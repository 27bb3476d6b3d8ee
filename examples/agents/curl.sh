#!/bin/sh
# Answers the turns of an external agent with curl and jq alone: says how many words the message has.
# Run with PARLEY_URL and AGENT_TOKEN.
set -eu

call() {
  curl -fsS "$PARLEY_URL/api/$1" -H "authorization: Bearer $AGENT_TOKEN" \
    -H 'content-type: application/json' -d "$2"
}

while true; do
  claimed=$(call claimTurn '{"wait_seconds":30}')
  turn=$(printf %s "$claimed" | jq -c '.result // empty')
  [ -n "$turn" ] || continue
  id=$(printf %s "$turn" | jq .turn_id)
  words=$(printf %s "$turn" | jq -r '.message_id as $id | .context[] | select(.id == $id) | .content' | wc -w)
  # A turn that somebody has stopped takes no more text.
  call writeTurn "{\"turn_id\":$id,\"delta\":\"$((words)) words.\",\"offset\":0}" >/dev/null || continue
  call finishTurn "{\"turn_id\":$id,\"status\":\"complete\"}" >/dev/null || continue
done
