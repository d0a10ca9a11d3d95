-- Mark the life of the store, and which log its views are of. KEYS[1]: the marker.
-- ARGV: a name for this life (kept if there is one already), the log ('' asks only), the log that it takes the place of.
-- Returns {life, log}; the log changes only from none or from the one that the caller knows.
redis.call('HSETNX', KEYS[1], 'life', ARGV[1])
local log = redis.call('HGET', KEYS[1], 'log') or ''
if ARGV[2] ~= '' and (log == '' or log == ARGV[3]) then
  redis.call('HSET', KEYS[1], 'log', ARGV[2])
  log = ARGV[2]
end
return {redis.call('HGET', KEYS[1], 'life'), log}
