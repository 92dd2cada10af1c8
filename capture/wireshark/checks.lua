
-- Fields that Wireshark's own dissectors lack: FECN, BECN, the names of notifications, and verdicts on the
-- CRCs. This post-dissector adds them in a separate tree.

local checks = Proto("pausebed.check", "Checks of InfiniBand and RoCE")
checks.prefs.verify = Pref.bool("Verify CRCs", true, "Compute ICRC, VCRC and LPCRC of every packet")

local STATUS = { [0] = "bad", [1] = "verified", [2] = "not captured whole" }
local BAD, VERIFIED, CUT = 0, 1, 2

local opcodes = { [0x80] = "CNP (InfiniBand)", [0x81] = "CNP (RoCEv2)" }
local set = {
  opcode = ProtoField.uint8("pausebed.check.cnp", "Notification", base.HEX, opcodes),
  fecn = ProtoField.bool("pausebed.check.fecn", "FECN", 8, nil, 0x80),
  becn = ProtoField.bool("pausebed.check.becn", "BECN", 8, nil, 0x40),
}
for _, field in pairs(set) do
  table.insert(checks.fields, field)
end

-- Declares the fields and the expert item of one CRC.
local function declare_check(key, title)
  local name = "pausebed.check." .. key
  local check = {
    title = title,
    found = ProtoField.bytes(name, title),
    status = ProtoField.uint8(name .. ".status", title .. " status", base.DEC, STATUS),
    bad = wrong(checks, key .. ".bad", title .. " is wrong", "CHECKSUM"),
  }
  table.insert(checks.fields, check.found)
  table.insert(checks.fields, check.status)
  return check
end

local icrc = declare_check("icrc", "ICRC")
local vcrc = declare_check("vcrc", "VCRC")
local lpcrc = declare_check("lpcrc", "LPCRC")
checks.experts = { icrc.bad, vcrc.bad, lpcrc.bad }

local function hex(octets)
  return (octets:gsub(".", function(octet) return string.format("%02x", octet:byte()) end))
end

-- Adds the verdict on the CRC of `octets` octets at `at`; `expected` computes it.
local function add_check(tree, check, tvb, at, octets, expected)
  if at < 0 or at + octets > tvb:len() then
    tree:add(check.status, CUT):set_generated()
    return
  end
  local range, right = tvb(at, octets), expected()
  local holds = right == tvb:raw(at, octets)
  local item = tree:add(check.found, range)
  item:append_text(holds and " [verified]" or " [should be " .. hex(right) .. "]")
  tree:add(check.status, range, holds and VERIFIED or BAD):set_generated()
  if not holds then
    item:add_proto_expert_info(check.bad, check.title .. " should be " .. hex(right))
  end
end

-- Adds the congestion bits of the BTH to the tree and to the info column.
local function add_congestion(tree, tvb, pinfo, bth)
  local opcode, octet = tvb(bth, 1), tvb(bth + CONGESTION_BITS, 1)
  if opcodes[opcode:uint()] then
    tree:add(set.opcode, opcode)
    pinfo.cols.info = opcodes[opcode:uint()]
  end
  tree:add(set.fecn, octet)
  tree:add(set.becn, octet)
  for place, name in ipairs({ " FECN", " BECN" }) do
    if octet:bitfield(place - 1, 1) == 1 then
      pinfo.cols.info:append(name)
    end
  end
end

-- Adds all fields for a packet with this layout.
local function add_checks(tree, tvb, pinfo, layout)
  local branch = tree:add(checks, tvb())
  if layout.bth and tvb:len() >= layout.bth + BTH_OCTETS then
    add_congestion(branch, tvb, pinfo, layout.bth)
  end
  if not checks.prefs.verify then
    return
  end
  if layout.icrc then
    local inside = layout.icrc >= layout.bth + BTH_OCTETS
    add_check(branch, icrc, tvb, inside and layout.icrc or -1, 4, function()
      return expected_icrc(tvb, layout)
    end)
  end
  if layout.vcrc then
    add_check(branch, vcrc, tvb, layout.vcrc, 2, function()
      return crc_of(CRC_16, { tvb:raw(0, layout.vcrc) })
    end)
  end
end

-- The function that processes a frame, by link-layer format.
local function check_ethernet(tvb, pinfo, tree)
  local layout = ethernet_layout(tvb)
  if layout then
    add_checks(tree, tvb, pinfo, layout)
  end
end

local function check_link_packet(tvb, _, tree)
  if checks.prefs.verify and tvb:reported_len() == LINK_PACKET_OCTETS then
    add_check(tree:add(checks, tvb()), lpcrc, tvb, 4, 2, function()
      return crc_of(CRC_16, { tvb:raw(0, 4) })
    end)
  end
end

local function check_infiniband(tvb, pinfo, tree)
  local layout = infiniband_layout(tvb)
  if layout then
    add_checks(tree, tvb, pinfo, layout)
  end
end

local ERF_INFINIBAND = 21
local encapsulation, erf_type = Field.new("frame.encap_type"), Field.new("erf.types.type")

local function check_erf(tvb, pinfo, tree)
  local kind = erf_type()
  if kind and kind.value == ERF_INFINIBAND then
    check_infiniband(tvb, pinfo, tree)
  end
end

local function check_user0(tvb, pinfo, tree)
  local is_link_packet = tvb:reported_len() == LINK_PACKET_OCTETS
  local look = is_link_packet and check_link_packet or check_infiniband
  look(tvb, pinfo, tree)
end

local CHECKS_OF = {
  [wtap.ETHERNET] = check_ethernet,
  [wtap.ERF] = check_erf,
  [wtap.USER0] = check_user0,
}

function checks.dissector(tvb, pinfo, tree)
  local look = CHECKS_OF[encapsulation().value]
  if look then
    look(tvb, pinfo, tree)
  end
end

register_postdissector(checks)
