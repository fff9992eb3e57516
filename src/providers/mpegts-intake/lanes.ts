import type { ElementaryStream } from '../../containers/mpegts/elementary.ts';
import { MAX_TRACKS, streamTrackId } from '../intake/track-id.ts';
import { AudioLane, type AudioMapItem } from './audio-lane.ts';
import { DataLane } from './data-lane.ts';
import type { Lane, LaneEvents } from './lane.ts';
import { VideoLane } from './video-lane.ts';

type Ids = Pick<Lane, 'id' | 'index'>;

/** Above the ids of all video and audio. */
const FIRST_DATA_ID = 512;

/**
 * Assigns lanes to the streams of a program, in its order: present ones stay, new ones get the lowest free numbers of
 * their kind. A stream that replaces another on its PID, or returns to its own, gets the same number.
 * @param former lanes whose streams are no longer in the program, newest first, at most one for each number
 */
export function assignLanes(
  present: readonly Lane[],
  streams: readonly ElementaryStream[],
  open: (stream: ElementaryStream, ids: Ids) => Lane,
  former: readonly Lane[] = [],
): Lane[] {
  const reserved = new Map(
    streams.flatMap((stream) => {
      const lane = [...present, ...former].find(
        (candidate) => candidate.stream.pid === stream.pid && candidate.stream.kind === stream.kind,
      );
      return lane === undefined ? [] : [[stream, lane] as const];
    }),
  );
  const taken = { video: new Set<number>(), audio: new Set<number>(), data: new Set<number>() };
  for (const [{ kind }, { index }] of reserved) taken[kind].add(index);
  return streams.flatMap((stream) => {
    const { kind } = stream;
    const known = reserved.get(stream);
    if (known?.stream === stream) return known;
    const index = known?.index ?? lowestFree(taken[kind]);
    if (index >= MAX_TRACKS) return [];
    taken[kind].add(index);
    return open(stream, { index, id: kind === 'data' ? FIRST_DATA_ID + index : streamTrackId(kind, index) });
  });
}

/** @param isFile whether it is read from a file, faster than it plays */
export function openLane(
  stream: ElementaryStream,
  ids: Ids,
  audioMap: readonly AudioMapItem[],
  events: LaneEvents,
  isFile = false,
): Lane {
  switch (stream.form) {
    case 'H264':
    case 'H265':
      return new VideoLane(stream, stream.form, ids, events);
    case 'ID3':
    case 'KLV':
    case 'SCTE-35':
      return new DataLane(stream, ids, events);
    default:
      return new AudioLane(stream, ids, audioMap[ids.index], events, isFile);
  }
}

function lowestFree(taken: ReadonlySet<number>): number {
  let index = 0;
  while (taken.has(index)) index++;
  return index;
}
