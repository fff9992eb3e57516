import { Text } from '../answer/text.ts';
import { iFrameList, type IFrameListOptions } from './i-frame-list.ts';
import { PastList, type SegmentTimes } from './past-list.ts';
import type { PastSegment } from './journal.ts';
import { nameOf } from './numbered-name.ts';

/** Target durations that a playlist keeps at least when a segment leaves it (RFC 8216 6.2.2). */
const LEAST_TARGETS = 3;
/** File names of media playlists, and of those of their I-frames. */
const LIST = /^chunklist_/;
const I_FRAMES = /^iframes_/;
/** File name of the playlist of I-frames of a media playlist. */
export function iFramesOf(list: string): string {
  return list.replace(LIST, 'iframes_');
}

/** File name of the media playlist whose I-frames a file name asks for; undefined for any other name. */
export function listOfIFrames(name: string): string | undefined {
  return I_FRAMES.test(name) ? name.replace(I_FRAMES, 'chunklist_') : undefined;
}

/** A media playlist with its past, and the names of its segments. */
export class Shelf {
  /** File name of the media playlist. */
  readonly name: string;
  readonly past: PastList;
  readonly shape: string;
  /** Playlist of I-frames, and the state of the past that it shows. */
  #iFrames: { readonly state: string; readonly text: Text } | undefined;

  /** @param shape of the names of its segments @param query as of `PastList` @param elsewhere as of `PastList` */
  constructor(name: string, shape: string, query: string, elsewhere?: (msn: number) => SegmentTimes | undefined) {
    this.name = name;
    this.shape = shape;
    this.past = new PastList(query, elsewhere);
  }

  /** Playlist of its I-frames, built once for each change; undefined where there are none. */
  iFrames(options: IFrameListOptions): Text | undefined {
    const { past } = this;
    if (past.empty || !past.hasIFrames) return undefined;
    const state = `${past.first} ${past.next} ${past.changes} ${options.longest} ${options.ended}`;
    if (this.#iFrames?.state !== state) this.#iFrames = { state, text: new Text(iFrameList(past, options)) };
    return this.#iFrames.text;
  }

  /** File name of a segment. */
  nameOf(msn: number): string {
    return nameOf(this.shape, msn);
  }

  /** End of its newest segment, in milliseconds since the epoch; -Infinity while it is empty. */
  get end(): number {
    return this.past.empty ? -Infinity : this.past.end(this.past.next - 1);
  }

  /** Segments from a number on. @param most limit of their number */
  segments(from: number, most: number): PastSegment[] {
    const { past } = this;
    const first = Math.max(from, past.first);
    const count = Math.max(0, Math.min(most, past.next - first));
    return Array.from({ length: count }, (_, index) => past.segment(first + index, this.nameOf(first + index)));
  }

  /** As `PastList.add`. */
  add(segment: PastSegment): boolean {
    return this.past.add(segment);
  }

  /**
   * Removes segments that ended so many seconds before the end of the last one, breaks of the publisher included, and the oldest
   * ones if the others last as long. Three target durations stay.
   * @returns their file names, those of gaps left out
   */
  trim(seconds: number): string[] {
    const { past } = this;
    if (past.empty) return [];
    const since = this.end - seconds * 1000;
    const least = LEAST_TARGETS * Math.round(past.longest);
    let kept = past.seconds;
    let first = past.first;
    while (first < past.next - 1) {
      const rest = kept - past.duration(first);
      if (rest < least || (past.end(first) > since && rest < seconds)) break;
      kept = rest;
      first++;
    }
    return this.drop(first);
  }

  /** Removes the segments before a number. @returns as `trim` */
  drop(before: number): string[] {
    const { past } = this;
    const names: string[] = [];
    for (let msn = past.first; msn < Math.min(before, past.next); msn++)
      if (past.has(msn)) names.push(this.nameOf(msn));
    past.dropBefore(before);
    return names;
  }
}
