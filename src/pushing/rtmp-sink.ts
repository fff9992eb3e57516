import type { Socket } from 'node:net';
import { configTag, metadataOf } from '../containers/flv/stream-start.ts';
import { audioTagHead, videoTagHead } from '../containers/flv/tag-head.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import { isMedia, sameFormat, type MediaTrack, type Track } from '../core/track.ts';
import { dial } from '../protocols/outbound/dial.ts';
import { dialTls } from '../protocols/outbound/dial-tls.ts';
import type { OutboundGuard } from '../protocols/outbound/guard.ts';
import { TcpSender } from '../protocols/outbound/tcp-sender.ts';
import { PublishingClient } from '../protocols/rtmp/publishing-client.ts';
import { RtmpError } from '../protocols/rtmp/error.ts';
import { authenticated } from '../protocols/rtmp/authenticated.ts';
import { appOf, credentialsOf, type Destination } from './destination.ts';
import { PushError } from './error.ts';
import { flvObjection, FOUR_CCS } from './flv-format.ts';
import type { OpenSink, Sink, SinkOptions } from './sink.ts';

/**
 * Pushes over RTMP and RTMPS to destinations that the guard allows. A server's certificate is verified. When a server
 * asks for a user and a password, the sink connects again with the response.
 */
export function rtmpSink(guard: OutboundGuard): OpenSink {
  return async (destination, options) => {
    const { url } = destination;
    try {
      return await authenticated(appOf(url), credentialsOf(url), async (app) => {
        const { host, port, scheme } = destination;
        const socket = await (scheme === 'rtmp' ? dial : dialTls)(guard, host, port, options);
        return new RtmpSink(socket, app, destination, options);
      });
    } catch (error) {
      throw error instanceof RtmpError ? new PushError(error.message) : error;
    }
  };
}

/** One stream published to an RTMP server: at most one video and one audio track, and data messages. */
class RtmpSink implements Sink {
  readonly isSingle = true;
  readonly takesBursts = true;
  /** Resolves when the server accepts the stream. */
  readonly result: Promise<Sink>;
  readonly #options: SinkOptions;
  readonly #streamKey: string;
  readonly #sender: TcpSender;
  readonly #wire: PublishingClient;
  readonly #start = Promise.withResolvers<Sink>();
  #refusal: string | undefined;
  #isPublished = false;
  #hasRoom = true;
  #media: readonly MediaTrack[] = [];
  /** Tracks whose configuration was sent, by id. */
  readonly #announced = new Map<number, Track>();
  /** Decode time of the first packet, in seconds, which becomes 0. */
  #begin: number | undefined;
  /** Milliseconds of the last message. */
  #time = 0;
  readonly #onAbort = (): void => this.#fail('the connection is not wanted any more');

  /** @param app application with the query for `connect` */
  constructor(socket: Socket, app: string, { url, streamKey }: Destination, options: SinkOptions) {
    this.#options = options;
    this.#streamKey = streamKey;
    this.result = this.#start.promise;
    this.#sender = new TcpSender(socket, options.sendMs, {
      writable: () => {
        this.#hasRoom = true;
        options.writable();
      },
      failed: (reason) => this.#fail(reason),
    });
    const target = { app, tcUrl: `${url.protocol}//${url.host}/${app}`, name: streamKey, fourCcs: FOUR_CCS };
    const write = (pieces: readonly Buffer[]): void => {
      this.#hasRoom = this.#sender.send(pieces);
    };
    this.#wire = new PublishingClient(target, write, {
      published: () => this.#onPublished(),
      refused: (description) => {
        this.#refusal = description;
      },
      reconnect: options.moved,
      ended: (reason) => this.#fail(reason),
    });
    socket.on('data', (data: Buffer) => this.#receive(data));
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#onAbort();
    else this.#wire.open();
  }

  /** Description with which the server rejected `connect`. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  get sentBytes(): number {
    return this.#sender.sentBytes;
  }

  objection(track: Track): string | undefined {
    return flvObjection(track, (fourCc) => this.#wire.takes(fourCc));
  }

  setTracks(tracks: readonly Track[]): void {
    const media = tracks.filter(isMedia);
    // data tracks are not announced
    if (media.length === this.#media.length && media.every((track, i) => track === this.#media[i])) return;
    this.#media = media;
    this.#announced.clear();
    this.#wire.metadata(metadataOf(media));
    for (const track of media) this.#announce(track);
  }

  write({ track, dts, pts, key, data }: Packet): boolean {
    if (!isMedia(track) && track.codec !== 'AMF') return this.#hasRoom;
    const at = toSeconds(dts, track.timebase);
    this.#begin ??= at;
    const time = Math.max(0, Math.round((at - this.#begin) * 1000));
    this.#time = time;
    if (!isMedia(track)) {
      this.#wire.data(time, data);
      return this.#hasRoom;
    }
    const known = this.#announced.get(track.id);
    if (known !== track) {
      if (known === undefined || !sameFormat(known, track)) this.#announce(track);
      this.#announced.set(track.id, track);
    }
    if (track.type === 'audio') {
      this.#wire.audio(time, audioTagHead(track.codec, 'frame'), data);
    } else {
      const later = Math.round(toSeconds(pts - dts, track.timebase) * 1000);
      this.#wire.video(time, videoTagHead(track.codec, 'frame', key !== false, later), data);
    }
    return this.#hasRoom;
  }

  finish(): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#wire.unpublish();
    this.#sender.finish();
  }

  close(): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#sender.close();
  }

  #announce(track: MediaTrack): void {
    const time = this.#time;
    const body = configTag(track);
    this.#announced.set(track.id, track);
    if (track.type === 'audio') this.#wire.audio(time, ...body);
    else this.#wire.video(time, ...body);
  }

  #receive(data: Buffer): void {
    try {
      this.#wire.receive(data);
    } catch (error) {
      if (!(error instanceof RtmpError)) throw error;
      this.#fail(error.message);
    }
  }

  #onPublished(): void {
    this.#isPublished = true;
    this.#start.resolve(this);
  }

  #fail(reason: string): void {
    this.close();
    // servers quote the stream key
    const shown = this.#streamKey === '' ? reason : reason.replaceAll(this.#streamKey, '...');
    if (this.#isPublished) this.#options.failed(shown);
    else this.#start.reject(new PushError(shown));
  }
}
