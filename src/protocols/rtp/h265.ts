import { isParameterSet, NAL, nalType, parseHevcConfig } from '../../codecs/h265.ts';
import { NalPacketizer, type NalForm } from './nal-packetizer.ts';

const AGGREGATION = 48;
const FRAGMENT = 49;
const FU_START = 0x80;
const FU_END = 0x40;
/** Bits of a header that hold the type. */
const TYPE = 0x7e00;
const LAYER = 0x01f8;
const TEMPORAL = 0x0007;

const FORM: NalForm = {
  headerBytes: 2,
  setsOf: (config) => {
    const { vps, sps, pps } = parseHevcConfig(config);
    return [...vps, ...sps, ...pps];
  },
  isParameterSet,
  isSkipped: (nal) => nalType(nal) === NAL.delimiter || nalType(nal) === NAL.filler,
  // the lowest layer and temporal id of all units, and whether one has a syntax violation
  merge: (before, nal) => {
    const header = nal.readUInt16BE(0);
    if (before === undefined) return header & ~TYPE;
    const layer = Math.min(before & LAYER, header & LAYER);
    return ((before | header) & 0x8000) | layer | Math.min(before & TEMPORAL, header & TEMPORAL);
  },
  writeAggregation: (payload, merged) => void payload.writeUInt16BE(merged | (AGGREGATION << 9), 0),
  writeFragment: (payload, nal, isFirst, isLast) => {
    const header = nal.readUInt16BE(0);
    payload.writeUInt16BE((header & ~TYPE) | (FRAGMENT << 9), 0);
    payload[2] = (isFirst ? FU_START : 0) | (isLast ? FU_END : 0) | nalType(nal);
    return 3;
  },
};

/** H.265 access units to RTP payloads without interleaving (RFC 7798): aggregation packets, single NAL units, fragmentation units. */
export class H265Packetizer extends NalPacketizer {
  constructor() {
    super(FORM);
  }
}
