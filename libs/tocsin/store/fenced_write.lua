-- One atomic write of the holder. KEYS: the lease's hash, the data hash.
-- ARGV: fence, birth, n, n times (field, value), m, m times (name, text) for the lease's hash, then fields to remove.
local birth = redis.call('HGET', KEYS[1], 'birth')
if birth ~= ARGV[2] then
  return redis.error_reply('WIPED the store was born anew')
end
if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED a newer holder writes')
end
local at = 4
for _ = 1, tonumber(ARGV[3]) do
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  at = at + 2
end
local names = tonumber(ARGV[at])
at = at + 1
for _ = 1, names do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  at = at + 2
end
for i = at, #ARGV do
  redis.call('HDEL', KEYS[2], ARGV[i])
end
return 1
