import { isParameterSet, nalType, NAL, parseAvcConfig } from '../../codecs/h264.ts';
import { NalPacketizer, type NalForm } from './nal-packetizer.ts';

const STAP_A = 24;
const FU_A = 28;
const FU_START = 0x80;
const FU_END = 0x40;
/** Bits of a header that hold the importance of a unit (NRI). */
const NRI = 0x60;

const FORM: NalForm = {
  headerBytes: 1,
  setsOf: (config) => {
    const { sps, spsExtensions, pps } = parseAvcConfig(config);
    return [...sps, ...spsExtensions, ...pps];
  },
  isParameterSet,
  isSkipped: (nal) => nalType(nal) === NAL.delimiter || nalType(nal) === NAL.filler,
  merge: (before = 0, nal) => Math.max(before, (nal[0] as number) & NRI),
  writeAggregation: (payload, nri) => {
    payload[0] = nri | STAP_A;
  },
  writeFragment: (payload, nal, isFirst, isLast) => {
    const header = nal[0] as number;
    payload[0] = (header & 0xe0) | FU_A;
    payload[1] = (isFirst ? FU_START : 0) | (isLast ? FU_END : 0) | (header & 0x1f);
    return 2;
  },
};

/** H.264 access units to RTP payloads, packetization-mode 1 (RFC 6184): STAP-A, single NAL units, FU-A. */
export class H264Packetizer extends NalPacketizer {
  constructor() {
    super(FORM);
  }
}
