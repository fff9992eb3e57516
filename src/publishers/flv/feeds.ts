import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { Registry } from '../../core/registry.ts';
import { StartCaches } from '../../core/start-caches.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';
import { chosenTracks } from './choice.ts';
import { FlvFeed, type FlvFeedOptions } from './feed.ts';

/** Output stream that a viewer plays, and what it takes of it. */
export interface Playable {
  readonly output: OutputStream;
  /** undefined: the stream's default tracks. */
  readonly playlist: Playlist | undefined;
  readonly ability: PlayerAbility;
  /** Delay of playback, in milliseconds. */
  readonly delayMs: number;
}

export interface FlvFeedsOptions extends Pick<FlvFeedOptions, 'kind' | 'frame'> {
  readonly registry: Registry;
  /** Whether the streams of an application have viewers of this kind. */
  readonly isUsed: (application: Application) => boolean;
}

/** The feeds of one publisher: one for all viewers that get the same tags. */
export class FlvFeeds {
  readonly #options: FlvFeedsOptions;
  readonly #caches: StartCaches;
  /** Inner key: playlist and ability. */
  readonly #feeds = new Map<OutputStream, Map<string, FlvFeed>>();

  constructor(options: FlvFeedsOptions) {
    const { registry, kind, isUsed } = options;
    this.#options = options;
    this.#caches = new StartCaches(registry, kind, (_output, application) => isUsed(application));
  }

  of({ output, playlist, ability, delayMs }: Playable): FlvFeed {
    const key = [playlist?.fileName ?? '', ability.multitrack, ...[...ability.fourCcs].sort()].join('\n');
    const feeds = this.#feeds.get(output) ?? new Map<string, FlvFeed>();
    const known = feeds.get(key);
    if (known !== undefined) return known;
    const { kind, frame } = this.#options;
    const fileName = playlist?.fileName;
    const feed = new FlvFeed(output, {
      kind,
      frame,
      delayMs,
      choose: (tracks) => {
        const named = fileName === undefined ? undefined : output.playlist(fileName);
        return fileName !== undefined && named === undefined ? [] : chosenTracks(tracks, named, ability);
      },
      start: delayMs === 0 ? this.#caches.of(output) : undefined,
      onEnd: () => {
        feeds.delete(key);
        if (feeds.size === 0) this.#feeds.delete(output);
      },
    });
    this.#feeds.set(output, feeds.set(key, feed));
    return feed;
  }

  /** Idempotent. */
  close(): void {
    this.#caches.close();
  }
}
