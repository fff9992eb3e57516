import type { Access } from '../../access/access.ts';
import type { PlayRequest } from '../../access/request.ts';
import type { Registry } from '../../core/registry.ts';
import { StartCaches } from '../../core/start-caches.ts';
import { playMessage, type Play, type PlayLink } from '../../protocols/rtmp/play.ts';
import { checkTaken, chosenTracks, playlistOf } from '../flv/choice.ts';
import { FlvFeeds } from '../flv/feeds.ts';
import { RtmpViewer } from './viewer.ts';

export interface RtmpPublisherOptions {
  readonly registry: Registry;
  readonly access: Access;
}

const CHECK_MS = 1000;

/** Serves streams to RTMP players. Their connections are those of the RTMP server, which publishers may come to as well. */
export class RtmpPublisher {
  readonly #access: Access;
  readonly #caches: StartCaches;
  readonly #feeds: FlvFeeds;
  readonly #viewers = new Set<RtmpViewer>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();

  constructor({ registry, access }: RtmpPublisherOptions) {
    this.#access = access;
    this.#caches = new StartCaches(registry, 'rtmp', (_output, { config }) => config.publishers.rtmp !== undefined);
    this.#feeds = new FlvFeeds({ kind: 'rtmp', frame: playMessage, caches: this.#caches });
  }

  /** Plays a stream to a client, once it is admitted. @param request without its signal */
  open(request: PlayRequest, link: PlayLink): Play {
    const { ability } = link;
    const viewer: RtmpViewer = new RtmpViewer(link, {
      fromLastKey: request.query.get('gop') !== '0',
      byPlaylist: request.playlist !== undefined,
      admit: (signal) =>
        this.#access.admitSession({ ...request, signal }, (output, { config }, fileName) => {
          const playlist = playlistOf(output, fileName);
          checkTaken(output, chosenTracks(output.tracks, playlist, ability));
          return { output, playlist, ability, delayMs: config.publishers.rtmp?.delayBufferTimeMs ?? 0 };
        }),
      feed: (playable) => this.#feeds.of(playable),
      onClose: () => this.#viewers.delete(viewer),
    });
    this.#viewers.add(viewer);
    void viewer.open();
    return viewer;
  }

  /** Ends what serves viewers; their connections end with the server's. Idempotent. */
  close(): Promise<void> {
    clearInterval(this.#timer);
    for (const viewer of [...this.#viewers]) viewer.close('the server is closing');
    this.#caches.close();
    return Promise.resolve();
  }

  #check(): void {
    const now = performance.now();
    for (const viewer of this.#viewers) viewer.check(now);
  }
}
