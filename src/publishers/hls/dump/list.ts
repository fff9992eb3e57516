import { extinf, targetOf } from '../../../packaging/listed-duration.ts';
import { listedVersion } from '../../../packaging/listed-version.ts';
import type { FollowedSegment } from '../answer/segment-followers.ts';
import type { GrowingText } from './growing-file.ts';

const END = '#EXT-X-ENDLIST\n';
/** Lines before the first segment and its tags. */
const HEAD =
  /^#EXTM3U\n((?:#EXT-X-(?:VERSION|PLAYLIST-TYPE|TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY-SEQUENCE):.*\n)+)/;

/** Media sequence number in the file name of a segment. */
const NUMBER = /^[a-z]+_(?:[^_]+_)?(\d+)[_.]/;

/** Date, length and file name of a segment. */
const SEGMENT = /^#EXT-X-PROGRAM-DATE-TIME:(.*)\n(?:#EXT-X-GAP\n)?#EXTINF:([\d.]+),.*\n(.+)\n/gm;
/** Newest segments whose times are known, and characters in which those of an earlier dump are. */
const RECENT = 16;
const RECENT_LENGTH = 8192;

/** Media playlist of a dump: video on demand (RFC 8216 4.3.3.5) of the segments so far. */
export class DumpedList implements GrowingText {
  readonly name: string;
  body = '';
  readonly tail = END;
  #version = 3;
  /** Seconds. */
  #target = 1;
  #first: number | undefined;
  #discontinuities = 0;
  #init: string | undefined;
  /** Media sequence number of the last segment, of an earlier dump too. */
  #last = -1;
  /** Times of the newest segments, by number. */
  readonly #times = new Map<number, Pick<FollowedSegment, 'wallClock' | 'duration'>>();
  /** The next segment directly follows the last listed one. */
  #isContinued = true;

  /** @param earlier text of an earlier dump of this playlist, which is continued */
  constructor(name: string, earlier?: string) {
    this.name = name;
    const [head, tags = ''] = HEAD.exec(earlier ?? '') ?? [];
    if (earlier === undefined || head === undefined || !earlier.endsWith(END)) return;
    const value = (tag: string): number => Number(new RegExp(`^#EXT-X-${tag}:(\\d+)$`, 'm').exec(tags)?.[1] ?? 0);
    this.body = earlier.slice(head.length, -END.length);
    this.#version = listedVersion(value('VERSION'), this.body.includes('#EXT-X-GAP'));
    this.#target = value('TARGETDURATION');
    this.#first = value('MEDIA-SEQUENCE');
    this.#discontinuities = value('DISCONTINUITY-SEQUENCE');
    this.#init = [...this.body.matchAll(/^#EXT-X-MAP:URI="([^"]*)"$/gm)].at(-1)?.[1];
    this.#last = Number(NUMBER.exec(this.body.split('\n').at(-2) ?? '')?.[1] ?? -1);
    this.#isContinued = false;
    for (const [, date = '', seconds, file = ''] of this.body.slice(-RECENT_LENGTH).matchAll(SEGMENT))
      this.#note(Number(NUMBER.exec(file)?.[1]), { wallClock: Date.parse(date), duration: Number(seconds) });
  }

  get empty(): boolean {
    return this.#first === undefined;
  }

  get head(): string {
    let text = `#EXTM3U\n#EXT-X-VERSION:${this.#version}\n#EXT-X-PLAYLIST-TYPE:VOD\n`;
    text += `#EXT-X-TARGETDURATION:${this.#target}\n#EXT-X-MEDIA-SEQUENCE:${this.#first ?? 0}\n`;
    return this.#discontinuities === 0 ? text : `${text}#EXT-X-DISCONTINUITY-SEQUENCE:${this.#discontinuities}\n`;
  }

  /** Tests whether a segment is listed, or older than the last one. Has to be called for each segment in order, before `add`. */
  has({ msn }: FollowedSegment): boolean {
    if (msn === this.#last) this.#isContinued = true;
    return msn <= this.#last;
  }

  /** Times of one of the newest segments; undefined for any other. */
  times(msn: number): Pick<FollowedSegment, 'wallClock' | 'duration'> | undefined {
    return this.#times.get(msn);
  }

  /** Lists a segment whose media has been written. */
  add({
    name,
    msn,
    duration,
    wallClock,
    discontinuity,
    discontinuitySequence,
    gap,
    breaks,
    breaksBefore,
    init,
  }: FollowedSegment): void {
    const running = this.empty || !this.#isContinued ? this.#newLines(breaksBefore) : '';
    if (this.#first === undefined) {
      this.#first = msn;
      this.#discontinuities = discontinuitySequence;
    }
    this.#last = msn;
    this.#note(msn, { wallClock, duration });
    this.#target = Math.max(this.#target, targetOf(duration));
    if (discontinuity || !this.#isContinued) this.body += '#EXT-X-DISCONTINUITY\n';
    this.#isContinued = true;
    if (init !== undefined && init.name !== this.#init) {
      this.#version = Math.max(this.#version, 6);
      this.#init = init.name;
      this.body += `${init.keys ?? ''}#EXT-X-MAP:URI="${init.name}"\n`;
    }
    this.#version = listedVersion(this.#version, gap);
    this.body += `${running}${breaks}#EXT-X-PROGRAM-DATE-TIME:${new Date(wallClock).toISOString()}\n`;
    this.body += `${gap ? '#EXT-X-GAP\n' : ''}${extinf(duration)}\n${name}\n`;
  }

  #note(msn: number, times: Pick<FollowedSegment, 'wallClock' | 'duration'>): void {
    this.#times.set(msn, times);
    const [oldest] = this.#times.keys();
    if (this.#times.size > RECENT && oldest !== undefined) this.#times.delete(oldest);
  }

  /** Filters out lines that the playlist has already. */
  #newLines(lines: string): string {
    return lines.replaceAll(/.+\n/g, (line) => (this.body.includes(line) ? '' : line));
  }
}
