
-- InfiniBand link packets of six octets, which pausebed captures with link type USER0 (IBTA Vol 1, 7.9.4).

local OPERATIONS = { [0] = "Normal", [1] = "Init" }

local link_packet, add_link_packet = declare("link", "InfiniBand flow control packet", {
  { "op", "Op", ftypes.UINT16, 0, 2, base.DEC, 0xf000, OPERATIONS },
  { "fctbs", "FCTBS, in blocks", ftypes.UINT16, 0, 2, base.DEC, 0x0fff },
  { "vl", "VL", ftypes.UINT16, 2, 2, base.DEC, 0xf000 },
  { "fccl", "FCCL, in blocks", ftypes.UINT16, 2, 2, base.DEC, 0x0fff },
})
local LINK_PACKET_OCTETS = 6

local infiniband = Dissector.get("infiniband")

function link_packet.dissector(tvb, pinfo, tree)
  if tvb:reported_len() ~= LINK_PACKET_OCTETS then
    return read_on(infiniband, tvb, pinfo, tree)
  end
  local op, fctbs = tvb(0, 1):bitfield(0, 4), tvb(0, 2):bitfield(4, 12)
  local vl, fccl = tvb(2, 1):bitfield(0, 4), tvb(2, 2):bitfield(4, 12)
  local title = string.format(
    "Flow control %s, VL %d, FCTBS %d, FCCL %d", OPERATIONS[op] or "op " .. op, vl, fctbs, fccl)
  pinfo.cols.protocol, pinfo.cols.info = "IB link", title
  add_link_packet(tree:add(link_packet, tvb(), title), tvb, 0)
  return LINK_PACKET_OCTETS
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, link_packet)
