import { extinf } from './listed-duration.ts';
import { GAP_VERSION, SKIP_VERSION } from './listed-version.ts';
import type { Breaks } from './breaks.ts';
import type { Init, Segment } from './segment.ts';
import { keyLines } from './drm/key-tags.ts';
import type { Window } from './window.ts';

/** URIs of a rendition's files, relative to its chunklist. */
export interface FileNames {
  chunklist(): string;
  /** Absent where segments need no initialization. */
  init?(init: Init): string;
  segment(msn: number): string;
  part(msn: number, index: number): string;
}

/** Newest part of another rendition of the stream. */
export interface RenditionReport {
  readonly uri: string;
  readonly msn: number;
  readonly part: number;
}

/** `legacy` lists only complete segments; `delta` leaves out older segments (`_HLS_skip`). */
export type ChunklistForm = 'full' | 'delta' | 'legacy';

export interface ChunklistOptions {
  /** Seconds. */
  readonly targetDuration: number;
  readonly partTarget: number;
  readonly partHoldBack: number;
  readonly preloadHint: boolean;
  /** Whether delta updates are offered. */
  readonly skippable: boolean;
  /** No more segments follow: the playlist lists only complete segments, whatever its form. */
  readonly ended: boolean;
}

/** Target durations from the end of the playlist beyond which a delta update may skip segments (RFC 8216bis 4.4.3.8). */
const SKIP_UNTIL_TARGETS = 6;
/** Segments, the growing one counted, whose parts are listed. */
const SEGMENTS_WITH_PARTS = 3;

/**
 * Whether a window is long enough for delta updates.
 * @param seconds length of the playlist
 */
export function isSkippable(seconds: number, targetDuration: number): boolean {
  return seconds >= SKIP_UNTIL_TARGETS * targetDuration;
}

/** Builds the media playlists of one track (RFC 8216bis 4.4), keeping the lines of segments that do not change. */
export class ChunklistBuilder {
  readonly #names: FileNames;
  #lines = new WeakMap<Segment, string>();

  constructor(names: FileNames) {
    this.#names = names;
  }

  build(
    window: Window,
    form: ChunklistForm,
    options: ChunklistOptions,
    reports: readonly RenditionReport[],
    breaks?: Breaks,
  ): string {
    const { listed } = window;
    const open = window.open !== undefined && window.open.parts.length > 0 ? window.open : undefined;
    const lowLatency = form !== 'legacy' && !options.ended;
    const skip =
      form === 'delta' && lowLatency && options.skippable ? skippable(listed, open, options.targetDuration) : 0;
    let text = this.#header(window, listed[0] ?? open, lowLatency, options);
    if (skip > 0) text += `#EXT-X-SKIP:SKIPPED-SEGMENTS=${skip}\n`;
    const marks = breaks === undefined || breaks.empty ? undefined : breaks;
    const [oldest, shown] = [listed[0] ?? open, listed[skip] ?? open];
    // delta updates have all date ranges: CAN-SKIP-DATERANGES is not offered
    if (marks !== undefined && oldest !== undefined && shown !== undefined) text += marks.before(oldest, shown.msn);
    const partsFrom = listed.length - SEGMENTS_WITH_PARTS + (open === undefined ? 0 : 1);
    // a delta update names its init again: Shaka Player does not keep that of a skipped segment for the ones after it
    let before: Segment | undefined;
    for (let index = skip; index < listed.length; index++) {
      const segment = listed[index] as Segment;
      text += this.#prelude(segment, before);
      if (marks !== undefined) text += marks.at(segment.msn);
      text += lowLatency && index >= partsFrom ? this.#withParts(segment) : this.#plain(segment);
      before = segment;
    }
    if (!lowLatency) return options.ended ? `${text}#EXT-X-ENDLIST\n` : text;
    if (open !== undefined)
      text += this.#prelude(open, before) + (marks?.at(open.msn) ?? '') + this.#dated(open) + this.#parts(open);
    if (options.preloadHint) text += this.#hint(window, open ?? before);
    for (const { uri, msn, part } of reports) {
      text += `#EXT-X-RENDITION-REPORT:URI="${uri}",LAST-MSN=${msn},LAST-PART=${part}\n`;
    }
    return text;
  }

  #header(window: Window, first: Segment | undefined, lowLatency: boolean, options: ChunklistOptions): string {
    const { targetDuration, partTarget, partHoldBack, skippable: offered } = options;
    const version = lowLatency && offered ? SKIP_VERSION : GAP_VERSION;
    let text = `#EXTM3U\n#EXT-X-VERSION:${version}\n#EXT-X-TARGETDURATION:${targetDuration}\n`;
    if (lowLatency) {
      const until = offered ? `,CAN-SKIP-UNTIL=${SKIP_UNTIL_TARGETS * targetDuration}` : '';
      text += `#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=${decimal(partHoldBack)}${until}\n`;
      text += `#EXT-X-PART-INF:PART-TARGET=${decimal(partTarget)}\n`;
    }
    text += `#EXT-X-MEDIA-SEQUENCE:${first?.msn ?? 0}\n`;
    const { discontinuitySequence } = window;
    return discontinuitySequence > 0 ? `${text}#EXT-X-DISCONTINUITY-SEQUENCE:${discontinuitySequence}\n` : text;
  }

  /** Tags for the differences from the segment before. */
  #prelude(segment: Segment, before: Segment | undefined): string {
    const discontinuity = segment.discontinuity ? '#EXT-X-DISCONTINUITY\n' : '';
    if (this.#names.init === undefined || before?.init === segment.init) return discontinuity;
    const keys = keyLines(segment.init.keys, before?.init.keys);
    return `${discontinuity}${keys}#EXT-X-MAP:URI="${this.#names.init(segment.init)}"\n`;
  }

  #plain(segment: Segment): string {
    let lines = this.#lines.get(segment);
    if (lines === undefined) {
      lines = this.#dated(segment) + this.#ending(segment);
      this.#lines.set(segment, lines);
    }
    return lines;
  }

  #withParts(segment: Segment): string {
    return this.#dated(segment) + this.#parts(segment) + this.#ending(segment);
  }

  #dated(segment: Segment): string {
    return `#EXT-X-PROGRAM-DATE-TIME:${new Date(segment.wallClock).toISOString()}\n`;
  }

  #parts({ msn, parts }: Segment): string {
    let text = '';
    for (const { index, duration, independent } of parts) {
      const flag = independent ? ',INDEPENDENT=YES' : '';
      text += `#EXT-X-PART:DURATION=${decimal(partDuration(duration))},URI="${this.#names.part(msn, index)}"${flag}\n`;
    }
    return text;
  }

  #ending({ msn, duration, gap }: Segment): string {
    return `${gap ? '#EXT-X-GAP\n' : ''}${extinf(duration)}\n${this.#names.segment(msn)}\n`;
  }

  #hint({ open, next }: Window, before: Segment | undefined): string {
    if (open === undefined || next === undefined) return '';
    const part = `#EXT-X-PRELOAD-HINT:TYPE=PART,URI="${this.#names.part(next.msn, next.part)}"\n`;
    if (this.#names.init === undefined || before === undefined || before.init === open.init) return part;
    return `#EXT-X-PRELOAD-HINT:TYPE=MAP,URI="${this.#names.init(open.init)}"\n${part}`;
  }
}

/**
 * Duration of a part in the playlist: one or two microseconds more than the actual one, in `seconds`, because Shaka
 * Player 5.2 otherwise drops parts that do not begin with a key frame. In a live stream its timestamp offset is negative,
 * and set 1 ms later than computed. When a part's offset is 1 ms or more from the one that is set, the player sets a new
 * one and resets the decoder's input: by chance for each part whose playlist start equals its media time, never when
 * the playlist start runs slightly ahead.
 */
export function partDuration(seconds: number): number {
  return (Math.ceil(seconds * 1e6 - 1e-3) + 1) / 1e6;
}

/** Number of segments that end before the skip boundary. */
function skippable(listed: readonly Segment[], open: Segment | undefined, targetDuration: number): number {
  let behind = open?.duration ?? 0;
  let count = listed.length;
  while (count > 0 && behind < SKIP_UNTIL_TARGETS * targetDuration) behind += (listed[--count] as Segment).duration;
  return count;
}

/** At most six decimals, none needless. */
function decimal(value: number): string {
  return String(Number(value.toFixed(6)));
}
