-- Claim a request for all replicas, and let its notice wait. KEYS: told, notices. ARGV: prompt (ms), how long to remember it (ms), id, notice.
-- Returns 1 for the one that claims it, 0 when it was claimed before. Both writes or none: what is claimed is never lost.
local told = tonumber(redis.call('GET', KEYS[1]) or '0')
if told >= tonumber(ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1
