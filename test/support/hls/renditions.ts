import type { TrackInfo } from '../../../src/stats/track-schema.ts';
import type { Kiln } from '../server/kiln.ts';
import { chunklists, record, type Recording } from './llhls-recording.ts';
import { until } from '../time/until.ts';

/** Sources that tell milliseconds round them. */
const HAIR_SECONDS = 0.002;

/** What is played, of the application `app`: `live` and `llhls` unless told. */
export interface Played {
  readonly stream?: string;
  readonly playlist?: string;
}

/** A track of the first output of a stream. */
export async function trackOf(kiln: Kiln, name: string, stream = 'live'): Promise<TrackInfo | undefined> {
  return (await kiln.stream(stream)).body.response.outputs[0]?.tracks.find((track) => track.name === name);
}

/** What an LL-HLS player got of its tracks of these names so far. @throws Error when one is not there */
export async function recordings(kiln: Kiln, names: readonly string[], played: Played = {}): Promise<Recording[]> {
  const { stream = 'live', playlist = 'llhls' } = played;
  const lists = await chunklists(kiln.httpUrl(`/app/${stream}/${playlist}.m3u8`));
  return Promise.all(
    names.map(async (name) => {
      const list = lists.get((await trackOf(kiln, name, stream))?.id ?? -1);
      if (list === undefined) throw new Error(`${name} is not in ${playlist}`);
      return record(list);
    }),
  );
}

/** The same, once each track has some more segments than now. */
export async function moreSegments(
  kiln: Kiln,
  names: readonly string[],
  more: number,
  played?: Played,
): Promise<Recording[]> {
  const read = () => recordings(kiln, names, played).catch(() => undefined);
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
