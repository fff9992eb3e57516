import type { OutputStream } from '../../core/stream.ts';
import type { VideoTrack } from '../../core/track.ts';
import type { Rates } from './bandwidth.ts';

/** What STREAM-INF says where nothing is known (facts/05-hls.md, Master content). */
const UNKNOWN_BANDWIDTH = 1_000_000;
const UNKNOWN_FRAMERATE = 30;

/** The first attributes of EXT-X-STREAM-INF. */
export function bandwidthOf({ peak, average }: Rates): string {
  const line = `BANDWIDTH=${peak > 0 ? Math.max(peak, average) : UNKNOWN_BANDWIDTH}`;
  return average > 0 ? `${line},AVERAGE-BANDWIDTH=${average}` : line;
}

/** What it says of the picture, a comma in front. */
export function pictureOf({ id, width, height, framerate }: VideoTrack, output: OutputStream): string {
  const rate = framerate || output.measured(id)?.framerateAvg || UNKNOWN_FRAMERATE;
  const size = width > 0 && height > 0 ? `,RESOLUTION=${width}x${height}` : '';
  return `${size},FRAME-RATE=${rate.toFixed(3)}`;
}
