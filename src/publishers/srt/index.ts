import type { Access } from '../../access/access.ts';
import type { PlayRequest } from '../../access/request.ts';
import { askedBySrt, srtAccess } from '../../access/srt-request.ts';
import type { SrtBindConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import type { Registry } from '../../core/registry.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { KilnError } from '../../errors.ts';
import { FaultLog, type Logger } from '../../log/log.ts';
import { SessionTable } from '../../lib/session-table.ts';
import type { SrtAddress } from '../../protocols/srt/address.ts';
import type { SrtConnection } from '../../protocols/srt/connection.ts';
import type { SrtCaller } from '../../protocols/srt/listener.ts';
import { SrtPorts } from '../../protocols/srt/ports.ts';
import { REJECTION, rejectionOf } from '../../protocols/srt/rejection.ts';
import { UNREADABLE_STREAM_ID, type StreamId } from '../../protocols/srt/stream-id.ts';
import { FeedTable } from '../feed-table.ts';
import { TsFeed } from '../ts/feed.ts';
import { addDefaultPlaylist, playlistOf, tracksOf } from './selection.ts';
import { SrtViewer, type Playable } from './viewer.ts';

export interface SrtPublisherOptions {
  readonly registry: Registry;
  readonly access: Access;
  readonly log: Logger;
  readonly ip: readonly string[];
  readonly bind: SrtBindConfig;
}

const LIMITS = { sessions: 1024, waiting: 256, purpose: 'play' };
const CHECK_MS = 1000;

/** Serves streams as MPEG-TS to viewers that call over SRT. */
export class SrtPublisher {
  readonly #options: SrtPublisherOptions;
  readonly #log: Logger;
  readonly #faults: FaultLog;
  readonly #viewers = new SessionTable<SrtViewer>(LIMITS);
  readonly #playing = new Set<SrtViewer>();
  /** By file name of the playlist. */
  readonly #feeds = new FeedTable<TsFeed>();
  readonly #timer = setInterval(() => this.#check(), CHECK_MS).unref();
  #ports: SrtPorts | undefined;
  #closed: Promise<void> | undefined;

  /** @throws SrtMissingError when there is no libsrt, SrtError when a port cannot be listened on */
  static async listen(options: SrtPublisherOptions): Promise<SrtPublisher> {
    const publisher = new SrtPublisher(options);
    try {
      await publisher.#listen();
    } catch (error) {
      await publisher.close();
      throw error;
    }
    return publisher;
  }

  private constructor(options: SrtPublisherOptions) {
    this.#options = options;
    this.#log = options.log.child({ module: 'srt' });
    this.#faults = new FaultLog(this.#log);
    options.registry.on('output', this.#onOutput);
  }

  /** Stops listening and disconnects every viewer. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      clearInterval(this.#timer);
      this.#options.registry.off('output', this.#onOutput);
      await this.#ports?.closeListeners();
      this.#viewers.closeAll('the server is closing');
      await this.#ports?.close();
      this.#faults.close();
    })();
    return this.#closed;
  }

  async #listen(): Promise<void> {
    const { ip, bind } = this.#options;
    this.#ports = await SrtPorts.open({
      ip,
      bind,
      log: this.#log,
      refuse: (id, caller) => this.#refuse(id, caller),
      connection: (connection, id) => this.#take(connection, id),
    });
  }

  readonly #onOutput = (output: OutputStream, application: Application): void => {
    if (application.config.publishers.srt !== undefined && !output.closed) addDefaultPlaylist(output);
  };

  /** Rejects a caller by local state alone: the port serves no other caller until this returns. */
  #refuse(id: StreamId | undefined, { peer, streamId, port }: SrtCaller): number | undefined {
    const { access } = this.#options;
    const rejected = (reason: string, code: number): number => {
      const asked = askedBySrt(id, streamId);
      access.report({ direction: 'outgoing', protocol: 'srt', ...peer, asked }, reason);
      return code;
    };
    const objection = this.#closed === undefined ? this.#viewers.objection : 'the server is closing';
    if (objection !== undefined) return rejected(objection, REJECTION.overload);
    if (id === undefined) return rejected(UNREADABLE_STREAM_ID, REJECTION.badRequest);
    if (id.mode === 'publish') return rejected('it asks to publish on a port for viewers', REJECTION.badMode);
    try {
      access.duringHandshake.checkViewer(requestOf(id, peer, port), (output) => playlistOf(output, id.playlist));
    } catch (error) {
      if (!(error instanceof KilnError)) throw error;
      return rejectionOf(error);
    }
  }

  #take(connection: SrtConnection, id: StreamId): void {
    const viewer: SrtViewer = new SrtViewer(connection, id, {
      log: this.#log,
      admit: (signal) =>
        this.#options.access.admitSession(
          { ...requestOf(id, connection.peer, connection.local?.port ?? 0), signal },
          (output, { config }, asked) => ({
            output,
            playlist: playlistOf(output, asked),
            delayMs: config.publishers.srt?.delayBufferTimeMs ?? 0,
          }),
        ),
      feed: (playable) => this.#feedOf(playable),
      onPlaying: () => {
        this.#viewers.setWaiting(viewer, false);
        this.#playing.add(viewer);
      },
      onClose: () => {
        this.#viewers.delete(viewer);
        this.#playing.delete(viewer);
      },
    });
    this.#viewers.add(viewer, connection.peer.address);
    void viewer.open();
  }

  #feedOf({ output, playlist, delayMs }: Playable): TsFeed {
    const { fileName = '' } = playlist;
    return this.#feeds.get(
      output,
      fileName,
      (onEnd) =>
        new TsFeed(output, {
          kind: 'srt',
          choose: (tracks) => {
            const named = output.playlist(fileName);
            return named === undefined ? [] : tracksOf(tracks, named);
          },
          delayMs,
          keepsStart: false,
          leftOut: (reason) => this.#faults.count(`not sent over SRT: ${reason}`),
          onEnd,
        }),
    );
  }

  #check(): void {
    const now = performance.now();
    for (const viewer of this.#playing) viewer.check(now);
  }
}

function requestOf(id: StreamId, peer: SrtAddress, localPort: number): PlayRequest {
  return { ...srtAccess(id, peer, localPort), direction: 'outgoing', protocol: 'srt' };
}
