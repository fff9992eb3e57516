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
  const rate = track.framerate || nominalRate(output.measured(track.id)?.framerateAvg ?? 0) || UNKNOWN_FRAMERATE;
  return `${resolutionOf(track)},FRAME-RATE=${rate.toFixed(3)}`;
}

/** RESOLUTION, if known, after a comma. */
export function resolutionOf(track: VideoTrack): string {
  const { width, height } = shownSize(track);
  return width > 0 && height > 0 ? `,RESOLUTION=${Math.round(width)}x${height}` : '';
}

/** Frame rates that are no whole numbers (ITU-R BT.709-6, part 2). */
const FRACTIONAL_RATES = [24, 30, 48, 60, 120].map((rate) => (rate * 1000) / 1001);
/** Part of a frame rate by which a measurement may miss it: frames arrive unevenly. */
const RATE_TOLERANCE = 0.005;

/**
 * The common frame rate that a measured one is nearest to, in frames per second; the measured one if there is none near. With a
 * rate just above 30, hls.js asks the browser whether it can play the variant, and removes those for which it says no.
 */
export function nominalRate(measured: number): number {
  const rates = [Math.round(measured), ...FRACTIONAL_RATES];
  const off = (rate: number): number => Math.abs(rate - measured);
  const nearest = rates.reduce((best, rate) => (off(rate) < off(best) ? rate : best));
  return off(nearest) <= measured * RATE_TOLERANCE ? nearest : measured;
}

/**
 * VIDEO-RANGE of a variant, after a comma (draft-pantos-hls-rfc8216bis, 4.4.6.2). If any video is not SDR, every variant with video
 * has it. Without it a player assumes SDR.
 * @param all videos of the playlist
 */
export function rangeOf(track: VideoTrack, all: readonly VideoTrack[]): string {
  return all.every(({ colour }) => videoRange(colour) === 'SDR') ? '' : `,VIDEO-RANGE=${videoRange(track.colour)}`;
}
