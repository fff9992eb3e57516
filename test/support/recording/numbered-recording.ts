import { readFile } from 'node:fs/promises';
import type { Packet } from '../../../src/core/packet.ts';
import type { AudioCodec, VideoCodec } from '../../../src/core/track.ts';
import { nutPackets, packetsOfIvf, tracksOf } from '../media/coded-packets.ts';
import { writeNumbered } from '../media/numbered-files.ts';
import { clipFile } from './recorded-mp4.ts';

const ENCODERS = {
  H264: ['-bf', '3', '-x264-params', 'b-adapt=0'],
  H265: ['-c:v', 'libx265', '-preset', 'ultrafast', '-x265-params', 'log-level=error:bframes=3:b-adapt=0:open-gop=0'],
  AV1: ['-c:v', 'libaom-av1', '-cpu-used', '8', '-usage', 'realtime', '-b:v', '400k'],
} as const;
const TONES = { AAC: ['-c:a', 'aac', '-ac', '2'], OPUS: ['-c:a', 'libopus', '-ac', '2'] } as const;

export const RATE = 25;

export interface NumberedRecording {
  readonly video: keyof typeof ENCODERS;
  readonly audio?: keyof typeof TONES;
  readonly frames: number;
  readonly gop: number;
}

/** Packets of pictures that say which frame they are. @param path of a file that is written on the way */
export async function numberedPackets(path: string, options: NumberedRecording): Promise<Packet[]> {
  const { video, audio, frames, gop } = options;
  const file = `${path}.${video === 'AV1' ? 'ivf' : 'nut'}`;
  const tone = audio === undefined ? [] : TONES[audio];
  await writeNumbered(file, { item: 1, frames, rate: RATE, gop, video: ENCODERS[video], audio: tone });
  const bytes = await readFile(file);
  return video === 'AV1'
    ? packetsOfIvf(bytes, video)
    : nutPackets(bytes, { video: video as VideoCodec, audio: audio as AudioCodec });
}

/** A recording of such packets. */
export async function numberedRecording(path: string, options: NumberedRecording, startTime: number) {
  const packets = await numberedPackets(path, options);
  return clipFile(tracksOf(packets), packets, startTime);
}
