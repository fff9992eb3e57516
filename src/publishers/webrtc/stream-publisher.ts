import type { WebrtcPublisherConfig } from '../../config/model.ts';
import type { Application } from '../../core/application.ts';
import { WEBRTC_DEFAULT } from '../../core/playlist.ts';
import type { OutputStream } from '../../core/output-stream.ts';
import { kilnError } from '../../errors.ts';
import type { Logger } from '../../log/log.ts';
import type { LiveProducers } from '../../webrtc/live-producers.ts';
import type { Reception } from '../../quality/figures.ts';
import type { QualityReports } from '../../quality/quality-reports.ts';
import { connectTimeout } from '../../webrtc/pending-peers.ts';
import { isRoutable } from '../../webrtc/codecs.ts';
import { defaultPlaylist, expectedTracks, selections, type Selection } from './selection.ts';
import type { WebrtcSession } from './session.ts';
import { StreamFeed } from './stream-feed.ts';

/** WebRTC's part of one output stream: its playlist, its RTP feed and its viewers. */
export class StreamPublisher {
  readonly stream: OutputStream;
  readonly application: Application;
  readonly config: WebrtcPublisherConfig;
  readonly feed: StreamFeed;
  readonly sessions = new Set<WebrtcSession>();
  readonly #quality: QualityReports;
  readonly #log: Logger;
  #warned = false;
  #closed = false;

  constructor(
    stream: OutputStream,
    application: Application,
    config: WebrtcPublisherConfig,
    producers: LiveProducers,
    quality: QualityReports,
    log: Logger,
  ) {
    this.#quality = quality;
    this.stream = stream;
    this.application = application;
    this.config = config;
    this.#log = log.child({ stream: `${application.internalName}/${stream.name}` });
    this.feed = new StreamFeed(stream, config, producers, this.#log);
    if (config.createDefaultPlaylist && stream.playlist(WEBRTC_DEFAULT) === undefined) {
      stream.followTracks(defaultPlaylist);
    }
    this.#tellUnplayable();
    stream.on('tracks', this.#onTracks);
  }

  /**
   * Lists the selections for a playlist, in the order of its video codecs.
   * @throws playlistNotFound, nothingPlayable when WebRTC carries none of its tracks
   */
  choices(fileName: string | undefined): readonly [Selection, ...Selection[]] {
    const playlist = this.stream.playlist(fileName ?? WEBRTC_DEFAULT);
    if (playlist === undefined) {
      if (fileName === undefined && this.config.createDefaultPlaylist) throw kilnError('nothingPlayable');
      const stream = `${this.application.internalName}/${this.stream.name}`;
      throw kilnError('playlistNotFound', `${stream}/${fileName ?? WEBRTC_DEFAULT}`);
    }
    const [first, ...others] = selections(this.stream, playlist);
    if (first === undefined) throw kilnError('nothingPlayable');
    return [first, ...others];
  }

  /** Counts how the stream came to one viewer. @param rendition as other modules name it: type and id of a track */
  received(reception: Reception, rendition: string | undefined): void {
    const { vhost, name: app } = this.application;
    this.#quality.takeReception(reception, this, { vhost: vhost.name, app, stream: this.stream.name }, rendition);
  }

  get ended(): boolean {
    return this.#closed;
  }

  /** Lists and counts a session. @returns the undo */
  list(session: WebrtcSession): () => void {
    this.sessions.add(session);
    session.once('close', (reason, end) => {
      this.#log[end === 'lost' ? 'warn' : 'debug']({ session: session.id, reason }, `the session has ended: ${reason}`);
    });
    const undo = this.stream.addSession(session);
    return () => {
      this.sessions.delete(session);
      undo();
    };
  }

  /** Called once a second: counts what was sent, ends sessions that never connected. */
  tick(now: number): void {
    for (const session of this.sessions) {
      if (!session.connected && now - session.createdTime > connectTimeout(this.config.timeout)) {
        session.close('the viewer did not connect in time');
      } else {
        session.poll();
      }
    }
    if (!this.#warned && this.feed.outlets > 0) this.#warnOfBframes();
  }

  /** Ends all sessions. Idempotent. */
  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    this.stream.off('tracks', this.#onTracks);
    this.#endSessions(reason);
    this.feed.close();
  }

  /** Ends the sessions whose tracks are gone; their viewers can come back for the present ones. */
  readonly #onTracks = (): void => {
    const tracks = expectedTracks(this.stream);
    for (const session of [...this.sessions]) {
      if (!session.isServedBy(tracks)) session.close('the tracks of the stream have changed');
    }
  };

  #endSessions(reason: string): void {
    for (const session of [...this.sessions]) session.close(reason);
  }

  #tellUnplayable(): void {
    const media = expectedTracks(this.stream);
    const playable = media.filter(isRoutable);
    // audio in another codec beside one that plays is for other publishers
    const missed = media.filter(({ type }) => !playable.some((track) => track.type === type)).map(({ codec }) => codec);
    if (missed.length === 0) return;
    const codecs = { codecs: missed };
    if (playable.length === 0) this.#log.warn(codecs, 'WebRTC supports none of the codecs of this stream');
    else this.#log.info(codecs, 'WebRTC does not support these codecs: viewers get the stream without those tracks');
  }

  #warnOfBframes(): void {
    const reordered = this.stream.tracks.some(
      ({ type, id }) => type === 'video' && this.stream.measured(id)?.hasBframes === true,
    );
    if (!reordered) return;
    this.#warned = true;
    this.#log.warn('the video has B-frames, with which WebRTC players stutter');
  }
}
