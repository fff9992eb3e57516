const SENDER_REPORT = 200;
const SOURCE_DESCRIPTION = 202;
const PAYLOAD_FEEDBACK = 206;
const CNAME = 1;
const PICTURE_LOSS = 1;
const FULL_INTRA = 4;
/** Seconds from the NTP epoch, 1900, to the Unix epoch. */
const NTP_OFFSET = 2_208_988_800;
const REPORT_SIZE = 28;

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
  const name = Buffer.from(cname);
  // one to four zero bytes end the chunk
  const chunk = 4 + 2 + name.length;
  const description = 4 + chunk + (4 - (chunk % 4));
  const report = Buffer.alloc(REPORT_SIZE + description);
  writeHeader(report, 0, 0, SENDER_REPORT, REPORT_SIZE);
  report.writeUInt32BE(ssrc, 4);
  const seconds = Math.floor(wallMs / 1000);
  report.writeUInt32BE((seconds + NTP_OFFSET) % 2 ** 32, 8);
  report.writeUInt32BE(Math.floor((wallMs / 1000 - seconds) * 2 ** 32), 12);
  report.writeUInt32BE(rtpTime >>> 0, 16);
  report.writeUInt32BE(packets % 2 ** 32, 20);
  report.writeUInt32BE(octets % 2 ** 32, 24);
  writeHeader(report, REPORT_SIZE, 1, SOURCE_DESCRIPTION, description);
  report.writeUInt32BE(ssrc, REPORT_SIZE + 4);
  report[REPORT_SIZE + 8] = CNAME;
  report[REPORT_SIZE + 9] = name.length;
  name.copy(report, REPORT_SIZE + 10);
  return report;
}

/**
 * SSRCs that a compound packet asks a key frame of: picture loss indications (RFC 4585 section 6.3.1)
 * and full intra requests (RFC 5104 section 4.3.1). What is malformed is passed over.
 */
export function keyFrameRequests(compound: Buffer): number[] {
  const ssrcs: number[] = [];
  for (let at = 0; at + 4 <= compound.length; ) {
    const end = at + 4 * (compound.readUInt16BE(at + 2) + 1);
    if (end > compound.length) break;
    const format = (compound[at] as number) & 0x1f;
    if (compound[at + 1] === PAYLOAD_FEEDBACK) {
      if (format === PICTURE_LOSS && end - at >= 12) ssrcs.push(compound.readUInt32BE(at + 8));
      if (format === FULL_INTRA) {
        for (let entry = at + 12; entry + 8 <= end; entry += 8) ssrcs.push(compound.readUInt32BE(entry));
      }
    }
    at = end;
  }
  return ssrcs;
}

function writeHeader(buffer: Buffer, at: number, count: number, type: number, size: number): void {
  buffer[at] = 0x80 | count;
  buffer[at + 1] = type;
  buffer.writeUInt16BE(size / 4 - 1, at + 2);
}
