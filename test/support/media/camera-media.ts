import { joinNals, splitAnnexB } from '../../../src/codecs/nal.ts';
import { writeRtpHeader } from '../../../src/protocols/rtp/header.ts';
import { vector } from '../../unit/codecs/vectors.ts';
import { sent, videoOf } from '../../unit/protocols/rtp/receive/support.ts';

/** Access units of a small picture, with parameter sets. */
export const NALS = splitAnnexB(vector('h264-baseline.h264'));
/** 20 ms of A-law silence. */
export const SILENCE = Buffer.alloc(160, 0xd5);

/** A packet whose source has the number of its payload type, unless it is another one's. */
export function rtp(
  payloadType: number,
  sequence: number,
  timestamp: number,
  payload: Buffer,
  marker = true,
  ssrc = payloadType,
): Buffer {
  const packet = Buffer.alloc(12 + payload.length);
  writeRtpHeader(packet, { payloadType, marker, sequence: sequence & 0xffff, timestamp, ssrc });
  payload.copy(packet, 12);
  return packet;
}

/** So many pictures, each an IDR of its own, with the parameter sets; five packets each. */
export function pictures(count: number, from = 0, payloadType = 96): Buffer[] {
  const frames = Array.from({ length: count }, () => ({
    track: videoOf('H264'),
    key: false,
    data: joinNals(NALS.filter((nal) => ((nal[0] as number) & 31) === 5)),
  }));
  const sets = NALS.filter((nal) => [7, 8].includes((nal[0] as number) & 31));
  let sequence = from * 1000;
  return frames.flatMap((frame, i) => [
    ...sets.map((nal) => rtp(payloadType, sequence++, (from + i) * 3600, nal, false)),
    ...sent([frame]).map(({ payload, marker }) => rtp(payloadType, sequence++, (from + i) * 3600, payload, marker)),
  ]);
}
