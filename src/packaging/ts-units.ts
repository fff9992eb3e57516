import type { Sample } from '../containers/fmp4/fragment.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack } from '../core/track.ts';
import type { TimedEvent } from './part-events.ts';
import type { FrameRun } from './frame-run.ts';
import { isInStep, MAX_GROUP_BYTES } from './audio-pes-group.ts';

const MAX_GROUP_SECONDS = 0.25;

/** The runs of a track in one segment. */
interface TrackRuns {
  readonly track: MediaTrack;
  readonly runs: readonly FrameRun[];
}

interface Timed {
  readonly unit: TsUnit;
  readonly time: number;
}

/** Orders frames, grouped for audio, and events of several tracks by decode time. */
export function unitsOf(tracks: readonly TrackRuns[]): TsUnit[] {
  const units: Timed[] = [];
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
  for (const event of eventsOf(tracks)) units.push(unitOf(event));
  return units.sort((one, other) => one.time - other.time).map(({ unit }) => unit);
}

/** Lists each event once: an event for all tracks is taken from video, where there is any. */
export function eventsOf(tracks: readonly TrackRuns[]): TimedEvent[] {
  const common = tracks.some(({ track }) => track.type === 'video') ? 'video' : 'audio';
  return tracks.flatMap(({ track: { type }, runs }) =>
    runs.flatMap(({ events }) => events.filter(({ track: { target = common } }) => target === type)),
  );
}

function unitOf({ track, data, at, time }: TimedEvent): Timed {
  const { num, den } = track.timebase;
  const dts = Math.round((at * den) / num);
  const pts = Math.max(dts, Math.round((time * den) / num));
  return { unit: { track, dts, pts, key: true, data: [data] }, time: at };
}

/** Number of frames that form a group: players compute the times after the first. */
function groupLength(samples: readonly Sample[], from: number, { timebase }: MediaTrack): number {
  const { duration } = samples[from] as Sample;
  let bytes = 0;
  let at = from;
  for (; at < samples.length; at++) {
    const sample = samples[at] as Sample;
    bytes += sample.data.length;
    if (at > from && (bytes > MAX_GROUP_BYTES || toSeconds(duration * (at - from + 1), timebase) > MAX_GROUP_SECONDS))
      break;
    // after a longer frame is a gap; after a shorter one, the next comes sooner than players compute
    if (!isInStep(duration, sample.duration)) break;
  }
  return at - from;
}
