import type { FrameRun } from '../../../packaging/frame-run.ts';
import type { Segment } from '../../../packaging/segment.ts';
import type { SubtitlePackager } from '../../../packaging/subtitles/subtitle-packager.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import type { Media } from '../answer/played-stream.ts';
import { Text } from '../answer/text.ts';
import { PlayableList } from '../package/playable-list.ts';
import { buildMediaList } from './media-list.ts';
import { listName, subtitleName } from './names.ts';
import type { VariantContext } from './variant.ts';

/** Subtitles of one label: their media playlist and segments, as long as those of the leading track. */
export class SubtitleList extends PlayableList<VariantContext> {
  readonly id: string;
  readonly packager: SubtitlePackager<FrameRun>;
  #text: Text | undefined;

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

  text(): Text {
    const { targetDuration, query, breaks, concluded } = this.context;
    const { listed, discontinuitySequence } = this.packager.window;
    return (this.#text ??= new Text(
      buildMediaList(listed, {
        targetDuration,
        discontinuitySequence,
        breaks,
        uri: ({ msn }) => `${subtitleName(this.id, msn)}${query}`,
        ended: concluded,
      }),
    ));
  }

  /** Drops the cached text of the playlist. */
  changed(): void {
    this.#text = undefined;
  }

  /** Ends the playlist and answers waiting requests. */
  conclude(): void {
    if (this.position !== undefined) this.position = { ...this.position, ended: true };
    this.changed();
    this.waiters.check();
  }

  #advance({ msn, gap }: Segment): void {
    if (gap && this.position === undefined) return;
    this.position = { newest: { msn, parts: 1 }, partTarget: 0 };
    this.changed();
    this.waiters.check();
  }
}
