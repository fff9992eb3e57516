import type { Origin } from '../../../src/containers/file-muxer.ts';
import type { Packet } from '../../../src/core/packet.ts';
import type { Track } from '../../../src/core/track.ts';
import { TsFile } from '../../../src/recording/ts-file.ts';

/** Bytes of a finished MPEG-TS recording. */
export function recordedTs(tracks: readonly Track[], packets: readonly Packet[], origin?: Origin): Buffer {
  const faults: string[] = [];
  const file = new TsFile(tracks, { onFault: (fault) => faults.push(fault), origin });
  const pieces = packets.flatMap((packet) => file.write(packet));
  const { tail } = file.end();
  if (faults.length > 0) throw new Error(faults.join());
  return Buffer.concat([...pieces, ...tail]);
}

/** Type and beginning of a slice of an IDR picture, and of a P picture, of the first PPS. */
const SLICES = { H264: ['658884', '419a00'], H265: ['2601af', '0201d0'] } as const;

/**
 * Gives each video packet the NAL unit of a slice, and each packet bytes of its own.
 * @param times how much larger video is than its 900 bytes a frame
 */
export function distinct(packets: readonly Packet[], times = 1): Packet[] {
  return packets.map((packet, index) => {
    const size = 20 + ((index * 37) % 400);
    if (packet.track.type !== 'video') return { ...packet, data: numbered(Buffer.alloc(size, 0x21), index) };
    const [idr, other] = SLICES[packet.track.codec as 'H264'];
    const slice = Buffer.from(packet.key ? idr : other, 'hex');
    const nal = Buffer.concat([slice, numbered(Buffer.alloc(size * 4 * times, 0x33), index)]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(nal.length);
    return { ...packet, data: Buffer.concat([length, nal]) };
  });
}

/** Without start codes. */
function numbered(data: Buffer, index: number): Buffer {
  for (let digit = 0; digit < 6; digit++) data[data.length - 1 - digit] = 0x40 + ((index >> (digit * 4)) & 15);
  return data;
}
