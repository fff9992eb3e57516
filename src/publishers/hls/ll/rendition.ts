import type { Breaks } from '../../../packaging/breaks.ts';
import {
  ChunklistBuilder,
  type ChunklistForm,
  type ChunklistOptions,
  type FileNames,
  type RenditionReport,
  partDuration,
} from '../../../packaging/playlist.ts';
import { firstSampleEnd } from '../../../containers/fmp4/first-sample.ts';
import { keyLines } from '../../../packaging/drm/key-tags.ts';
import type { Part, Segment } from '../../../packaging/segment.ts';
import type { TrackPackager } from '../../../packaging/track-packager.ts';
import type { SubtitlePackager } from '../../../packaging/subtitles/subtitle-packager.ts';
import type { FollowedSegment } from '../answer/segment-followers.ts';
import { PlayableList, type ListContext } from '../package/playable-list.ts';
import type { Startable } from '../package/readiness.ts';
import { Text } from '../answer/text.ts';
import type { Rewind } from '../rewind/rewind.ts';
import { pathOf } from './names.ts';

/** State shared by the renditions of a stream. */
export interface RenditionContext extends ListContext {
  /** Grows with every change in any rendition of the stream. */
  readonly edition: number;
  readonly concluded: boolean;
  readonly breaks: Breaks;
  chunklistOptions(): Omit<ChunklistOptions, 'partTarget'>;
  readonly rewind: Rewind | undefined;
  reports(except: AnyRendition): RenditionReport[];
}

export type AnyPackager = TrackPackager | SubtitlePackager;
export type AnyRendition = Rendition<AnyPackager>;
export type SubtitleRendition = Rendition<SubtitlePackager>;

/** One track for players: its chunklist in all forms, and the requests that wait for the next one. */
export class Rendition<P extends AnyPackager = TrackPackager>
  extends PlayableList<RenditionContext>
  implements Startable
{
  readonly packager: P;
  readonly names: FileNames;
  /** Completion of the newest part, in milliseconds since the epoch. */
  newestAt = 0;
  readonly #builder: ChunklistBuilder;
  #texts: Partial<Record<ChunklistForm, Text>> = {};
  /** With the past. */
  #longTexts: Partial<Record<ChunklistForm, Text>> = {};
  #edition = -1;

  constructor(packager: P, names: FileNames, context: RenditionContext) {
    super(context);
    this.packager = packager;
    this.names = names;
    this.#builder = new ChunklistBuilder(names);
  }

  override get leads(): boolean {
    return this.track.type === 'video';
  }

  get track(): P['track'] {
    return this.packager.track;
  }

  get fresh(): boolean {
    return this.packager.window.kept.length === 0;
  }

  /** Tests whether players can start with it: a part exists. */
  get started(): boolean {
    const { listed, open } = this.packager.window;
    return (open !== undefined && open.parts.length > 0) || listed.some(({ gap }) => !gap);
  }

  /** Updates the position, and answers the requests that waited for it. */
  advance(): void {
    if (this.position === undefined && !this.started) return;
    const { partTarget, window } = this.packager;
    const { kept, open } = window;
    const newest = this.position?.newest !== undefined || kept.some(({ gap }) => !gap) ? kept.at(-1) : undefined;
    this.position = {
      ...(newest !== undefined && { newest: { msn: newest.msn, parts: newest.parts.length } }),
      ...(open !== undefined && open.parts.length > 0 && { open: { msn: open.msn, parts: open.parts.length } }),
      partTarget,
      ...(this.context.concluded && { ended: true }),
    };
    this.waiters.check();
  }

  /** Chunklist as of now, built once for each change. */
  text(form: ChunklistForm, rewinds: boolean): Text {
    const context = this.context;
    if (this.#edition !== context.edition) {
      this.#texts = {};
      this.#longTexts = {};
      this.#edition = context.edition;
    }
    const { rewind } = context;
    const list = pathOf(this.names.chunklist());
    if (rewinds && rewind !== undefined)
      return (this.#longTexts[form] ??= rewind.before(list, (wanted) => this.text(wanted, false), form));
    const { window, partTarget } = this.packager;
    return (this.#texts[form] ??= new Text(
      this.#builder.build(
        window,
        form,
        { ...context.chunklistOptions(), partTarget: ceiling(partTarget) },
        context.reports(this),
        context.breaks,
      ),
    ));
  }

  /** Media of a complete segment. */
  body(segment: Segment): readonly Buffer[] {
    const { packager } = this;
    return 'body' in packager ? packager.body(segment) : segment.parts.map(({ data }) => data);
  }

  /** Describes a complete segment for followers of the stream. */
  followed(segment: Segment): FollowedSegment {
    const { msn, duration, wallClock, discontinuity, gap, init, parts } = segment;
    const keyFrame = this.track.type === 'video' ? keyFrameOf(parts[0]) : undefined;
    return {
      list: pathOf(this.names.chunklist()),
      name: pathOf(this.names.segment(msn)),
      msn,
      duration,
      wallClock,
      discontinuity,
      discontinuitySequence: this.packager.window.discontinuitiesBefore(segment),
      gap,
      breaks: this.context.breaks.at(msn),
      breaksBefore: this.context.breaks.before(segment),
      bytes: this.#bytesOf(segment),
      ...(this.names.init && {
        init: { name: pathOf(this.names.init(init)), data: init.data, keys: keyLines(init.keys) },
      }),
      ...(keyFrame !== undefined && { keyFrame }),
      body: () => this.body(segment),
    };
  }

  /** Bytes of `body`. */
  #bytesOf(segment: Segment): number {
    const { packager } = this;
    return 'body' in packager ? packager.body(segment).reduce((sum, { length }) => sum + length, 0) : segment.bytes;
  }

  report(): RenditionReport | undefined {
    const last = this.packager.window.last;
    return last === undefined ? undefined : { uri: this.names.chunklist(), ...last };
  }
}

/** Bytes of a part up to the end of its first frame, if that can be decoded alone. */
function keyFrameOf(part: Part | undefined): number | undefined {
  return part?.independent === true ? firstSampleEnd(part.data) : undefined;
}

/** Rounds seconds up to the next millisecond: no part's duration in a playlist may exceed PART-TARGET. */
export function ceiling(seconds: number): number {
  return Math.ceil(partDuration(seconds) * 1000) / 1000;
}
