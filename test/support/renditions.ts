import type { TrackInfo } from '../../src/stats/track-schema.ts';
import type { Kiln } from './kiln.ts';
import { chunklists, record, type Recording } from './llhls-recording.ts';
import { until } from './until.ts';

/** Sources that tell milliseconds round them. */
const HAIR_SECONDS = 0.002;

/** A track of the only output that a stream `live` of the application `app` has. */
export async function trackOf(kiln: Kiln, name: string): Promise<TrackInfo | undefined> {
  return (await kiln.stream('live')).body.response.outputs[0]?.tracks.find((track) => track.name === name);
}

/** What an LL-HLS player got of its tracks of these names so far. @throws Error when one is not there */
export async function recordings(kiln: Kiln, names: readonly string[], playlist = 'llhls'): Promise<Recording[]> {
  const lists = await chunklists(kiln.httpUrl(`/app/live/${playlist}.m3u8`));
  return Promise.all(names.map(async (name) => {
    const list = lists.get((await trackOf(kiln, name))?.id ?? -1);
    if (list === undefined) throw new Error(`${name} is not in ${playlist}`);
    return record(list);
  }));
}

/** The same, once each track has some more segments than now. */
export async function moreSegments(kiln: Kiln, names: readonly string[], more: number, playlist?: string): Promise<Recording[]> {
  const read = () => recordings(kiln, names, playlist).catch(() => undefined);
  const before = await read();
  return until(`${more} more segments of ${names.join()}`, async () => {
    const now = await read();
    return now?.every(({ segments }, i) => segments.length >= (before?.[i]?.segments.length ?? 0) + more) && now;
  });
}

/** Why a player would have noticed something: what is missing, or does not go on where the frame before ended. */
export function playFaults({ segments, frames }: Recording): string[] {
  return [
    ...segments.flatMap(({ msn, gap, discontinuity }, i) => {
      const follows = msn === (segments[0]?.msn ?? 0) + i;
      return follows && !gap && !discontinuity ? [] : `segment ${msn}: gap ${gap}, discontinuity ${discontinuity}`;
    }),
    ...frames.flatMap(({ pts }, i) => {
      const before = frames[i - 1];
      if (before === undefined || Math.abs(pts - before.pts - before.duration) < HAIR_SECONDS) return [];
      return `${pts} behind ${before.pts}`;
    }),
  ];
}
