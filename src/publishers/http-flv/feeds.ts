import type { OutputStream } from '../../core/output-stream.ts';
import type { Playlist } from '../../core/playlist.ts';
import type { StartCaches } from '../../core/start-caches.ts';
import { eventsBeside } from '../../core/track.ts';
import { fileHeader, fileTag } from '../../containers/flv/file.ts';
import { AUDIO_FOUR_CC } from '../../containers/flv/audio.ts';
import { VIDEO_FOUR_CC } from '../../containers/flv/video.ts';
import type { FaultLog } from '../../log/log.ts';
import type { MediaName } from '../../lib/media-name.ts';
import type { PlayerAbility } from '../../protocols/rtmp/play.ts';
import { FeedTable } from '../feed-table.ts';
import type { DeliveredFeed } from '../feed-delivery.ts';
import { checkTaken, chosenForTs, chosenTracks } from '../flv/choice.ts';
import { FlvFeeds } from '../flv/feeds.ts';
import { TsFeed } from '../ts/feed.ts';
import { FRAMINGS, type Framing } from './framing.ts';

type Container = MediaName['container'];

/** Output stream that a viewer over HTTP plays. */
export interface HttpPlayable {
  readonly output: OutputStream;
  /** undefined: the stream's default tracks. */
  readonly playlist: Playlist | undefined;
  /** Delay of playback, in milliseconds. */
  readonly delayMs: number;
}

export interface HttpFeedsOptions {
  readonly caches: StartCaches;
  /** FLV may have the codecs of Enhanced RTMP. */
  readonly extended: boolean;
  readonly faults: FaultLog;
}

/** MIME types of the containers. */
export const TYPES: Readonly<Record<Container, string>> = { flv: 'video/x-flv', ts: 'video/mp2t' };

/** The feeds of viewers over HTTP and WebSocket, by container and framing. */
export class HttpFeeds {
  readonly #options: HttpFeedsOptions;
  readonly #ability: PlayerAbility;
  readonly #flv: Readonly<Record<Framing, FlvFeeds>>;
  readonly #ts = new FeedTable<TsFeed>();

  constructor(options: HttpFeedsOptions) {
    const { caches, extended } = options;
    this.#options = options;
    const fourCcs = extended ? [...Object.keys(VIDEO_FOUR_CC), ...Object.keys(AUDIO_FOUR_CC)] : [];
    this.#ability = { fourCcs: new Set(fourCcs), multitrack: false, isAssumed: true };
    const flv = (framing: Framing): FlvFeeds =>
      new FlvFeeds({
        kind: 'flv',
        caches,
        frame: (type, time, body) => FRAMINGS[framing](fileTag(type, time, body)),
      });
    this.#flv = { plain: flv('plain'), chunked: flv('chunked'), message: flv('message') };
  }

  /** @throws codecsNotTaken when the container carries nothing of the stream, and nothing more is to come */
  check(container: Container, output: OutputStream, playlist: Playlist | undefined): void {
    const { tracks } = output;
    const isTs = container === 'ts';
    checkTaken(output, isTs ? chosenForTs(tracks, playlist) : chosenTracks(tracks, playlist, this.#ability));
  }

  of(container: Container, framing: Framing, playable: HttpPlayable): DeliveredFeed {
    if (container === 'flv') return this.#flv[framing].of({ ...playable, ability: this.#ability });
    const { output, playlist, delayMs } = playable;
    const { caches, faults } = this.#options;
    const fileName = playlist?.fileName;
    return this.#ts.get(
      output,
      [framing, fileName ?? ''].join('\n'),
      (onEnd) =>
        new TsFeed(output, {
          kind: 'flv',
          choose: (tracks) => {
            const named = fileName === undefined ? undefined : output.playlist(fileName);
            if (fileName !== undefined && named === undefined) return [];
            const media = chosenForTs(tracks, named);
            return [...media, ...eventsBeside(media, tracks)];
          },
          frame: (packets) => FRAMINGS[framing]([packets]),
          delayMs,
          keepsStart: true,
          start: delayMs === 0 ? caches.of(output) : undefined,
          leftOut: (reason) => faults.count(`not sent as MPEG-TS over HTTP: ${reason}`),
          onEnd,
        }),
    );
  }
}

/** Start of an FLV file with the tracks of a feed, in a framing. */
export function flvStart(framing: Framing, { tracks, hasVideo }: DeliveredFeed): Buffer {
  const hasAudio = tracks.some(({ type }) => type === 'audio');
  return FRAMINGS[framing]([fileHeader({ hasVideo, hasAudio })]);
}
