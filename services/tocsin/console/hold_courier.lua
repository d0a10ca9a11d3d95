-- Take or renew the right to tell notices. KEYS[1]: courier. ARGV: holder, length (ms); 0: give it back. Returns 1 for its holder.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
if tonumber(ARGV[2]) > 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
else
  redis.call('DEL', KEYS[1])
end
return 1
