import type { Access } from '../../access/access.ts';
import type { ApplicationConfig } from '../../config/model.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import type { RtspLink, RtspPart, RtspService } from '../../rtsp/part.ts';
import { RtspFeed } from './feed.ts';
import { RtspPlayer } from './player.ts';
import { offeredTracks } from './selection.ts';
import type { Playable } from './viewer.ts';

export interface RtspPublisherOptions {
  readonly access: Access;
  readonly log: Logger;
}

/** Serves streams to RTSP players. Their connections are those of `RtspPorts`. */
export class RtspPublisher implements RtspService {
  readonly direction = 'outgoing';
  readonly methods = ['DESCRIBE', 'PLAY'];
  readonly #access: Access;
  readonly #faults: FaultLog;
  /** Inner key: the tracks, and their delay. */
  readonly #feeds = new Map<OutputStream, Map<string, RtspFeed>>();

  constructor({ access, log }: RtspPublisherOptions) {
    this.#access = access;
    this.#faults = new FaultLog(log.child({ module: 'rtsp' }));
  }

  isUsedBy({ publishers }: ApplicationConfig): boolean {
    return publishers.rtsp !== undefined;
  }

  open(link: RtspLink): RtspPart {
    return new RtspPlayer(link, {
      admit: (asked) =>
        this.#access.admitSession(
          { ...asked, direction: 'outgoing', protocol: 'rtsp' },
          (output, { config }, playlist) => {
            const tracks = offeredTracks(output, playlist);
            // encoders that rest have time to start until it plays
            if (output.resting) output.emit('wanted');
            return { output, tracks, delayMs: config.publishers.rtsp?.delayBufferTimeMs ?? 0 };
          },
        ),
      feed: (playable) => this.#feedOf(playable),
    });
  }

  /** Idempotent. The connections of players end with the ports. */
  close(): Promise<void> {
    this.#faults.close();
    return Promise.resolve();
  }

  #feedOf({ output, tracks, delayMs }: Playable): RtspFeed {
    const key = [delayMs, ...tracks.map(({ id }) => id)].join(' ');
    const feeds = this.#feeds.get(output) ?? new Map<string, RtspFeed>();
    const feed =
      feeds.get(key) ??
      new RtspFeed(output, tracks, {
        delayMs,
        faults: this.#faults,
        onEnd: () => {
          feeds.delete(key);
          if (feeds.size === 0) this.#feeds.delete(output);
        },
      });
    feeds.set(key, feed);
    this.#feeds.set(output, feeds);
    return feed;
  }
}
