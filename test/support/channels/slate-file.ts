import { writeFile } from 'node:fs/promises';
import { buildAvcConfig } from '../../../src/codecs/h264-config.ts';
import { joinNals } from '../../../src/codecs/nal.ts';
import { NutWriter } from '../../../src/containers/nut/writer.ts';
import { VIDEO_TIMEBASE } from '../../../src/core/timebase.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { nutStreamOf } from '../../../src/transcode/nut-stream.ts';
import { h264Pps, h264Slice, h264Sps } from '../media/nal-build.ts';
import { audioTrack, videoTrack } from '../media/packets.ts';

/** Times of files are later by that (OFFSET_SECONDS). */
const OFFSET_SECONDS = 10;
const SAMPLES = 1024;

export const SLATE_RATE = 25;
const SLATE_VIDEO = videoTrack({
  config: buildAvcConfig({ sps: [h264Sps({ profile: 66 })], pps: [h264Pps(0, 0, 1)] }),
  ...{ width: 320, height: 192 },
});
const SLATE_AUDIO = audioTrack();

/** Writes an encoded slate with video, audio or both, as the publisher's tracks have them in their order. */
export async function writeSlate(path: string, tracks: readonly MediaTrack[], seconds: number): Promise<void> {
  const own = tracks.map(({ type }) => (type === 'video' ? SLATE_VIDEO : SLATE_AUDIO));
  const writer = new NutWriter(own.map(nutStreamOf));
  const frames = own.flatMap((track, stream) => {
    const { den } = track.timebase;
    const step = track.type === 'video' ? VIDEO_TIMEBASE.den / SLATE_RATE : SAMPLES;
    return Array.from({ length: Math.floor((seconds * den) / step) }, (_, index) => {
      const isKey = track.type === 'audio' || index % SLATE_RATE === 0;
      const frame = index % SLATE_RATE;
      const data =
        track.type === 'audio'
          ? Buffer.from('210049900219002380', 'hex')
          : joinNals([isKey ? h264Slice({ idr: true }) : h264Slice({ frame: frame % 16, order: 2 * frame })]);
      return { stream, pts: OFFSET_SECONDS * den + index * step, at: (index * step) / den, isKey, data };
    });
  });
  frames.sort((one, other) => one.at - other.at);
  const bytes = frames.flatMap(({ stream, pts, isKey, data }) => [writer.head(stream, pts, isKey, data.length), data]);
  await writeFile(path, Buffer.concat([writer.header(), ...bytes]));
}
