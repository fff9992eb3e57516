const SENDER_REPORT = 200;
const RECEIVER_REPORT = 201;
const SOURCE_DESCRIPTION = 202;
const BYE = 203;
const CNAME = 1;
/** Seconds from the NTP epoch, 1900, to the Unix epoch. */
const NTP_OFFSET = 2_208_988_800;
const REPORT_SIZE = 28;
const BLOCK_SIZE = 24;
const MAX_LOST = 0x7fffff;
const MIN_LOST = -0x800000;

export interface SenderReport {
  readonly ssrc: number;
  /** Wall clock, in milliseconds since the Unix epoch, of the instant that `rtpTime` names. */
  readonly wallMs: number;
  readonly rtpTime: number;
  readonly packets: number;
  readonly octets: number;
  /** At most 255 bytes. */
  readonly cname: string;
}

/** A sender report and the source's CNAME as one compound packet (RFC 3550 sections 6.4.1, 6.5). */
export function writeSenderReport({ ssrc, wallMs, rtpTime, packets, octets, cname }: SenderReport): Buffer {
  const report = withDescription(REPORT_SIZE, ssrc, cname);
  writeHeader(report, 0, 0, SENDER_REPORT, REPORT_SIZE);
  report.writeUInt32BE(ssrc, 4);
  const seconds = Math.floor(wallMs / 1000);
  report.writeUInt32BE((seconds + NTP_OFFSET) % 2 ** 32, 8);
  report.writeUInt32BE(Math.floor((wallMs / 1000 - seconds) * 2 ** 32), 12);
  report.writeUInt32BE(rtpTime >>> 0, 16);
  report.writeUInt32BE(packets % 2 ** 32, 20);
  report.writeUInt32BE(octets % 2 ** 32, 24);
  return report;
}

/** Reception statistics of one source, for a report (RFC 3550 section 6.4.2). */
export interface ReceptionBlock {
  readonly ssrc: number;
  /** Share of the packets since the last report, in 256ths. */
  readonly fractionLost: number;
  readonly lost: number;
  /** Highest sequence number, with the count of its wraps above 16 bits. */
  readonly highest: number;
  /** RTP time. */
  readonly jitter: number;
  /** `compactNtp` of the last sender report, and how long ago that came, in 65536ths of a second; 0 without one. */
  readonly lastReport: number;
  readonly sinceLastReport: number;
}

/**
 * A receiver report of up to 31 sources and the receiver's CNAME as one compound packet (RFC 3550 sections 6.4.2, 6.5).
 * @param cname at most 255 bytes
 */
export function writeReceiverReport(ssrc: number, blocks: readonly ReceptionBlock[], cname: string): Buffer {
  const size = 8 + BLOCK_SIZE * blocks.length;
  const report = withDescription(size, ssrc, cname);
  writeHeader(report, 0, blocks.length, RECEIVER_REPORT, size);
  report.writeUInt32BE(ssrc, 4);
  blocks.forEach((block, index) => writeBlock(report, 8 + BLOCK_SIZE * index, block));
  return report;
}

/** The end of a source: an empty receiver report, and BYE (RFC 3550 sections 6.1, 6.6). */
export function writeBye(ssrc: number): Buffer {
  const packet = Buffer.alloc(16);
  writeHeader(packet, 0, 0, RECEIVER_REPORT, 8);
  packet.writeUInt32BE(ssrc, 4);
  writeHeader(packet, 8, 1, BYE, 8);
  packet.writeUInt32BE(ssrc, 12);
  return packet;
}

function writeBlock(report: Buffer, at: number, block: ReceptionBlock): void {
  report.writeUInt32BE(block.ssrc, at);
  report[at + 4] = block.fractionLost;
  report.writeIntBE(Math.min(MAX_LOST, Math.max(MIN_LOST, block.lost)), at + 5, 3);
  report.writeUInt32BE(block.highest % 2 ** 32, at + 8);
  report.writeUInt32BE(Math.round(block.jitter) % 2 ** 32, at + 12);
  report.writeUInt32BE(block.lastReport, at + 16);
  report.writeUInt32BE(Math.min(2 ** 32 - 1, Math.round(block.sinceLastReport)), at + 20);
}

/** Room for a report, with the source's CNAME behind it (RFC 3550 section 6.5). */
function withDescription(size: number, ssrc: number, cname: string): Buffer {
  const name = Buffer.from(cname);
  // one to four zero bytes end the chunk
  const chunk = 4 + 2 + name.length;
  const description = 4 + chunk + (4 - (chunk % 4));
  const packet = Buffer.alloc(size + description);
  writeHeader(packet, size, 1, SOURCE_DESCRIPTION, description);
  packet.writeUInt32BE(ssrc, size + 4);
  packet[size + 8] = CNAME;
  packet[size + 9] = name.length;
  name.copy(packet, size + 10);
  return packet;
}

function writeHeader(buffer: Buffer, at: number, count: number, type: number, size: number): void {
  buffer[at] = 0x80 | count;
  buffer[at + 1] = type;
  buffer.writeUInt16BE(size / 4 - 1, at + 2);
}
