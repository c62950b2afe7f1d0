-- 16 requests at once for wrk, as `eddy bench http -P 16` sends them.
init = function()
  local each = {}
  for i = 1, 16 do each[i] = wrk.format() end
  batch = table.concat(each)
end
request = function() return batch end
