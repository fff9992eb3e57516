import type { FrameRun } from '../../../packaging/frame-run.ts';
import type { Segment } from '../../../packaging/segment.ts';
import type { SubtitlePackager } from '../../../packaging/subtitles/subtitle-packager.ts';
import type { SubtitleTrack } from '../../../core/track.ts';
import type { Media, OnLeft } from '../answer/played-stream.ts';
import { Text } from '../answer/text.ts';
import type { Position } from '../blocking-reload/chunklist-position.ts';
import { Repeats } from '../blocking-reload/repeats.ts';
import type { Wait } from '../blocking-reload/wait.ts';
import { Waiters, type Outcome } from '../blocking-reload/waiters.ts';
import type { PackagedList } from '../package/package.ts';
import { buildMediaList } from './media-list.ts';
import { listName, subtitleName } from './names.ts';
import type { VariantContext } from './variant.ts';

/** Subtitles of one label: their media playlist and segments, as long as those of the leading track. */
export class SubtitleList implements PackagedList {
  readonly id: string;
  readonly packager: SubtitlePackager<FrameRun>;
  readonly waiters = new Waiters();
  readonly repeats = new Repeats();
  position: Position | undefined;
  readonly #context: VariantContext;
  #text: Text | undefined;

  /** @param id unique part of its file names */
  constructor(id: string, packager: SubtitlePackager<FrameRun>, context: VariantContext) {
    this.id = id;
    this.packager = packager;
    this.#context = context;
    packager.window.on('complete', (segment) => this.#advance(segment));
  }

  get track(): SubtitleTrack {
    return this.packager.track;
  }

  get started(): boolean {
    return this.position !== undefined;
  }

  get continues(): boolean {
    return this.#context.continues;
  }

  get targetDuration(): number {
    return this.#context.targetDuration;
  }

  get interrupted(): boolean {
    return this.#context.interrupted;
  }

  /** URI of its media playlist for master playlists. */
  get uri(): string {
    return `${listName(this.id)}${this.#context.query}`;
  }

  /** Finds a segment of the playlist, or one that has just left it. */
  segment(msn: number): Media | undefined {
    const segment = this.packager.window.kept.find((one) => one.msn === msn);
    if (segment === undefined || segment.gap) return undefined;
    return { kind: 'segment', type: 'subtitle', body: this.packager.body(segment) };
  }

  text(): Text {
    const { targetDuration, query, breaks, concluded } = this.#context;
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

  wait(ready: () => boolean, onLeft: OnLeft, wait: Wait): Promise<Outcome> {
    return this.#context.queue.wait(this.waiters, ready, onLeft, wait);
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

  /** Ends its requests, and stops following its leader. */
  close(): void {
    this.packager.close();
    this.waiters.close();
  }

  #advance({ msn, gap }: Segment): void {
    if (gap && this.position === undefined) return;
    this.position = { newest: { msn, parts: 1 }, partTarget: 0 };
    this.changed();
    this.waiters.check();
  }
}
