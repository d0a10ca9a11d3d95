-- Take or renew a lease. KEYS[1]: the lease's hash. ARGV: holder, length (ms), birth, the holder's clock (ms).
-- Returns {fence, birth, 1 when the store was not marked before} or nil while another holds it.
-- The store's own clock decides when a lease is over, so two holders need not agree on the time.
local lease = KEYS[1]
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local holder = redis.call('HGET', lease, 'holder')
local until_ms = tonumber(redis.call('HGET', lease, 'until_ms') or '0')
if holder and holder ~= ARGV[1] and until_ms > now_ms then
  return nil
end
local is_new = redis.call('HSETNX', lease, 'birth', ARGV[3])
local fence = tonumber(redis.call('HGET', lease, 'fence') or '0')
if holder ~= ARGV[1] then
  -- Larger than any fence of before a wipe, which the store cannot know: the clock stands in.
  fence = math.max(fence + 1, tonumber(ARGV[4]))
  redis.call('HSET', lease, 'holder', ARGV[1], 'fence', string.format('%.0f', fence))
end
redis.call('HSET', lease, 'until_ms', string.format('%.0f', now_ms + tonumber(ARGV[2])), 'heard_ms', ARGV[4])
return {string.format('%.0f', fence), redis.call('HGET', lease, 'birth'), tostring(is_new)}
