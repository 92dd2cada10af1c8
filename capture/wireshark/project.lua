
-- Frame formats defined by pausebed, because no standard defines them.

local project = Proto("pausebed.project", "pausebed frame")
project.prefs.ethertype = Pref.uint("EtherType", 0x88b6, "EtherType of test frames, BCN and its tag")

local TEST_FRAME, BCN, RATE_TAG = 1, 2, 3

local test_frame, add_test_frame = declare("test", "pausebed test frame", {
  { "subtype", "Subtype", ftypes.UINT8, 0, 1, base.DEC },
  { "flow", "Flow", ftypes.UINT32, 2, 4, base.DEC },
  { "sequence", "Sequence", ftypes.UINT32, 6, 4, base.DEC },
  { "departure", "Departure, in ps of fabric time", ftypes.UINT64, 10, 8, base.DEC },
})

local bcn, add_bcn = declare("bcn", "Backward congestion notification (BCN)", {
  { "subtype", "Subtype", ftypes.UINT8, 0, 1, base.DEC },
  { "version", "Version", ftypes.UINT8, 1, 1, base.DEC },
  { "cpid", "CPID", ftypes.UINT64, 2, 8, base.HEX },
  { "qoffset", "Qoff, in 64 octets", ftypes.INT16, 10, 2, base.DEC },
  { "qdelta", "Qdelta, in 64 octets", ftypes.INT16, 12, 2, base.DEC },
  { "timestamp", "Echoed timestamp", ftypes.UINT32, 14, 4, base.DEC },
  { "mild", "Mild congestion", ftypes.BOOLEAN, 18, 1, 8, 0x80 },
  { "severe", "Severe congestion", ftypes.BOOLEAN, 18, 1, 8, 0x40 },
  { "stop", "Stop", ftypes.BOOLEAN, 18, 1, 8, 0x20 },
  { "length", "Sample length", ftypes.UINT8, 19, 1, base.DEC },
})
local BCN_OCTETS = 20

local bcn_sample = ProtoField.bytes("pausebed.bcn.sample", "Sampled frame")
table.insert(bcn.fields, bcn_sample)
local bcn_length = wrong(bcn, "long", "Sample length beyond the frame or above 64", "MALFORMED")
local bcn_version = wrong(bcn, "version_unknown", "Unknown version", "PROTOCOL")
bcn.experts = { bcn_length, bcn_version }

local rate_tag, add_rate_tag = declare("rrt", "Rate-regulated tag (RRT)", {
  { "subtype", "Subtype", ftypes.UINT8, 0, 1, base.DEC },
  { "cpid", "CPID", ftypes.UINT64, 2, 8, base.HEX },
  { "timestamp", "Timestamp", ftypes.UINT32, 10, 4, base.DEC },
  { "type", "Type", ftypes.UINT16, 14, 2, base.HEX },
})
local RATE_TAG_OCTETS = 16

local function dissect_test_frame(tvb, pinfo, tree)
  local flow, sequence = tvb(2, 4):uint(), tvb(6, 4):uint()
  local title = string.format("Test frame, flow %d, sequence %d", flow, sequence)
  pinfo.cols.protocol, pinfo.cols.info = "TEST", title
  add_test_frame(tree:add(test_frame, tvb(0, 18), title), tvb, 0)
  return tvb:len()
end

local function dissect_bcn(tvb, pinfo, tree)
  local said = tvb(19, 1):uint()
  local title = string.format("BCN, Qoff %d, Qdelta %d", tvb(10, 2):int(), tvb(12, 2):int())
  pinfo.cols.protocol, pinfo.cols.info = "BCN", title
  local octets = math.min(tvb:len(), BCN_OCTETS + said)
  local branch = tree:add(bcn, tvb(0, octets), title)
  add_bcn(branch, tvb, 0)
  if not add_sample(branch, bcn_sample, tvb, BCN_OCTETS, said) or said > 64 then
    branch:add_proto_expert_info(bcn_length)
  end
  if tvb(1, 1):uint() ~= 1 then
    branch:add_proto_expert_info(bcn_version)
  end
  return octets
end

local function dissect_rate_tag(tvb, pinfo, tree)
  local octets = RATE_TAG_OCTETS
  local title = "Rate-regulated tag, CPID " .. tostring(tvb(2, 8):bytes())
  add_rate_tag(tree:add(rate_tag, tvb(0, octets), title), tvb, 0)
  return octets + read_ethertype(tvb(14, 2):uint(), tvb(octets):tvb(), pinfo, tree)
end

-- The dissector of each subtype and the length of its header in octets.
local SUBTYPES = {
  [TEST_FRAME] = { dissect_test_frame, 18 },
  [BCN] = { dissect_bcn, BCN_OCTETS },
  [RATE_TAG] = { dissect_rate_tag, RATE_TAG_OCTETS },
}

local project_unknown = wrong(project, "unknown", "Not a pausebed frame, or truncated", "MALFORMED")
project.experts = { project_unknown }

function project.dissector(tvb, pinfo, tree)
  local row = tvb:len() > 0 and SUBTYPES[tvb(0, 1):uint()]
  if row and tvb:len() >= row[2] then
    return row[1](tvb, pinfo, tree)
  end
  pinfo.cols.protocol, pinfo.cols.info = "pausebed", "pausebed frame, unknown"
  tree:add(project, tvb()):add_proto_expert_info(project_unknown)
  return tvb:len()
end

local project_ethertype = project.prefs.ethertype
ethertypes:add(project_ethertype, project)

function project.prefs_changed()
  ethertypes:remove(project_ethertype, project)
  project_ethertype = project.prefs.ethertype
  ethertypes:add(project_ethertype, project)
end
