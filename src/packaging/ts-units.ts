import type { Sample } from '../containers/fmp4/fragment.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import type { Run } from './run.ts';
import { isInStep, MAX_GROUP_BYTES } from './sound-group.ts';

const MAX_GROUP_SECONDS = 0.25;

/** The frames of several tracks in order of their decode times; those of sound in groups. */
export function unitsOf(tracks: readonly { readonly track: MediaTrack; readonly runs: readonly Run[] }[]): TsUnit[] {
  const units: { readonly unit: TsUnit; readonly time: number }[] = [];
  for (const { track, runs } of tracks) {
    for (const { start, samples } of runs) {
      let dts = start;
      for (let index = 0; index < samples.length;) {
        const count = track.type === 'audio' ? groupLength(samples, index, track) : 1;
        const group = samples.slice(index, index + count);
        const { compositionOffset, key } = group[0] as Sample;
        const unit = { track, dts, pts: dts + compositionOffset, key, data: group.map(({ data }) => data) };
        units.push({ unit, time: toSeconds(dts, track.timebase) });
        for (const { duration } of group) dts += duration;
        index += count;
      }
    }
  }
  return units.sort((one, other) => one.time - other.time).map(({ unit }) => unit);
}

/** How many frames from one on go together: players count on from the first. */
function groupLength(samples: readonly Sample[], from: number, { timebase }: MediaTrack): number {
  const { duration } = samples[from] as Sample;
  let bytes = 0;
  let at = from;
  for (; at < samples.length; at++) {
    const sample = samples[at] as Sample;
    bytes += sample.data.length;
    if (at > from && (bytes > MAX_GROUP_BYTES || toSeconds(duration * (at - from + 1), timebase) > MAX_GROUP_SECONDS))
      break;
    // one that lasts longer has a hole behind it; what follows one that is short comes sooner than players count
    if (!isInStep(duration, sample.duration)) break;
  }
  return at - from;
}
