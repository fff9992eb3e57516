import { findBox, parseFragment } from '../media/boxes.ts';

/** One frame as a player sees it; times in seconds. */
export interface PlayedFrame {
  readonly pts: number;
  readonly duration: number;
  readonly key: boolean;
}

export interface RecordedSegment {
  readonly msn: number;
  /** The playlist says that it is not there. */
  readonly gap: boolean;
  /** It does not go on where the one before ended. */
  readonly discontinuity: boolean;
  /** In decode order. */
  readonly frames: readonly PlayedFrame[];
}

/** Everything that a chunklist lists. */
export interface Recording {
  readonly segments: readonly RecordedSegment[];
  readonly frames: readonly PlayedFrame[];
  /** An MP4 of it. */
  readonly file: Buffer;
}

const NON_SYNC = 0x10000;
const MDHD_TIMESCALE = 12;

/** URLs of the chunklists of a master playlist by track id. @throws Error when the playlist is not there */
export async function chunklists(master: string): Promise<Map<number, string>> {
  const text = (await fetchOk(master)).toString();
  const uris = [...text.matchAll(/[^"\n]*chunklist_(\d+)_[^"\n]*/g)];
  return new Map(uris.map(([uri, id]) => [Number(id), new URL(uri, master).href]));
}

/** Fetches every complete segment of a chunklist. @throws Error when one is not there */
export async function record(chunklist: string): Promise<Recording> {
  const lines = (await fetchOk(chunklist)).toString().split('\n');
  const segments: RecordedSegment[] = [];
  const parts: Buffer[] = [];
  let msn = 0;
  let timescale = 1;
  let gap = false;
  let discontinuity = false;
  for (const line of lines) {
    const [, name, value = ''] = /^#([^:]+):?(.*)$/.exec(line) ?? [];
    if (name === 'EXT-X-MEDIA-SEQUENCE') msn = Number(value);
    else if (name === 'EXT-X-DISCONTINUITY') discontinuity = true;
    else if (name === 'EXT-X-GAP') gap = true;
    else if (name === 'EXT-X-MAP') {
      const init = await fetchOk(new URL(/URI="([^"]+)"/.exec(value)?.[1] ?? '', chunklist).href);
      timescale = timescaleOf(init);
      parts.push(init);
    } else if (name === undefined && line !== '') {
      const bytes = gap ? Buffer.alloc(0) : await fetchOk(new URL(line, chunklist).href);
      parts.push(bytes);
      segments.push({ msn: msn++, gap, discontinuity, frames: [...framesOf(bytes, timescale)] });
      gap = false;
      discontinuity = false;
    }
  }
  return { segments, frames: segments.flatMap(({ frames }) => frames), file: Buffer.concat(parts) };
}

/** Ticks of a second, of the track of an initialization segment. */
export function timescaleOf(init: Buffer): number {
  return (findBox(init, 'mdhd') as Buffer).readUInt32BE(MDHD_TIMESCALE);
}

/** The frames of a segment, or of a part. */
export function* framesOf(segment: Buffer, timescale: number): Generator<PlayedFrame> {
  for (let at = 0; at < segment.length;) {
    const size = segment.readUInt32BE(at);
    if (segment.toString('latin1', at + 4, at + 8) !== 'moof') {
      at += size;
      continue;
    }
    const [moof, mdat] = [size, segment.readUInt32BE(at + size)];
    const { baseTime, samples } = parseFragment(segment.subarray(at, at + moof + mdat));
    let dts = baseTime;
    for (const { duration, flags = 0, offset = 0 } of samples) {
      yield { pts: (dts + offset) / timescale, duration: duration / timescale, key: (flags & NON_SYNC) === 0 };
      dts += duration;
    }
    at += moof + mdat;
  }
}

/** @throws Error for whatever is not there */
export async function fetchOk(url: string): Promise<Buffer> {
  const answer = await fetch(url);
  if (answer.status !== 200) throw new Error(`${answer.status} for ${url}`);
  return Buffer.from(await answer.arrayBuffer());
}
