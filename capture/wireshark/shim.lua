
-- The cables of pausebed: records of a shim and a frame, in UDP or behind an EtherType.

local SHIM_ETHERTYPE, SHIM_OCTETS, SHIM_VERSION = 0x88b5, 32, 1
local SHIM_MAGIC = "pbed"
local KINDS = {
  [1] = "InfiniBand packet", [2] = "InfiniBand link packet", [3] = "Ethernet frame", [4] = "Promise",
}
local PROMISE, PROMISE_OCTETS = 4, 48

local shim, add_shim = declare("shim", "pausebed cable", {
  { "magic", "Magic", ftypes.STRING, 0, 4, base.ASCII },
  { "version", "Version", ftypes.UINT8, 4, 1, base.DEC },
  { "kind", "Kind", ftypes.UINT8, 5, 1, base.DEC, nil, KINDS },
  { "aborted", "Aborted by the sender", ftypes.BOOLEAN, 6, 1, 8, 0x01 },
  { "end", "Sent by end", ftypes.UINT8, 7, 1, base.DEC, nil, { [0] = "a", [1] = "b" } },
  { "link", "Link", ftypes.UINT32, 8, 4, base.DEC },
  { "epoch", "Epoch", ftypes.UINT32, 12, 4, base.HEX },
  { "sequence", "Sequence", ftypes.UINT32, 16, 4, base.DEC },
  { "length", "Length", ftypes.UINT32, 20, 4, base.DEC },
  { "stamp", "Stamp, in ps of fabric time", ftypes.UINT64, 24, 8, base.DEC },
})

-- The body of a promise. Its shim has the sending process in `link` and the promised instant in `stamp`.
local promise, add_promise = declare("promise", "pausebed promise", {
  { "secret", "Secret of the run", ftypes.BYTES, 0, 16 },
  { "number", "Number of the datagram", ftypes.UINT64, 16, 8, base.DEC },
  { "complete", "Received in full, up to", ftypes.UINT64, 24, 8, base.DEC },
  { "frames", "Frames so far", ftypes.UINT64, 32, 8, base.DEC },
  { "idle", "Silent by itself until, in ps", ftypes.UINT64, 40, 8, base.DEC },
})

local shim_unknown = wrong(shim, "unknown", "No record of this version, or cut off", "MALFORMED")
shim.experts = { shim_unknown }

function promise.dissector(tvb, _, tree)
  add_promise(tree:add(promise, tvb(0, PROMISE_OCTETS)), tvb, 0)
  return PROMISE_OCTETS
end

-- The dissector and the CRC check of each kind of frame.
local READERS = {
  [1] = { infiniband, check_infiniband },
  [2] = { Dissector.get("pausebed.link"), check_link_packet },
  [3] = { Dissector.get("eth_withoutfcs"), check_ethernet },
  [PROMISE] = { promise.dissector },
}

-- True if a record of this version begins at `at`.
local function record_begins(tvb, at)
  return tvb:len() >= at + SHIM_OCTETS
    and tvb:raw(at, 4) == SHIM_MAGIC
    and tvb(at + 4, 1):uint() == SHIM_VERSION
end

-- Dissects the record at `at`; returns the offset of the next record.
local function dissect_record(tvb, pinfo, tree, at)
  local kind, length = tvb(at + 5, 1):uint(), tvb(at + 20, 4):uint()
  local begin = at + SHIM_OCTETS
  local present = math.min(length, tvb:len() - begin)
  local title = string.format(
    "Cable, %s %d, %s, sequence %d", kind == PROMISE and "process" or "link", tvb(at + 8, 4):uint(),
    KINDS[kind] or "unknown kind", tvb(at + 16, 4):uint())
  local branch = tree:add(shim, tvb(at, SHIM_OCTETS), title)
  add_shim(branch, tvb, at)
  if not READERS[kind] or length > tvb:reported_len() - begin then
    branch:add_proto_expert_info(shim_unknown)
  end
  if READERS[kind] and present > 0 then
    local frame = tvb(begin, present):tvb()
    for _, read in ipairs(READERS[kind]) do
      read_on(read, frame, pinfo, tree)
    end
  end
  return begin + length
end

function shim.dissector(tvb, pinfo, tree)
  local at, records = 0, 0
  while record_begins(tvb, at) do
    at, records = dissect_record(tvb, pinfo, tree, at), records + 1
  end
  if at < tvb:len() then
    tree:add(shim, tvb(at)):add_proto_expert_info(shim_unknown)
  end
  pinfo.cols.info:prepend(records == 1 and "Cable: " or records .. " frames on cables: ")
  return tvb:len()
end

-- The launcher chooses the UDP ports, so a heuristic recognises datagrams by their first octets.
shim:register_heuristic("udp", function(tvb, pinfo, tree)
  if not record_begins(tvb, 0) then
    return false
  end
  shim.dissector(tvb, pinfo, tree)
  return true
end)

ethertypes:add(SHIM_ETHERTYPE, shim)
