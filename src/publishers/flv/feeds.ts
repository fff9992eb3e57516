import type { OutputStream } from '../../core/output-stream.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { StartCaches } from '../../core/start-caches.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';
import { FeedTable } from '../feed-table.ts';
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
  /** Packets that new viewers start with. */
  readonly caches: Pick<StartCaches, 'of'>;
}

/** The feeds of viewers that get tags in one form: one for all that get the same tags. */
export class FlvFeeds {
  readonly #options: FlvFeedsOptions;
  readonly #feeds = new FeedTable<FlvFeed>();

  constructor(options: FlvFeedsOptions) {
    this.#options = options;
  }

  of({ output, playlist, ability, delayMs }: Playable): FlvFeed {
    const { kind, frame, caches } = this.#options;
    const fileName = playlist?.fileName;
    const key = [fileName ?? '', ability.multitrack, ...[...ability.fourCcs].sort()].join('\n');
    return this.#feeds.get(
      output,
      key,
      (onEnd) =>
        new FlvFeed(output, {
          kind,
          frame,
          delayMs,
          choose: (tracks) => {
            const named = fileName === undefined ? undefined : output.playlist(fileName);
            return fileName !== undefined && named === undefined ? [] : chosenTracks(tracks, named, ability);
          },
          start: delayMs === 0 ? caches.of(output) : undefined,
          onEnd,
        }),
    );
  }
}
