-- One write of a view. KEYS: the views' marker, the view, the set of views.
-- ARGV: life, log, id, base, seq, n, n times (part, value), then parts that are gone. base -1: this is all of it.
-- A write names the life of the store and the log that it knows; it is refused when either is another one by now.
if redis.call('HGET', KEYS[1], 'life') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'log') ~= ARGV[2] then
  return 'WIPED'
end
local base, seq = tonumber(ARGV[4]), tonumber(ARGV[5])
local stored = -1
if redis.call('HGET', KEYS[2], '~log') == ARGV[2] then
  stored = tonumber(redis.call('HGET', KEYS[2], '~seq'))
end
if stored >= seq then
  return 'OLDER'
end
if base < 0 then
  redis.call('DEL', KEYS[2])
elseif stored < base then
  return 'HOLE'
end
local count = tonumber(ARGV[6])
for i = 1, count do
  redis.call('HSET', KEYS[2], ARGV[5 + 2 * i], ARGV[6 + 2 * i])
end
for i = 7 + 2 * count, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
redis.call('HSET', KEYS[2], '~log', ARGV[2], '~seq', ARGV[5])
redis.call('SADD', KEYS[3], ARGV[3])
return 'WRITTEN'
