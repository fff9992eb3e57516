import { videoRange } from '../../../codecs/vui.ts';
import type { OutputStream } from '../../../core/output-stream.ts';
import { shownSize, type VideoTrack } from '../../../core/track.ts';
import type { Rates } from './bandwidth.ts';

/** Values of EXT-X-STREAM-INF while nothing is known (docs/compatibility.md#hls). */
const UNKNOWN_BANDWIDTH = 1_000_000;
const UNKNOWN_FRAMERATE = 30;

export function bandwidthOf({ peak, average }: Rates): string {
  const line = `BANDWIDTH=${peak > 0 ? Math.max(peak, average) : UNKNOWN_BANDWIDTH}`;
  return average > 0 ? `${line},AVERAGE-BANDWIDTH=${average}` : line;
}

/** RESOLUTION, if known, and FRAME-RATE of a variant, after a comma. */
export function videoAttributesOf(track: VideoTrack, output: OutputStream): string {
  const rate = track.framerate || output.measured(track.id)?.framerateAvg || UNKNOWN_FRAMERATE;
  const { width, height } = shownSize(track);
  const size = width > 0 && height > 0 ? `,RESOLUTION=${Math.round(width)}x${height}` : '';
  return `${size},FRAME-RATE=${rate.toFixed(3)}`;
}

/**
 * VIDEO-RANGE of a variant, after a comma (draft-pantos-hls-rfc8216bis, 4.4.6.2). If any video is not SDR, every variant with video
 * has it. Without it a player assumes SDR.
 * @param all videos of the playlist
 */
export function rangeOf(track: VideoTrack, all: readonly VideoTrack[]): string {
  return all.every(({ colour }) => videoRange(colour) === 'SDR') ? '' : `,VIDEO-RANGE=${videoRange(track.colour)}`;
}
