import { WholeMilliseconds } from '../../../packaging/listed-duration.ts';
import type { FrameRun } from '../../../packaging/frame-run.ts';
import type { Segment } from '../../../packaging/segment.ts';
import type { SubtitlePackager } from '../../../packaging/subtitles/subtitle-packager.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import type { ChunklistForm } from '../../../packaging/playlist.ts';
import type { Media } from '../answer/played-stream.ts';
import type { FollowedList, FollowedSegment } from '../answer/segment-followers.ts';
import { Text } from '../answer/text.ts';
import { PlayableList } from '../package/playable-list.ts';
import { buildMediaList } from './media-list.ts';
import { listName, subtitleName } from './names.ts';
import type { VariantContext } from './variant.ts';

/** Subtitles of one label: their media playlist and segments, as long as those of the leading track. */
export class SubtitleList extends PlayableList<VariantContext> implements FollowedList<Segment> {
  readonly id: string;
  readonly packager: SubtitlePackager<FrameRun>;
  readonly #rounding = new WholeMilliseconds();
  /** Durations in the playlist, in seconds. */
  readonly #durations = new WeakMap<Segment, number>();
  #text: Text | undefined;
  /** With the past. */
  #longText: Text | undefined;

  /** @param id unique part of its file names */
  constructor(id: string, packager: SubtitlePackager<FrameRun>, context: VariantContext) {
    super(context);
    this.id = id;
    this.packager = packager;
    packager.window.on('complete', (segment) => this.#advance(segment));
  }

  get track(): SubtitleTrack {
    return this.packager.track;
  }

  get started(): boolean {
    return this.position !== undefined;
  }

  get listed(): readonly Segment[] {
    return this.packager.window.listed;
  }

  get kept(): readonly Segment[] {
    return this.packager.window.kept;
  }

  /** URI of its media playlist for master playlists. */
  get uri(): string {
    return `${listName(this.id)}${this.context.query}`;
  }

  /** Finds a segment of the playlist, or one that has just left it. */
  segment(msn: number): Media | undefined {
    const segment = this.packager.window.kept.find((one) => one.msn === msn);
    if (segment === undefined || segment.gap) return undefined;
    return { kind: 'segment', type: 'subtitle', body: this.packager.body(segment) };
  }

  text(form: ChunklistForm, rewinds: boolean): Text {
    const { rewind } = this.context;
    if (!rewinds || rewind === undefined) return this.#present();
    return (this.#longText ??= rewind.before(listName(this.id), () => this.#present(), form));
  }

  /** Describes a segment for followers of the stream. */
  followed(segment: Segment): FollowedSegment {
    const { msn, wallClock, discontinuity, gap } = segment;
    const duration = this.#durationOf(segment);
    const { breaks } = this.context;
    const body = this.packager.body(segment);
    return {
      list: listName(this.id),
      name: subtitleName(this.id, msn),
      ...{ msn, duration, wallClock, discontinuity, gap },
      discontinuitySequence: this.packager.window.discontinuitiesBefore(segment),
      breaks: breaks.at(msn),
      breaksBefore: breaks.before(segment),
      bytes: body.reduce((sum, { length }) => sum + length, 0),
      body: () => body,
    };
  }

  #present(): Text {
    const { targetDuration, query, breaks, concluded } = this.context;
    const { listed, discontinuitySequence } = this.packager.window;
    return (this.#text ??= new Text(
      buildMediaList(
        listed.map((segment) => {
          const { msn, wallClock, discontinuity, gap } = segment;
          return { msn, wallClock, discontinuity, gap, duration: this.#durationOf(segment) };
        }),
        {
          targetDuration,
          discontinuitySequence,
          breaks,
          uri: ({ msn }) => `${subtitleName(this.id, msn)}${query}`,
          ended: concluded,
        },
      ),
    ));
  }

  /** Drops the cached text of the playlist. */
  changed(): void {
    this.#text = undefined;
    this.#longText = undefined;
  }

  /** Ends the playlist and answers waiting requests. */
  conclude(): void {
    if (this.position !== undefined) this.position = { ...this.position, ended: true };
    this.changed();
    this.waiters.check();
  }

  /** Duration in the playlist, rounded as those of the media are. */
  #durationOf(segment: Segment): number {
    return this.#durations.get(segment) ?? segment.duration;
  }

  #advance(segment: Segment): void {
    const { msn, gap, duration } = segment;
    this.#durations.set(segment, this.#rounding.next(duration));
    if (gap && this.position === undefined) return;
    this.position = { newest: { msn, parts: 1 }, partTarget: 0 };
    this.changed();
    this.waiters.check();
  }
}
