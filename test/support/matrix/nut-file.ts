import { NutWriter } from '../../../src/containers/nut/writer.ts';
import type { Packet } from '../../../src/core/packet.ts';
import { toSeconds } from '../../../src/core/timebase.ts';
import type { MediaTrack } from '../../../src/core/track.ts';
import { nutStreamOf } from '../../../src/transcode/nut-stream.ts';

export interface Coded {
  readonly pts: number;
  readonly dts: number;
  readonly key: Packet['key'];
  readonly data: Buffer;
}

/** Frames in canonical form as a file that ffmpeg plays; those of all tracks are on one clock, in timebases of their own. */
export function nutFile(media: readonly { readonly track: MediaTrack; readonly frames: readonly Coded[] }[]): Buffer {
  const writer = new NutWriter(media.map(({ track }) => nutStreamOf(track)));
  const all = media.flatMap(({ track, frames }, stream) =>
    frames.map((frame) => ({
      ...frame,
      stream,
      track,
      time: toSeconds(frame.dts, track.timebase),
    })),
  );
  all.sort((one, other) => one.time - other.time);
  // what an encoder of sound puts in front may be before the beginning
  const start = Math.min(...all.map(({ time }) => time));
  return Buffer.concat([
    writer.header(),
    ...all.flatMap(
      ({
        stream,
        track: {
          timebase: { num, den },
        },
        pts,
        key,
        data,
      }) => {
        const shift = Math.round((start * den) / num);
        return [Buffer.from(writer.head(stream, Math.max(0, pts - shift), key !== false, data.length)), data];
      },
    ),
  ]);
}
